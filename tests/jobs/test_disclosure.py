"""What may be shown of a job: names, keys, slots, marks, and values that were hidden somewhere else."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Optional

import pytest
from pydantic import SecretStr

from millpond import App, OptionError, Secret, disclosure, redaction
from millpond.disclosure import Disclosure, disclosed
from millpond.payload.signature import Signature
from tests.api.acting import complete, die


@pytest.fixture
def app():
    made = App("memory://")
    made.store.migrate()
    yield made
    made.store.close()


@pytest.fixture
def own_names(monkeypatch):
    """Names that a test adds are taken back."""
    monkeypatch.setattr(redaction, "_own", frozenset())
    yield
    redaction.names_a_secret.cache_clear()


def shown(value: Any) -> Any:
    return Disclosure(10_000).redacted(value)


def test_keys_of_objects_are_redacted_and_two_alike_stay_two():
    found = shown({"https://u:one@h/": 1, "https://u:two@h/": 2, "plain": 3})
    assert found == {"https://u:***@h/": 1, "https://u:***@h/ (2)": 2, "plain": 3}


def steps(value: Any) -> int:
    """Lines of the module that run until a value is redacted."""
    taken = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal taken
        taken += event == "line"
        return trace if frame.f_code.co_filename == disclosure.__file__ else None

    sys.settrace(trace)
    try:
        shown(value)
    finally:
        sys.settrace(None)
    return taken


@pytest.mark.parametrize("form", ["x://:{}@", "token=[{}", "{}"])
def test_twice_the_keys_take_twice_the_steps_though_they_look_alike(form):
    """16,000 keys that differ in a secret alone took half a minute: each was numbered from one on."""
    once, twice = ({form.format(n): 0 for n in range(number)} for number in (200, 400))
    assert steps(twice) <= 2.2 * steps(once) + 100


def test_a_number_behind_a_key_that_looks_like_another_is_never_that_of_a_real_key():
    found = shown({"x://:a@": 1, "x://:***@ (2)": 2, "x://:b@": 3, "x://:c@": 4})
    assert list(found.values()) == [1, 2, 3, 4]


def test_what_was_hidden_under_its_name_is_hidden_elsewhere():
    may = Disclosure(10_000)
    assert may.redacted({"password": "correct horse", "a": [{"otp": {"code": "battery"}}]}) == {
        "password": "***",
        "a": [{"otp": "***"}],
    }
    assert may.text("no user with correct horse and battery") == "no user with *** and ***"


def test_what_there_is_no_room_for_is_counted():
    may = Disclosure(100)
    assert may.redacted(["a" * 60, "b" * 60, 1, 2]) == [
        "a" * 60,
        f"{'b' * 34}… 26 more characters …",
        "… 2 more …",
    ]
    assert may.text("c" * 9) == "… 9 more characters …"


def test_no_piece_of_a_secret_stands_at_a_cut():
    for most in range(20, 60):
        for keep in ("start", "end"):
            text = "words and words ghp_0123456789abcdef0123456789 and words and words"
            assert "0123" not in Disclosure(most, most).text(text, keep=keep), (most, keep)


@pytest.mark.parametrize(
    ("annotation", "is_hidden"),
    [
        (Annotated[str, Secret], True),
        (Annotated[str, Secret()], True),
        (Annotated[str, "a note", Secret], True),
        (Optional[Annotated[str, Secret]], True),  # noqa: UP045 - as people write it
        (SecretStr, True),
        (SecretStr | None, True),
        (list[SecretStr], True),
        (str, False),
        (Annotated[str, "a note"], False),
    ],
)
def test_a_parameter_can_be_marked(annotation, is_hidden):
    def task(card: Any) -> None: ...

    task.__annotations__["card"] = annotation
    assert Signature(task, "task").hidden == (("card",) if is_hidden else ())


def test_what_is_marked_is_hidden_in_everything_the_job_shows(app):
    @app.task(name="charge", key="{card}", limit=1)
    def charge(card: Annotated[str, Secret], amount: int) -> None: ...

    charge.using(unique="once-4111-1111").enqueue("4111-1111", 5)
    (job,) = app.store.get([die(app, "default", "card 4111-1111 was refused")])
    assert job is not None
    said = disclosed(job)
    assert json.loads(said.payload) == {"card": "***", "amount": 5}
    assert "4111" not in repr(said)
    assert "refused" in str(said.attempts[-1].message)
    assert json.loads(job.payload)["card"] == "4111-1111", "what is stored is what the task gets"


@pytest.mark.parametrize("given", ["4111-1111", SecretStr("4111-1111")])
def test_a_secret_of_pydantic_travels_and_is_hidden(app, given):
    @app.task(name="charge")
    def charge(card: SecretStr) -> None: ...

    job = charge.enqueue(given).job()
    assert json.loads(job.payload) == {"card": "4111-1111"}
    assert json.loads(disclosed(job).payload) == {"card": "***"}
    (card,) = charge.read(job.payload)[1].values()
    assert card.get_secret_value() == "4111-1111"


def test_secrets_in_the_names_of_slots_are_hidden(app):
    @app.task(name="login", key="{user}", limit=1)
    def login(user: str) -> None: ...

    login.enqueue("password=hunter2")
    (job,) = app.store.get([complete(app, "default")])
    assert job is not None
    assert "hunter2" not in repr(disclosed(job).slots)


def test_names_of_ones_own_are_hidden(own_names):
    assert shown({"iban": "DE1", "customerIban": "DE2", "urban": "x"})["iban"] == "DE1"
    app = App("memory://", redact=["iban", "home-phone"])
    assert shown({"iban": "DE1", "customerIban": "DE2", "urban": "x", "home_phone": 5}) == {
        "iban": "***",
        "customerIban": "***",
        "urban": "x",
        "home_phone": "***",
    }
    assert redaction.without_secrets("iban=DE12 and urban=x") == "iban=*** and urban=x"
    app.store.close()


@pytest.mark.parametrize("names", [[""], ["a b"], [5], 5, ["x" * 65]])
def test_names_that_no_argument_has_are_refused(names, own_names):
    if names == [""]:
        App("memory://", redact=names).store.close()
        return
    with pytest.raises((OptionError, TypeError)):
        App("memory://", redact=names)

"""Values that fight back: refused like any other, in a sentence of ours, not by an error of theirs."""

import dataclasses
import enum
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pytest

from millpond import App, JobFailed, JobHandle, Resources, Retry, Snooze, chain
from millpond.errors import ArgumentsRefused, OptionError, PayloadRefused
from millpond.job import JobState, Raised, Returned, Unread
from millpond.job_runner import MOST_NAME, arun, run
from tests.jobs.jobs import job

HUGE = 10**5000  # Python refuses to print it
NOW = datetime(2026, 1, 1, tzinfo=UTC)

app = App("memory://")


@app.task(name="take")
def take(value: Any) -> Any:
    return value


# --- options -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("option", ["priority", "delay", "timeout", "expires", "id", "queue", "unique", "at"])
def test_an_option_refuses_an_int_that_cannot_be_printed(option):
    with pytest.raises(OptionError, match="not a value of type int"):
        take.using(**{option: HUGE})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Retry(attempts=HUGE),
        lambda: Retry(first=HUGE),
        lambda: Retry(factor=10**400),
        lambda: Resources(cpu=10**400),
        lambda: Resources(memory=HUGE),
        lambda: Snooze(HUGE),
        lambda: take.using(depends_on=[HUGE]),
        lambda: take.using(unique="a", unique_for=0),
        lambda: app.handle(HUGE),  # type: ignore[arg-type]
        lambda: chain(HUGE),  # type: ignore[arg-type]
        lambda: App(HUGE),  # type: ignore[arg-type]
    ],
)
def test_a_number_beyond_all_bounds_is_an_option_error(make):
    with pytest.raises(OptionError):
        make()


def test_a_call_that_cannot_be_printed_is_refused_all_the_same():
    with pytest.raises(ArgumentsRefused, match="not int"):
        take.enqueue_many([HUGE])


def test_an_enum_names_a_queue_and_a_key_by_its_value():
    class Queue(str, enum.Enum):  # noqa: UP042 - str() of it is not its value
        MAIL = "mail"

    with app.testing():
        stored = take.using(queue=Queue.MAIL, unique=Queue.MAIL).enqueue(1).job()
    assert (stored.queue, stored.unique) == ("mail", "mail")
    record = take.new_job(((1,), {}), take.using(queue=Queue.MAIL, unique=Queue.MAIL)._options)
    assert (type(record.queue), type(record.unique)) == (str, str)


@pytest.mark.parametrize("seconds", [60, 61])
def test_a_job_that_would_expire_before_it_is_due_is_refused(seconds):
    with pytest.raises(OptionError, match="never begin"):
        take.using(delay=seconds, expires="1m").enqueue(1)


def test_a_task_that_expires_is_not_delayed_for_longer():
    @app.task(name="soon", expires="1m")
    def soon() -> None: ...

    with app.testing():
        soon.using(delay="59s").enqueue()
        with pytest.raises(OptionError, match="never begin"):
            soon.using(delay="1m").enqueue()


@pytest.mark.parametrize("name", ["", 0, None, False])
def test_a_name_that_was_given_is_checked(name):
    with pytest.raises(OptionError, match="name must be text"):
        app.task(name=name)(lambda: None)


def test_a_generator_is_no_task_under_another_name_either():
    def numbers():
        yield 1

    async def more():
        yield 1

    for function in (numbers, more):
        with pytest.raises(OptionError, match="is a generator"):
            app.task(name="numbers")(function)


# --- arguments ---------------------------------------------------------------------------------------------
class Proxy:
    """Says that it is what it stands for, as those of web frameworks do."""

    def __init__(self, target: Any) -> None:
        self.target = target

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.target)


@pytest.mark.parametrize("target", ["text", 1, 1.5, [1], (1,), {"a": 1}])
def test_a_proxy_is_not_what_it_says_it_is(target):
    with pytest.raises(PayloadRefused, match=r"value is of kind .*Proxy, which cannot be stored"):
        take.enqueue(Proxy(target))


def test_a_long_key_does_not_make_a_long_message():
    with pytest.raises(PayloadRefused) as caught:
        take.enqueue({"k" * 100_000: b""})
    assert len(str(caught.value)) < 300


def test_the_entry_that_does_not_fit_is_named():
    @app.task(name="named")
    def named(**numbers: int) -> None: ...

    with pytest.raises(ArgumentsRefused, match=r"numbers\.second: expected `int`, got `str`"):
        named.enqueue(first=1, second="2")  # type: ignore[arg-type]


@dataclasses.dataclass
class Held:
    what: Any


class HeldStruct(msgspec.Struct):
    what: Any


class HeldTuple(NamedTuple):
    what: Any


@pytest.mark.parametrize("kind", [Held, HeldStruct, HeldTuple])
@pytest.mark.parametrize("what", [NOW, [NOW], {"at": NOW}, {1, 2}])
def test_what_would_change_inside_a_record_is_refused_too(kind, what):
    @app.task(name="keep")
    def keep(record: kind) -> None: ...  # type: ignore[valid-type]

    with pytest.raises((ArgumentsRefused, PayloadRefused), match=r"record.*(would come back as|kind set)"):
        keep.enqueue(kind(what))
    with app.testing() as jobs:
        keep.enqueue(kind([1, "a", {"b": None}]))
        assert jobs.enqueued(keep)[0].arguments == {"record": kind([1, "a", {"b": None}])}


@dataclasses.dataclass
class Private:
    shown: int
    _hidden: int = 3


def test_a_private_field_is_kept():
    @app.task(name="private")
    def private(record: Private) -> None: ...

    with app.testing() as jobs:
        private.enqueue(Private(1, 4))
        assert jobs.enqueued(private)[0].arguments == {"record": Private(1, 4)}


# --- while a job runs --------------------------------------------------------------------------------------
@dataclasses.dataclass
class Moody:
    number: int

    def __post_init__(self) -> None:
        if self.number == 13:
            raise KeyError("thirteen")


@app.task(name="moody")
def moody(what: Moody) -> None: ...


def test_a_class_that_refuses_to_be_made_is_told_at_enqueue():
    with pytest.raises(ArgumentsRefused, match="what: KeyError: 'thirteen'; what takes"):
        moody.enqueue({"number": 13})  # type: ignore[arg-type]


async def test_a_class_that_refuses_to_be_made_fails_its_job_and_nothing_else():
    stored = job(task="moody", payload=b'{"what":{"number":13}}')
    for outcome in (run(app, stored), await arun(app, stored)):
        assert isinstance(outcome, Unread)
        assert "KeyError: 'thirteen'" in outcome.failure.message


class Unseen(dict[str, int]):
    """Looking into it raises."""

    def items(self) -> Any:
        raise LookupError("who looks?")


class Nameless(Exception): ...


Nameless.__module__ = "a\ud800b"
Nameless.__qualname__ = "N" * 10_000


@app.task(name="misbehave")
def misbehave(how: str) -> Any:
    if how == "result":
        return Unseen()
    raise Nameless


def test_a_result_that_raises_when_it_is_looked_at_cannot_be_stored():
    outcome = run(app, job(task="misbehave", payload=b'{"how":"result"}'))
    assert isinstance(outcome, Returned)
    assert "LookupError: who looks?" in (outcome.refused or "")


def test_the_name_of_an_exception_can_be_stored_whatever_it_is():
    outcome = run(app, job(task="misbehave", payload=b'{"how":"raise"}'))
    assert isinstance(outcome, Raised)
    outcome.failure.type.encode()
    assert outcome.failure.type.startswith("a\\ud800b.N")
    assert len(outcome.failure.type) == MOST_NAME


@pytest.mark.parametrize("payload", [b"[" * 5000 + b"]" * 5000, b"\xff", b"", b'{"value":NaN}', b"[1]"])
def test_arguments_that_nobody_could_read_end_their_job(payload):
    outcome = run(app, job(task="take", payload=payload))
    assert isinstance(outcome, Raised)
    assert outcome.final


@pytest.mark.parametrize("result", [b"[" * 200_000 + b"]" * 200_000, b"\xff"])
def test_a_result_that_nobody_can_read_is_told_as_such(result):
    stored = job(state=JobState.COMPLETED, result=result)
    with pytest.raises(JobFailed, match="cannot be read any more") as caught:
        app.handle(stored.id)._value(stored)
    assert caught.value.reason == "damaged"


def test_a_result_whose_class_refuses_it_is_given_as_it_is():
    stored = job(state=JobState.COMPLETED, result=b'{"number":13}')
    assert JobHandle(app.store, stored.id, kind=Moody)._value(stored) == {"number": 13}


# --- batches and tests -------------------------------------------------------------------------------------
def test_a_chain_may_grow_in_a_loop():
    steps = chain(take.bind(0))
    for number in range(1, 1500):
        steps = chain(steps, take.bind(number))
    with app.testing() as jobs:
        assert len(steps.enqueue()) == 1500
        assert jobs.run_due() == 1500


def test_a_testing_block_that_is_over_says_so():
    with app.testing() as jobs:
        take.enqueue(1)
    for use in (jobs.enqueued, jobs.run_due, lambda: jobs.now, lambda: app.testing().advance(1)):
        with pytest.raises(RuntimeError, match="inside the block"):
            use()


def test_enqueued_wants_a_task():
    with app.testing() as jobs, pytest.raises(TypeError, match="takes a task"):
        jobs.enqueued("take")  # type: ignore[arg-type]

"""Exceptions from a worker: themselves where possible, a plain error that says so where not, text always."""

import pickle
import threading
import traceback
from types import SimpleNamespace

import pytest

from millpond.pool.channel.remote_errors import Remote, RemoteTraceback, describe, pack_plain
from millpond.pool.channel.shared_page import Page
from millpond.pool.worker.result_writer import Outbox


@pytest.fixture
def outbox():
    page = Page.create("millpond-test")
    yield Outbox(None, page, -1)  # type: ignore[arg-type]
    page.close()


def raised(error):
    """The same error after a trip through raise, with a traceback."""
    try:
        raise error
    except BaseException as caught:
        return caught


def sent(outbox, error):
    return pickle.loads(outbox.pack_error(raised(error)))


class Plain(Exception):
    pass


class BrokenText(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class BrokenHard(Exception):
    def __str__(self):
        raise SystemExit

    __repr__ = __str__


class BrokenReduce(Exception):
    def __reduce__(self):
        raise RuntimeError("no pickle")


class WrongReduce(Exception):
    def __reduce__(self):
        return SimpleNamespace, ()


class NotEvenAnObject(Exception):
    def __reduce__(self):
        return int, ("7",)


class TwoArguments(Exception):
    """Pickles, but cannot be unpickled: the arguments do not fit its constructor."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class NoAttributes(Exception):
    def __setattr__(self, name, value):
        raise AttributeError(name)


# --- what arrives as itself ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "error",
    [
        NoAttributes("x"),
        ValueError("bad"),
        KeyError("gone"),
        OSError(2, "No such file"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        Plain("mine", 3),
        SystemExit(3),
        KeyboardInterrupt(),
        ExceptionGroup("several", [ValueError(1), Plain(2)]),
        StopIteration(5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_arrives_with_its_type_and_arguments(outbox, error):
    got = sent(outbox, error)
    assert type(got) is type(error)
    assert str(got) == str(error)
    assert repr(got) == repr(error)
    assert isinstance(got.__cause__, RemoteTraceback)
    assert "in raised" in str(got.__cause__)


def test_attributes_and_notes_travel(outbox):
    error = Plain("x")
    error.code = 7  # type: ignore[attr-defined]
    error.add_note("look here")
    got = sent(outbox, error)
    assert (got.code, got.__notes__) == (7, ["look here"])


def test_a_local_exception_class_arrives_with_its_name(outbox):
    class Local(Exception):
        pass

    got = sent(outbox, Local("x"))
    assert (type(got).__name__, got.args) == ("Local", ("x",))


def test_the_text_tells_of_the_whole_chain(outbox):
    error = Plain("outer")
    error.__cause__ = raised(ValueError("the root"))
    got = sent(outbox, error)
    assert "ValueError: the root" in str(got.__cause__)
    assert "direct cause" in str(got.__cause__)
    assert "the root" in "".join(traceback.format_exception(got))


def test_no_frame_of_the_worker_is_kept_alive():
    error = raised(Plain("x"))
    Remote(error)
    assert error.__traceback__ is None


# --- what cannot ----------------------------------------------------------------------------------------
def unpicklable():
    error = Plain("x")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    "make",
    [
        lambda: BrokenReduce("x"),
        lambda: TwoArguments(1, 2),
        lambda: NotEvenAnObject("x"),
        lambda: Plain(threading.Lock()),
        lambda: ValueError(threading.Lock()),
        unpicklable,
    ],
    ids=["reduce", "constructor", "not an object", "argument", "builtin's argument", "attribute"],
)
def test_one_that_cannot_be_sent_becomes_a_plain_error_that_names_it(outbox, make):
    error = make()
    got = sent(outbox, error)
    assert type(got) is RuntimeError
    assert type(error).__qualname__ in str(got)
    assert "cannot be sent back" in str(got)
    assert isinstance(got.__cause__, RemoteTraceback)
    assert "in raised" in str(got.__cause__)


def test_one_that_pickles_as_something_else_becomes_a_plain_error(outbox):
    got = sent(outbox, WrongReduce("x"))
    assert isinstance(got, BaseException)
    assert "WrongReduce" in str(got)


@pytest.mark.parametrize("kind", [BrokenText, BrokenHard])
def test_one_without_a_text_arrives_all_the_same(outbox, kind):
    got = sent(outbox, kind("x"))
    assert type(got) is kind
    assert got.args == ("x",)
    assert kind.__name__ in str(got.__cause__)


# --- the pieces -------------------------------------------------------------------------------------------
def test_a_description_can_always_be_had(monkeypatch):
    assert "ValueError: bad" in describe(ValueError("bad"))
    assert "BrokenText" in describe(BrokenText("x"))
    monkeypatch.setattr(traceback, "format_exception", lambda _: 1 / 0)
    assert "BrokenText" in describe(BrokenText("x"))


def test_a_plain_error_carries_message_and_text():
    got = pickle.loads(pack_plain("what happened", "where it happened"))
    assert type(got) is RuntimeError
    assert str(got) == "what happened"
    assert "where it happened" in str(got.__cause__)


def test_a_remote_traceback_can_itself_be_sent_on():
    got = pickle.loads(pickle.dumps(RemoteTraceback("text")))
    assert str(got) == str(RemoteTraceback("text"))

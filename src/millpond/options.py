"""Options of tasks and jobs at the edge: each checked once, with an error that says what would do.

Durations become seconds, datetimes microseconds, handles ids. Nothing here knows a store.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import msgspec

from millpond.errors import OptionError
from millpond.job import JobOptions
from millpond.units import seconds, shown, size_in_bytes

if TYPE_CHECKING:
    from millpond.handle import JobHandle

Duration = float | timedelta | str
QUEUE = re.compile(r"[a-z0-9_.-]{1,64}")
LONGEST = 100 * 365.25 * 86_400  # a century in seconds
LAST = 2**53  # microseconds; beyond it the numbers of Lua and JSON are no longer exact
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMEOUT = 3600.0


class Retry(msgspec.Struct, frozen=True):
    """How often and when a job that failed is tried again."""

    attempts: int = 5  # errors and timeouts together, the first included
    first: Duration = 5.0  # before the second attempt
    factor: float = 2.0  # each delay is so many times the one before
    cap: Duration = 3600.0
    never: tuple[type[BaseException], ...] = ()  # errors that end the job at once
    after: Mapping[type[BaseException], Duration] = {}  # errors with a delay of their own
    max_crashes: int = 3
    max_lost: int = 10

    def __post_init__(self) -> None:
        for name in ("attempts", "max_crashes", "max_lost"):
            check_whole(getattr(self, name), f"Retry({name})", 1, 1_000_000)
        for name in ("first", "cap"):
            duration(getattr(self, name), f"Retry({name})")
        check_number(self.factor, "Retry(factor)", 1.0)
        if not _are_errors(self.never, tuple):
            raise OptionError(f"Retry(never) must be a tuple of exceptions, not {shown(self.never)}")
        if not _are_errors(self.after, Mapping):
            raise OptionError(f"Retry(after) must map exceptions to durations, not {shown(self.after)}")
        for delay in self.after.values():
            duration(delay, "Retry(after)")

    def delay_for(self, error: BaseException) -> float | None:
        """The delay this error has of its own: that of the nearest of its classes, or None."""
        for kind in type(error).__mro__:
            if kind in self.after:
                return seconds(self.after[kind], name="Retry(after)")
        return None


class Resources:
    """What a job needs: cores, memory, and named tokens of the node or the fleet."""

    __slots__ = ("needs",)

    def __init__(self, cpu: float = 0.0, memory: int | str = 0, **tokens: float) -> None:
        wanted = {"cpu": cpu, "memory": size_in_bytes(memory, name="Resources(memory)"), **tokens}
        checked = {name: check_number(number, f"Resources({name})", 0.0) for name, number in wanted.items()}
        self.needs: dict[str, float] = {name: number for name, number in checked.items() if number}

    def __repr__(self) -> str:
        return f"Resources({', '.join(f'{name}={number:g}' for name, number in self.needs.items())})"


class TaskKeywords(TypedDict, total=False):
    """What `@app.task(...)` accepts."""

    name: str
    queue: str
    priority: int
    timeout: Duration | None
    expires: Duration | None
    retry: Retry
    resources: Resources
    key: str | Callable[..., str]
    limit: int
    aliases: Iterable[str]
    upgrade: Callable[[dict[str, Any]], dict[str, Any]]


class UsingKeywords(TypedDict, total=False):
    """What `using(...)` accepts."""

    queue: str
    priority: int
    timeout: Duration | None
    expires: Duration | None
    delay: Duration
    at: datetime
    unique: str
    unique_for: Literal["waiting", "done"] | Duration
    id: str
    depends_on: Iterable[JobHandle[Any] | str]
    transaction: object


# --- one option each -----------------------------------------------------------------------------------
def check_queue(name: Any) -> str:
    """A queue's name, or OptionError."""
    if not isinstance(name, str) or not QUEUE.fullmatch(name):
        raise OptionError(
            f"queue must be 1 to 64 of a-z, 0-9, '_', '.', '-', such as 'mail', not {shown(name)}"
        )
    return str.__str__(name)  # of a StrEnum the value: a driver may take the member for something else


def check_priority(value: Any) -> int:
    """A priority, or OptionError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
        raise OptionError(f"priority must be a whole number from 0 (last) to 9 (first), not {shown(value)}")
    return int(value)


def check_id(value: Any) -> str:
    """A job's id in its one spelling, or OptionError."""
    try:
        return str(uuid.UUID(str(value)))
    except ValueError:
        raise OptionError(
            f"a job's id must be a UUID, such as str(uuid.uuid4()), not {shown(value)}"
        ) from None


def check_text(value: Any, name: str, most: int = 500) -> str:
    """Text that every store can keep and index, or OptionError."""
    if not isinstance(value, str) or not 0 < len(value) <= most or not _is_storable(value):
        raise OptionError(
            f"{name} must be text of 1 to {most} characters without NUL or surrogates, not {shown(value)}"
        )
    return str.__str__(value)


def check_whole(value: Any, name: str, least: int, most: int) -> int:
    """A whole number within bounds, or OptionError."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise OptionError(f"{name} must be a whole number from {least:,} to {most:,}, not {shown(value)}")
    return value


def check_tokens(tokens: Any) -> dict[str, int]:
    """What all nodes share, by name, or OptionError."""
    if not isinstance(tokens, Mapping):
        raise OptionError(f"tokens must map names to numbers, such as {{'ffmpeg': 2}}, not {shown(tokens)}")
    for name in tokens:
        check_text(name, "the name of a token", 100)
        if name in ("cpu", "memory"):
            raise OptionError(f"{name!r} cannot be a token: each node has its own; see Node(budget=...)")
    return {
        str.__str__(name): check_whole(number, f"tokens[{name!r}]", 1, 1_000_000)
        for name, number in tokens.items()
    }


def check_number(value: Any, name: str, least: float) -> float:
    """A finite number from `least` on, or OptionError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise OptionError(f"{name} must be a number from {least:g} on, not {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise OptionError(f"{name} must be a number that a float can hold, not {shown(value)}") from None


def duration(value: Any, name: str) -> float:
    """Seconds, or OptionError; a century is the most, since instants must stay exact everywhere."""
    result = seconds(value, name=name)
    if result > LONGEST:
        raise OptionError(f"{name} must be at most 100 years, not {shown(value)}")
    return result


def limit(value: Any, name: str) -> float | None:
    """Seconds above zero, or None for no limit."""
    if value is None:
        return None
    result = duration(value, name)
    if result == 0:
        raise OptionError(f"{name} must be above zero, or None for no limit, not {shown(value)}")
    return result


def instant(value: Any, name: str) -> int:
    """A datetime as microseconds since 1970, or OptionError."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise OptionError(
            f"{name} must be a datetime with a time zone, such as datetime.now(UTC), not {shown(value)}"
        )
    result = (value - EPOCH) // timedelta(microseconds=1)
    if not 0 <= result < LAST:
        raise OptionError(f"{name} must be in the years 1970 to 2254, not {shown(value)}")
    return result


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: ", did you mean 'delay'?"."""
    import difflib

    names = sorted(known)
    close = difflib.get_close_matches(name[:100], names, 1)
    if close:
        return f", did you mean {close[0]!r}?"
    return f"; there are: {', '.join(names)}" if names else ""


def _unique_for(value: Any) -> Any:
    if isinstance(value, str) and value in ("waiting", "done"):
        return str.__str__(value)
    if duration(value, "unique_for") == 0:
        raise OptionError(
            "unique_for must be 'waiting', 'done' or a duration above zero: nothing is held for 0 s"
        )
    return duration(value, "unique_for")


def _parents(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(
            f"depends_on must be a list of handles or ids, such as [handle], not {shown(value)}"
        )
    return tuple(check_id(getattr(parent, "id", parent)) for parent in value)


def _are_errors(kinds: Any, container: type) -> bool:
    """Is it such a container, and does it hold classes of exceptions?"""
    return isinstance(kinds, container) and all(
        isinstance(kind, type) and issubclass(kind, BaseException)
        for kind in kinds  # type: ignore[attr-defined]
    )


def _is_storable(text: str) -> bool:
    return "\0" not in text and text.encode(errors="ignore").decode() == text


# --- all of them ---------------------------------------------------------------------------------------
_USING: dict[str, Callable[[Any], Any]] = {
    "queue": check_queue,
    "priority": check_priority,
    "timeout": lambda value: limit(value, "timeout"),
    "expires": lambda value: limit(value, "expires"),
    "delay": lambda value: duration(value, "delay"),
    "at": lambda value: instant(value, "at"),
    "unique": lambda value: check_text(value, "unique"),
    "unique_for": _unique_for,
    "id": check_id,
    "depends_on": _parents,
    "transaction": lambda value: value,
}


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `using()`, each in its stored form. Raises TypeError for an unknown one."""
    for name in given:
        if name not in _USING:
            raise TypeError(f"using() has no option {name!r}{nearest(name, _USING)}")
    return {name: _USING[name](value) for name, value in given.items()}


def check_together(options: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other."""
    if "at" in options and "delay" in options:
        raise OptionError("give `at` or `delay`, not both: each says when the job may begin")
    if "unique_for" in options and "unique" not in options:
        raise OptionError("unique_for says how long a `unique` key is held: give unique='...' with it")


def job_options(
    timeout: float | None, retry: Retry, resources: Resources | None, hidden: tuple[str, ...] = ()
) -> JobOptions:
    """What a job carries for those who run it."""
    return JobOptions(
        timeout=timeout,
        max_attempts=retry.attempts,
        max_crashes=retry.max_crashes,
        max_lost=retry.max_lost,
        retry_first=seconds(retry.first, name="Retry(first)"),
        retry_factor=float(retry.factor),
        retry_cap=seconds(retry.cap, name="Retry(cap)"),
        resources=resources.needs if resources else {},
        hidden=hidden,
    )


def iso_text(instant: int | None) -> str | None:
    """An instant as ISO 8601 text in UTC."""
    if instant is None:
        return None
    try:
        at = EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        return "9999-12-31T23:59:59.999999Z" if instant > 0 else "0001-01-01T00:00:00.000000Z"
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")

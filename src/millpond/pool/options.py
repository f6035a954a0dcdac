"""What a pool can be told: every option, checked once, at the edge.

Turns keywords and environment variables into two frozen records. It refuses what a kind of worker cannot
do instead of ignoring it. Nothing else in the pool looks at raw values.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict

from millpond.errors import OptionError
from millpond.events import ErrorHook
from millpond.pool.channel.shared_page import MAX_SLOTS
from millpond.system.cores import usable_cores
from millpond.units import seconds, size_in_bytes

if TYPE_CHECKING:
    from datetime import timedelta

Kind = Literal["process", "thread", "async"]
Duration: TypeAlias = "float | timedelta | str"
Size = int | str
START_TIMEOUT = 300.0  # seconds: an initializer may load much

FROZEN = (
    "this program is frozen into one executable (sys.frozen), which is no Python that a template process "
    "could be started with. Pass mp_context=multiprocessing.get_context('fork'), or use kind='thread'"
)


class TaskKeywords(TypedDict, total=False):
    """What `using()` accepts."""

    priority: int
    timeout: Duration | None
    deadline: Duration | None
    max_queue_age: Duration | None
    retries_on_crash: int
    context: Any


class PoolKeywords(TypedDict, total=False):
    """The keyword-only options of `Pool`."""

    max_tasks_per_child: int | None
    min_workers: int | None
    kind: Kind
    concurrency: int | None
    timeout: Duration | None
    deadline: Duration | None
    idle_timeout: Duration
    max_queue: int | None
    when_full: Literal["block", "raise"]
    max_queue_age: Duration | None
    queue: Any
    max_memory: Size | None
    max_age: Duration | None
    retries_on_crash: int
    preload: Sequence[str]
    capture_output: bool
    views: bool
    context: Any
    name: str | None
    on_callback_error: ErrorHook | None
    start_timeout: Duration | None


class TaskOptions(NamedTuple):
    """How one task is treated."""

    priority: int = 0
    timeout: float | None = None
    deadline: float | None = None
    max_queue_age: float | None = None
    retries_on_crash: int = 0
    context: Any = False
    # Follows from the others, and is asked for every task:
    ages: bool = False  # must be rejected if it waits too long
    plain: bool = True  # nothing that must be watched task by task


class PoolOptions(NamedTuple):
    """How a pool behaves."""

    max_workers: int
    min_workers: int
    mp_context: BaseContext | None = None
    initializer: Callable[..., object] | None = None
    initargs: tuple[Any, ...] = ()
    kind: Kind = "process"
    concurrency: int = 1
    max_tasks_per_child: int | None = None
    idle_timeout: float = 60.0
    max_queue: int | None = None
    when_full: str = "block"
    queue: Any = "priority"
    max_memory: int | None = None
    max_age: float | None = None
    preload: tuple[str, ...] = ()
    capture_output: bool = False
    views: bool = False
    name: str = "pool"
    on_callback_error: ErrorHook | None = None
    start_timeout: float | None = START_TIMEOUT
    task: TaskOptions = TaskOptions()


# What `Pool.for_service` begins with
SERVICE: Mapping[str, Any] = {
    "max_tasks_per_child": 10_000,
    "timeout": "60m",
    "max_queue_age": "30m",
    "max_queue": 10_000,
    "when_full": "raise",
}

# What each kind cannot do, with the reason a user is told.
REFUSED: Mapping[str, Mapping[str, str]] = {
    "thread": {
        "timeout": "a thread cannot be killed; use kind='process', or end the work in the task itself",
        "deadline": "a thread cannot be killed; max_queue_age bounds the wait, kind='process' the run",
        "max_memory": "threads share the memory of this process; use kind='process'",
        "max_tasks_per_child": "threads leave nothing behind to recycle; use kind='process'",
        "max_age": "threads leave nothing behind to recycle; use kind='process'",
        "retries_on_crash": "a crash of a thread is a crash of this process; use kind='process'",
        "capture_output": "threads share the output of this process; use kind='process'",
        "preload": "threads share the modules of this process",
        "views": "threads share memory already: nothing is copied",
        "start_timeout": "a thread cannot be killed; bound the initializer itself",
        "mp_context": "threads need no start method",
    },
    "process": {},
    "async": {},
}


def pool_options(
    max_workers: int | str | None,
    mp_context: BaseContext | None,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
    keywords: Mapping[str, Any],
) -> PoolOptions:
    """Check everything and build the record, or raise OptionError or TypeError saying what to change."""
    known = PoolKeywords.__annotations__
    for name in keywords:
        if name not in known:
            raise TypeError(f"Pool has no option {name!r}{_nearest(name, known)}")
    kind = _choice(keywords, "kind", ("process", "thread", "async"), "process")
    _refuse(kind, {**keywords, "mp_context": mp_context})
    most = _worker_count(max_workers, kind)
    least = keywords.get("min_workers")
    least = most if least is None else _whole(least, "min_workers", 0)
    check_bounds(least, most)
    if initializer is not None and not callable(initializer):
        raise TypeError("initializer must be a callable")
    if not isinstance(initargs, (tuple, list)):
        raise TypeError(f"initargs must be a tuple of arguments, not {initargs!r}")
    if mp_context is not None and not isinstance(mp_context, BaseContext):
        raise TypeError(f"mp_context must come from multiprocessing.get_context(), not {mp_context!r}")
    if mp_context is None and kind != "thread" and is_frozen():
        raise OptionError(FROZEN)
    if mp_context is not None and keywords.get("preload"):
        raise OptionError("preload needs Millpond's own template process: leave mp_context out")
    return PoolOptions(
        max_workers=most,
        min_workers=least,
        mp_context=mp_context,
        initializer=initializer,
        initargs=tuple(initargs),
        kind=kind,
        concurrency=_concurrency(keywords.get("concurrency"), kind),
        task=task_options(TaskOptions(), _task_part(keywords), kind),
        **_pool_part(keywords),
    )


def _pool_part(keywords: Mapping[str, Any]) -> dict[str, Any]:
    budget = keywords.get("max_tasks_per_child")
    bound = keywords.get("max_queue")
    memory = keywords.get("max_memory")
    preload = keywords.get("preload", ())
    return {
        "max_tasks_per_child": None if budget is None else _whole(budget, "max_tasks_per_child", 1),
        "idle_timeout": seconds(keywords.get("idle_timeout", 60.0), name="idle_timeout"),
        "max_queue": None if bound is None else _whole(bound, "max_queue", 1),
        "when_full": _choice(keywords, "when_full", ("block", "raise"), "block"),
        "queue": keywords.get("queue", "priority"),
        "max_memory": None if memory is None else size_in_bytes(memory, name="max_memory"),
        "max_age": _duration(keywords, "max_age"),
        "preload": _names(preload),
        "capture_output": _boolean(keywords, "capture_output"),
        "views": _boolean(keywords, "views"),
        "name": _text(keywords.get("name") or "pool", "name"),
        "start_timeout": _duration({"start_timeout": START_TIMEOUT, **keywords}, "start_timeout"),
        "on_callback_error": _hook(keywords.get("on_callback_error")),
    }


def task_options(base: TaskOptions, keywords: Mapping[str, Any], kind: str = "process") -> TaskOptions:
    """`base` with the given options in place of its own."""
    known = TaskKeywords.__annotations__
    for name in keywords:
        if name not in known:
            raise TypeError(f"a task has no option {name!r}{_nearest(name, known)}")
    _refuse(kind, keywords)
    changes: dict[str, Any] = {}
    for name in ("timeout", "deadline", "max_queue_age"):
        if name in keywords:
            changes[name] = _duration(keywords, name)
    if "priority" in keywords:
        changes["priority"] = _whole(keywords["priority"], "priority", -(10**9))
    if "retries_on_crash" in keywords:
        changes["retries_on_crash"] = _whole(keywords["retries_on_crash"], "retries_on_crash", 0)
    if "context" in keywords:
        changes["context"] = keywords["context"]
    return _derived(base._replace(**changes))


def _derived(options: TaskOptions) -> TaskOptions:
    watched = options.timeout is not None or options.deadline is not None
    return options._replace(
        ages=options.max_queue_age is not None or options.deadline is not None,
        plain=not watched and not options.retries_on_crash,
    )


def _task_part(keywords: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if name in TaskKeywords.__annotations__}


def is_frozen() -> bool:
    """Is `sys.executable` the program itself? Started for a worker it would start the whole program again,
    which makes a pool, and so on."""
    return bool(getattr(sys, "frozen", False))


def _refuse(kind: str, keywords: Mapping[str, Any]) -> None:
    if kind != "thread" and sys.platform != "linux":
        raise OptionError(f"kind={kind!r} needs Linux; kind='thread' works everywhere")
    for name, reason in REFUSED[kind].items():
        nothing = (None, False, (), 0) if name == "retries_on_crash" else (None, False, ())
        if keywords.get(name) not in nothing:
            raise OptionError(f"{name} cannot be had with kind={kind!r}: {reason}")


def _worker_count(value: int | str | None, kind: str) -> int:
    cores = usable_cores()
    if value is None:
        return min(32, cores + 4) if kind == "thread" else cores
    if isinstance(value, str):
        sizings = {"cpu": cores, "cpu-1": max(1, cores - 1), "mixed": 2 * cores, "short": max(2, cores // 2)}
        if value in sizings:
            return sizings[value]
        if not (value.isascii() and value.isdigit()):
            raise OptionError(f"max_workers={value!r}: give a number or one of {', '.join(sizings)}")
        value = int(value)
    number = _whole(value, "max_workers", -(10**9))
    if number < 1:
        raise OptionError("max_workers must be greater than 0")  # the standard library's words
    return number


def _concurrency(value: int | None, kind: str) -> int:
    if kind != "async":
        if value is not None:
            raise OptionError(f"concurrency belongs to kind='async'; a {kind} worker runs one task at a time")
        return 1
    number = 100 if value is None else _whole(value, "concurrency", 1)
    if number > MAX_SLOTS:
        raise OptionError(f"concurrency={number}: at most {MAX_SLOTS} tasks at once in one worker")
    return number


def check_bounds(least: Any, most: Any) -> None:
    """Refuse bounds that no pool can have."""
    _whole(least, "min_workers", 0)
    _whole(most, "max_workers", 1)
    if least > most:
        raise OptionError(f"min_workers={least} is more than max_workers={most}")


def _whole(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise OptionError(f"{name} must be at least {least}, not {value}")
    return value


def _duration(keywords: Mapping[str, Any], name: str) -> float | None:
    value = keywords.get(name)
    if value is None:
        return None
    number = seconds(value, name=name)
    if number <= 0:
        raise OptionError(f"{name} must be above zero, not {value!r}")
    return number


def _hook(value: Any) -> ErrorHook | None:
    if value is not None and not callable(value):
        raise TypeError(f"on_callback_error must be a callable, not {value!r}")
    return value  # type: ignore[no-any-return]


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, (tuple, list, set, frozenset)):
        raise TypeError(f"preload must list names of modules, not {value!r}")
    return tuple(_text(name, "preload") for name in value)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {value!r}")
    if "\0" in value or len(value) > 100:
        raise OptionError(f"{name} must be at most 100 characters without NUL")
    return value


def _boolean(keywords: Mapping[str, Any], name: str) -> bool:
    value = keywords.get(name, False)
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def _choice(keywords: Mapping[str, Any], name: str, choices: Sequence[str], default: str) -> Any:
    value = keywords.get(name, default)
    if value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


# --- environment -----------------------------------------------------------------------------------
def _flag(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(text)


def _maybe(text: str) -> str | None:
    return None if text.lower() in ("", "none") else text


def _maybe_int(text: str) -> int | None:
    return None if text.lower() in ("", "none") else int(text)


PREFIX = "MILLPOND_POOL_"
VARIABLES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "MAX_WORKERS": ("max_workers", str),
    "MIN_WORKERS": ("min_workers", _maybe_int),
    "KIND": ("kind", str),
    "CONCURRENCY": ("concurrency", _maybe_int),
    "TIMEOUT": ("timeout", _maybe),
    "DEADLINE": ("deadline", _maybe),
    "IDLE_TIMEOUT": ("idle_timeout", str),
    "START_TIMEOUT": ("start_timeout", _maybe),
    "MAX_QUEUE": ("max_queue", _maybe_int),
    "WHEN_FULL": ("when_full", str),
    "MAX_QUEUE_AGE": ("max_queue_age", _maybe),
    "QUEUE": ("queue", str),
    "MAX_MEMORY": ("max_memory", _maybe),
    "MAX_AGE": ("max_age", _maybe),
    "MAX_TASKS_PER_CHILD": ("max_tasks_per_child", _maybe_int),
    "RETRIES_ON_CRASH": ("retries_on_crash", int),
    "PRELOAD": ("preload", lambda text: tuple(name for name in text.replace(",", " ").split() if name)),
    "CAPTURE_OUTPUT": ("capture_output", _flag),
    "VIEWS": ("views", _flag),
    "NAME": ("name", _maybe),
}


def from_environment(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The options that MILLPOND_POOL_* variables set; an unknown variable is an error."""
    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX)
        if name not in VARIABLES:
            known = {PREFIX + name: name for name in VARIABLES}
            raise OptionError(f"{variable} is not a variable of Millpond{_nearest(variable, known)}")
        option, read = VARIABLES[name]
        try:
            found[option] = read(text)
        except ValueError:
            raise OptionError(f"{variable}={text!r} cannot be read as {option}") from None
    return found

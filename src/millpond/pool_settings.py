"""What an app says about the pools of its nodes: `app.pool("images", workers=(1, 8))`, checked at once.

Values only. How many workers there are at a moment is the node's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from millpond.errors import OptionError
from millpond.options import check_queue, check_whole, limit, nearest
from millpond.units import size_in_bytes

if TYPE_CHECKING:
    from millpond.rules.scaling.records import Policy

Kind = Literal["process", "thread", "async"]
Duration = float | timedelta | str
MOST_WORKERS = 1024
MOST_CONCURRENCY = 1024
CONCURRENCY = {"process": 1, "thread": 8, "async": 100}
HEAVIEST = 1e6


class PoolKeywords(TypedDict, total=False):
    """What `app.pool(name, ...)` accepts."""

    workers: int | tuple[int, int]
    kind: Kind
    concurrency: int
    max_wait: Duration | None
    queues: Sequence[str]
    policy: Policy | None
    warm: int
    weight: float
    shadow: bool
    idle_timeout: Duration | None
    max_memory: int | str | None
    max_tasks_per_child: int | None
    max_age: Duration | None
    timeout: Duration


class PoolSettings(NamedTuple):
    """A pool as the app describes it."""

    name: str
    queues: tuple[str, ...]
    least: int
    most: int
    kind: Kind = "process"
    concurrency: int = 1  # jobs at once in one worker
    max_wait: float | None = None  # the wait that people accept
    idle_timeout: float | None = None  # None: as long as starting another one is worth
    max_memory: int | None = None
    max_tasks_per_child: int | None = None
    max_age: float | None = None
    policy: Policy | None = None  # how many workers; None: for `max_wait`
    warm: int = 0  # idle workers to have beside the busy ones
    weight: float = 1.0  # its part where pools share what is scarce
    shadow: bool = False  # the policy only recommends, and the pool grows while work waits
    timeout: float | None = None  # of jobs whose task sets none; None: the usual one


def pool_settings(name: str, options: Mapping[str, Any]) -> PoolSettings:
    """The settings of one pool, or an OptionError that says what would do."""
    check_queue(name)
    for option in options:
        if option not in PoolKeywords.__annotations__:
            raise TypeError(f"a pool has no option {option!r}{nearest(option, PoolKeywords.__annotations__)}")
    kind = options.get("kind", "process")
    if kind not in CONCURRENCY:
        raise OptionError(f"kind must be 'process', 'thread' or 'async', not {kind!r:.80}")
    least, most = _workers(options.get("workers"), kind)
    policy = _policy(options.get("policy"), options.get("max_wait"))
    memory = options.get("max_memory")
    budget = options.get("max_tasks_per_child")
    return PoolSettings(
        name=name,
        queues=_queues(name, options.get("queues")),
        least=least,
        most=most,
        kind=kind,
        concurrency=_concurrency(options.get("concurrency"), kind),
        max_wait=limit(options.get("max_wait"), "max_wait") or getattr(policy, "max_wait", None),
        idle_timeout=limit(options.get("idle_timeout"), "idle_timeout"),
        max_memory=None if memory is None else size_in_bytes(memory, name="max_memory"),
        max_tasks_per_child=None if budget is None else check_whole(budget, "max_tasks_per_child", 1, 2**53),
        max_age=limit(options.get("max_age"), "max_age"),
        policy=policy,
        warm=check_whole(options.get("warm", 0), "warm", 0, most),
        weight=_weight(options.get("weight", 1.0)),
        shadow=_yes_or_no(options.get("shadow", False), "shadow"),
        timeout=_timeout(options),
    )


def default_settings(queue: str, *, all_async: bool) -> PoolSettings:
    """For a queue that nobody has said anything about: coroutines share one worker, the rest the cores."""
    return pool_settings(queue, {"kind": "async"} if all_async else {})


def _workers(value: Any, kind: str) -> tuple[int, int]:
    if value is None:
        from millpond.system.cores import usable_cores  # the pool's own count: what the container allows

        return (1, 1) if kind == "async" else (1, max(2, usable_cores()))
    pair = value if isinstance(value, tuple | list) else (value, value)
    if len(pair) != 2:
        raise OptionError(f"workers must be a number or (min, max), not {value!r:.80}")
    least = check_whole(pair[0], "workers", 0, MOST_WORKERS)
    most = check_whole(pair[1], "workers", 1, MOST_WORKERS)
    if least > most:
        raise OptionError(f"workers=({least}, {most}): the minimum is above the maximum")
    return least, most


def _policy(value: Any, max_wait: Any) -> Policy | None:
    if value is None:
        return None
    if isinstance(value, type) or not callable(getattr(value, "decide", None)):
        raise OptionError(
            f"policy must be such as ScaleForWait(10), ScaleByDepth(up=20) or Fixed(4), not {value!r:.80}"
        )
    if max_wait is not None and hasattr(value, "max_wait"):
        raise OptionError(f"max_wait is given twice: to the pool and in {value!r:.80}. Keep one of them")
    if hasattr(value, "max_wait") and hasattr(value, "_replace"):
        value = value._replace(max_wait=limit(value.max_wait, "max_wait"))  # "10s" is welcome there, too
    policy: Policy = value
    return policy


def _weight(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= HEAVIEST:
        raise OptionError(f"weight must be a number above 0, not {value!r:.80}")
    return float(value)


def _yes_or_no(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be True or False, not {value!r:.80}")
    return value


def _timeout(options: Mapping[str, Any]) -> float | None:
    """Of the jobs whose tasks set none. A pool cannot lift the limit of all of them; a task can."""
    if "timeout" not in options:
        return None
    if options["timeout"] is None:
        raise OptionError(
            "timeout of a pool must be a duration, such as '30s': leave it out for one hour, or give "
            "timeout=None to the tasks that may run without a limit"
        )
    return limit(options["timeout"], "timeout")


def _concurrency(value: Any, kind: str) -> int:
    if value is None:
        return CONCURRENCY[kind]
    number = check_whole(value, "concurrency", 1, MOST_CONCURRENCY)
    if kind == "process" and number != 1:
        raise OptionError("a worker of kind 'process' runs one job at a time: use kind='thread' or 'async'")
    return number


def _queues(name: str, value: Iterable[str] | None) -> tuple[str, ...]:
    if value is None:
        return (name,)
    if isinstance(value, str):
        raise OptionError(f"queues must be a list of names, such as [{value!r}], not {value!r}")
    queues = tuple(dict.fromkeys(check_queue(queue) for queue in value))
    if not queues:
        raise OptionError(f"pool {name!r} must serve at least one queue")
    return queues

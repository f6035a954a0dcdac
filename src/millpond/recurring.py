"""A task with a cadence: what `@app.recurring(...)` accepts, checked, in the form the rules understand.

Nothing here looks at a clock or a store. What concerns several tasks at once (unknown names, cycles) is
checked by `check_all`, when every one of them is known.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypedDict, TypeVar, get_args, overload

from millpond.errors import ArgumentsRefused, OptionError
from millpond.job import Instant, NewJob, Slot
from millpond.options import Duration, Resources, Retry, check_text, check_whole, duration, limit, nearest
from millpond.rules.recurring import dependencies, exclusion
from millpond.rules.recurring.breaker import BreakerRule
from millpond.rules.recurring.cadence import (
    Cadence,
    Every,
    cron,
    describe,
    every,
    falls_on,
    period_at,
    spread,
)
from millpond.rules.recurring.continuous import RestartRule
from millpond.rules.recurring.dependencies import Dependency
from millpond.rules.recurring.due_ticks import AllMissed, all_missed, policy
from millpond.rules.recurring.triggers import TriggerRule
from millpond.task import Arguments, AsyncTask, Task
from millpond.units import shown

if TYPE_CHECKING:
    from millpond.app import App

__all__ = ["RecurringTask", "all_missed", "check_all", "fresh", "not_running", "same_tick", "success_since"]

P = ParamSpec("P")
R = TypeVar("R")
Mode = Literal["scheduled", "triggered", "continuous"]
OnMissing = Literal["wait", "skip", "run"]
First = Literal["period", "now"]
Other = Task[..., Any] | str
ALL_AT_ONCE = "recurring:*"  # the slot that every tick holds while max_concurrent is set
ONCE = "recurring tick"  # the unique key of a task whose ticks never overlap
ON_TIME = (
    "first",
    "jitter",
    "misfire",
    "depends_on",
    "on_missing",
    "wait_for",
)  # what only a cadence gives meaning to


class RecurringKeywords(TypedDict, total=False):
    """What `@app.recurring(...)` accepts."""

    every: Duration
    cron: str
    mode: Literal["triggered", "continuous"]
    timezone: str
    gap: Literal["end", "skip"]
    fold: Literal["first", "second", "both"]
    first: First
    jitter: Duration
    misfire: Literal["skip", "latest", "all"] | AllMissed
    overlap: Literal["skip", "queue", "allow"]
    start_deadline: Duration | None
    depends_on: Iterable[Other | Dependency]
    on_missing: OnMissing
    wait_for: Duration
    blocks: Iterable[Other | Slot]
    max_failures: int | None
    probe_after: Duration | None
    debounce: Duration
    enabled: bool
    name: str
    queue: str
    priority: int
    timeout: Duration | None
    retry: Retry
    resources: Resources
    aliases: Iterable[str]


OWN = set(RecurringKeywords.__annotations__) - {
    *("name", "queue", "priority", "timeout", "retry", "resources", "aliases")
}


# --- what a task may depend on ---------------------------------------------------------------------------
def success_since(other: Other, *, on_missing: OnMissing = "wait") -> Dependency:
    """It must have succeeded since my last tick began. What a bare task in `depends_on` means."""
    return Dependency(name_of_other(other), "success_since", on_missing=_on_missing(on_missing))


def not_running(other: Other, *, on_missing: OnMissing = "wait") -> Dependency:
    """It must not be running when my tick is let go. For exclusion use `blocks`."""
    return Dependency(name_of_other(other), "not_running", on_missing=_on_missing(on_missing))


def same_tick(other: Other, *, on_missing: OnMissing = "wait") -> Dependency:
    """Its tick of the same instant, or the last one before it, must have succeeded."""
    return Dependency(name_of_other(other), "same_tick", on_missing=_on_missing(on_missing))


def fresh(other: Other, age: Duration, *, on_missing: OnMissing = "wait") -> Dependency:
    """Its last success must be younger than `age`."""
    most = duration(age, "fresh")
    return Dependency(name_of_other(other), "fresh", fresh_for=most, on_missing=_on_missing(on_missing))


def name_of_other(other: Any) -> str:
    """The name of a task that was given as itself or by name."""
    if not isinstance(other, Task | str):
        raise OptionError(
            f"{shown(other)} is not a recurring task: give what @app.recurring(...) returned, or its name"
        )
    return check_text(other.name if isinstance(other, Task) else other, "the name of a recurring task", 200)


def _on_missing(value: Any) -> OnMissing:
    if value not in get_args(OnMissing):
        raise OptionError(f"on_missing must be 'wait', 'skip' or 'run', not {shown(value)}")
    return value  # type: ignore[no-any-return]


def _first(value: Any) -> First:
    if value not in get_args(First):
        raise OptionError(f"first must be 'period' or 'now', not {shown(value)}")
    return value  # type: ignore[no-any-return]


# --- the task --------------------------------------------------------------------------------------------
class RecurringTask(Task[P, R]):
    """A task that comes back: on a cadence, when triggered, or without end. One run of it is a tick."""

    def __init__(self, app: App, function: Callable[P, Any], options: RecurringKeywords) -> None:
        for name in options:
            if name not in RecurringKeywords.__annotations__:
                hint = nearest(name, RecurringKeywords.__annotations__)
                raise TypeError(f"a recurring task has no option {name!r}{hint}")
        self.mode: Mode = _mode(options)
        given: dict[str, Any] = {"retry": Retry(attempts=1), **options}
        if self.mode == "continuous":  # each start is a tick: its own rule says when the next one follows
            given = {"retry": Retry(attempts=1, max_crashes=1), **options, "timeout": None}
        plain = {name: value for name, value in given.items() if name not in OWN}
        super().__init__(app, function, plain)  # type: ignore[arg-type]
        self.cadence = _cadence(options)
        self._take(options)
        _check_together(self, options)
        blocks = (*self.blocks, *self.shared)
        named = {"depends_on": self.dependencies, "blocks": blocks}  # no task travels with another
        self.given = {**options, **{name: value for name, value in named.items() if value}}  # type: ignore[typeddict-item]
        self.is_enabled: bool = options.get("enabled", True)
        if not isinstance(self.is_enabled, bool):
            raise OptionError(f"enabled must be True or False, not {shown(self.is_enabled)}")
        self.takes_payloads = self.mode == "triggered" and bool(self.signature.names)
        self.no_arguments = self.payload_of([]) if self.takes_payloads else self._check_call()

    def _take(self, options: RecurringKeywords) -> None:
        """Read the options that are ours alone."""
        self.begins_at_once = _first(options.get("first", "period")) == "now"
        self.offset = spread(self.name, duration(options.get("jitter", 0.0), "jitter"))
        self.policy = policy(
            misfire=options.get("misfire", "latest"),
            start_deadline=limit(options.get("start_deadline"), "start_deadline"),
            overlap=options.get("overlap", "skip"),
        )
        usual = _on_missing(options.get("on_missing", "wait"))
        self.dependencies = tuple(
            other if isinstance(other, Dependency) else success_since(other, on_missing=usual)
            for other in _listed(options.get("depends_on", ()), "depends_on")
        )
        self.wait_for = limit(options.get("wait_for"), "wait_for")
        blocks = _listed(options.get("blocks", ()), "blocks")
        self.blocks = tuple(name_of_other(other) for other in blocks if not isinstance(other, Slot))
        self.shared = _shared([other for other in blocks if isinstance(other, Slot)])
        self.breaker_rule = _breaker(options, self.mode)
        self.trigger_rule = TriggerRule(debounce=duration(options.get("debounce", 0.0), "debounce"))
        tries = self.retry.attempts + self.retry.max_crashes - 1
        self.restart_rule = RestartRule(at_once=min(tries, RestartRule().start_limit))

    def payload_of(self, payloads: Sequence[Any]) -> bytes:
        """The arguments of a triggered run: a list of what its triggers brought, if it takes one."""
        try:
            return self.signature.encode((list(payloads),) if self.takes_payloads else (), {})
        except ArgumentsRefused as error:
            raise OptionError(
                f"{self.name} is triggered, so it takes nothing or one list of payloads: {error}"
            ) from None

    def _check_call(self) -> bytes:
        try:
            return self.signature.encode((), {})
        except ArgumentsRefused as error:
            raise OptionError(
                f"a recurring task is called without arguments: give those of {self.name} defaults ({error})"
            ) from None

    @property
    def exclusion(self) -> tuple[Slot, ...]:
        """The slots that every run of it holds, as all tasks of the app together say."""
        return self.app.orchestrator.exclusions.slots[self.name]

    @property
    def overlaps(self) -> bool:
        """May two of its ticks run at a time?"""
        return self.policy.overlap == "allow"

    def described(self) -> str:
        """When it runs, in words."""
        return self.mode if self.cadence is None else describe(self.cadence)

    def new_job(self, arguments: Arguments, options: Mapping[str, Any]) -> NewJob:
        """Also a job that is enqueued by hand keeps away from what it blocks."""
        job = super().new_job(arguments, options)
        return _with_slots(job, self.exclusion)

    def __repr__(self) -> str:
        return f"<RecurringTask {self.name}, {self.described()}>"


class AsyncRecurringTask(RecurringTask[P, R], AsyncTask[P, R]):
    """A recurring task that is an `async def`."""


class RecurringDecorator:
    """`@app.recurring(...)`: turns a function into a RecurringTask that keeps its types."""

    def __init__(self, app: App, options: RecurringKeywords) -> None:
        self._app = app
        self._options = options

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncRecurringTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> RecurringTask[P, R]: ...
    def __call__(self, function: Callable[P, Any], /) -> RecurringTask[P, Any]:
        """Make a recurring task of the function and register it."""
        kind = AsyncRecurringTask if inspect.iscoroutinefunction(function) else RecurringTask
        task: RecurringTask[P, Any] = kind(self._app, function, self._options)
        _check_capacities(task)
        self._app.register(task)
        return task


def _with_slots(job: NewJob, slots: tuple[Slot, ...]) -> NewJob:
    if not slots:
        return job
    from msgspec.structs import replace

    return replace(job, slots=(*job.slots, *slots))


def _mode(options: RecurringKeywords) -> Mode:
    said = [name for name in ("every", "cron", "mode") if name in options]
    if len(said) != 1:
        many = " and ".join(said) if said else "none of them"
        raise OptionError(
            "a recurring task needs one of every='60s', cron='0 3 * * *', mode='triggered' or "
            f"mode='continuous'; given: {many}"
        )
    if said != ["mode"]:
        return "scheduled"
    if options["mode"] not in ("triggered", "continuous"):
        raise OptionError(f"mode must be 'triggered' or 'continuous', not {shown(options['mode'])}")
    return options["mode"]


def _cadence(options: RecurringKeywords) -> Cadence | None:
    if "cron" in options:
        named = {name: options[name] for name in ("timezone", "gap", "fold") if name in options}
        return cron(options["cron"], **named)
    for name in ("timezone", "gap", "fold"):
        if name in options:
            raise OptionError(f"{name} is for cron=...: an interval is the same in every time zone")
    return every(options["every"]) if "every" in options else None


def _breaker(options: RecurringKeywords, mode: Mode) -> BreakerRule:
    usual = None if mode == "continuous" else 5  # what runs for ever has its own back-off and start limit
    most = options.get("max_failures", usual)
    wait = limit(options.get("probe_after"), "probe_after")
    if most is None:
        if wait is not None:
            raise OptionError("probe_after is for a task that max_failures can stop: give both or neither")
        return BreakerRule(max_failures=0)
    return BreakerRule(max_failures=check_whole(most, "max_failures", 1, 1_000_000), probe_after=wait)


def _listed(value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, str | Task) or not isinstance(value, Iterable):
        raise OptionError(
            f"{name} must be a list of tasks or names, such as [fetch_data], not {shown(value)}"
        )
    return tuple(value)


def _shared(slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """The named slots in `blocks`, checked."""
    names = [check_text(slot.name, "the name of a slot", 200) for slot in slots]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"blocks names slot {name!r} twice: a run holds one unit of it")
    for slot in slots:
        check_whole(slot.capacity, f"the capacity of slot {slot.name!r}", 1, 1_000_000)
    return tuple(slots)


def _check_capacities(task: RecurringTask[..., Any]) -> None:
    """Refuse a slot that another task has with another capacity."""
    others = task.app.tasks.values() if task.shared else ()
    known = {other.name: other.shared for other in others if isinstance(other, RecurringTask)}
    exclusion.capacities_of({**known, task.name: task.shared})


def _check_together(task: RecurringTask[..., Any], options: RecurringKeywords) -> None:
    """Refuse what makes no sense together."""
    if task.mode != "scheduled":
        for name in ON_TIME:
            if name in options:
                raise OptionError(f"{name} needs every=... or cron=...: a {task.mode} task has no cadence")
    if "debounce" in options and task.mode != "triggered":
        raise OptionError("debounce is for mode='triggered': it waits until the triggers have calmed down")
    if task.mode == "continuous":
        _check_continuous(options)
    _check_waiting(task, options)
    if isinstance(task.cadence, Every) and task.offset and "jitter" in options:
        period = period_at(task.cadence, 0)
        if duration(options["jitter"], "jitter") > period:
            raise OptionError(f"jitter must not be longer than the period of {period:g} s")


def _check_waiting(task: RecurringTask[..., Any], options: RecurringKeywords) -> None:
    for name in ("on_missing", "wait_for"):
        if name in options and not task.dependencies:
            raise OptionError(f"{name} is for a task with depends_on=[...]: there is nothing to wait for")
    if task.overlaps and task.blocks:
        raise OptionError("overlap='allow' and blocks contradict each other: what excludes others runs once")


def _check_continuous(options: RecurringKeywords) -> None:
    if options.get("timeout") is not None:
        raise OptionError("a continuous task runs for ever: it has no timeout")
    for name in ("overlap", "start_deadline"):
        if name in options:
            raise OptionError(f"{name} is not for mode='continuous': exactly one run of it is kept alive")


# --- all of them together --------------------------------------------------------------------------------
class Exclusions(NamedTuple):
    """Who keeps away from whom."""

    pairs: frozenset[tuple[str, str]]
    shared: Mapping[str, tuple[Slot, ...]]  # the named slots, by the name of the task
    slots: Mapping[str, tuple[Slot, ...]]  # all that a run holds, by the name of the task


def check_all(tasks: Mapping[str, RecurringTask[..., Any]], max_concurrent: int | None = None) -> Exclusions:
    """Check what tasks say about each other, and find out what each must hold while it runs.

    Raises OptionError for an unknown name, a cycle, a block that contradicts an overlap, two capacities.
    """
    timeless = {name for name, task in tasks.items() if task.cadence is None}
    endless = {name for name, task in tasks.items() if task.mode == "continuous"}
    dependencies.check({name: task.dependencies for name, task in tasks.items()}, tasks, timeless, endless)
    blocks = {name: task.blocks for name, task in tasks.items() if task.blocks}
    pairs = exclusion.pairs_of(blocks, tasks)
    exclusion.check_endless(pairs, endless)
    for name in {name for pair in pairs for name in pair}:
        if tasks[name].overlaps:
            raise OptionError(f"{name} has overlap='allow' and is in blocks: what excludes others runs once")
    shared = {name: task.shared for name, task in tasks.items() if task.shared}
    exclusion.capacities_of(shared)
    slots = {name: _slots(task, pairs, max_concurrent) for name, task in tasks.items()}
    if max_concurrent is not None:
        all_ticks = Slot(exclusion.ALL_TICKS, max_concurrent)
        timed = {name: (*task.shared, all_ticks) for name, task in tasks.items() if task.mode == "scheduled"}
        shared = {**shared, **timed}
    return Exclusions(pairs, shared, slots)


def never_run(tasks: Mapping[str, RecurringTask[..., Any]]) -> Iterator[str]:
    """Sentences about tasks that look once for what cannot be so at that moment: they are always skipped."""
    for name, task in tasks.items():
        for dependency in task.dependencies:
            other = tasks.get(dependency.on)
            if dependency.on_missing != "skip" or dependency.mode == "fresh" or other is None:
                continue
            if task.cadence is None or other.cadence is None or task.offset > other.offset:
                continue
            if falls_on(task.cadence, other.cadence):
                yield (
                    f"{name!r} never runs: each time it is due, {dependency.on!r} is due as well and has not "
                    "ended yet, and on_missing='skip' does not wait for that; use on_missing='wait', or "
                    "another cadence"
                )


def _slots(
    task: RecurringTask[..., Any], pairs: frozenset[tuple[str, str]], most: int | None
) -> tuple[Slot, ...]:
    own = exclusion.slots_of(task.name, pairs, task.policy.overlap, None, task.shared)
    if most is None or task.mode == "continuous":  # what never ends would take a place for ever
        return own
    return (*own, Slot(ALL_AT_ONCE, most))


def wait_seconds(task: RecurringTask[..., Any], at: Instant) -> float:
    """How long a tick waits for what it depends on: its own limit, or until its next instant is due."""
    if task.wait_for is not None:
        return task.wait_for
    return math.inf if task.cadence is None else period_at(task.cadence, at)

"""Lets go of the ticks that are due and held back: when what they depend on is as it must be, and when it
is their turn among those that exclude each other.

The decisions are those of `rules/recurring/dependencies.py` and `rules/recurring/exclusion.py`; the slots of
the store make sure of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from millpond.job import MICROSECONDS, Instant
from millpond.orchestrator.ledger import Entry, Waiting
from millpond.orchestrator.tick import SECOND, Draft
from millpond.recurring import Exclusions, RecurringTask, wait_seconds
from millpond.rules.recurring import exclusion
from millpond.rules.recurring.breaker import phase
from millpond.rules.recurring.cadence import latest
from millpond.rules.recurring.dependencies import Asker, Other, TickFate, Verdict, judge

if TYPE_CHECKING:
    from millpond.orchestrator.open_ticks import Watch

RESULTS: dict[str, TickFate] = {"completed": "succeeded", "dead": "failed"}


class Held(NamedTuple):
    """A tick that is due, of a task that may not simply run."""

    task: RecurringTask[..., Any]
    entry: Entry
    tick: Waiting


class Gatekeeper:
    """Looks at the ticks that are held back."""

    def __init__(
        self,
        tasks: dict[str, RecurringTask[..., Any]],
        entry_of: Callable[[str], Entry | None],
        closed: Callable[[str, Instant], str | None],
        watch: Watch,
        exclusions: Exclusions,
    ) -> None:
        self._tasks = tasks
        self._entry_of = entry_of
        self._closed = closed  # why a task may not run at all
        self._watch = watch
        self._pairs, self._shared = exclusions.pairs, exclusions.shared
        self._exclusive = {name for pair in self._pairs for name in pair} | self._shared.keys()
        self._holders: dict[str, set[str]] = {}  # of each named slot, the tasks that may hold it
        for name, slots in self._shared.items():
            for slot in slots:
                self._holders.setdefault(slot.name, set()).add(name)

    def holds(self, task: RecurringTask[..., Any]) -> bool:
        """Must its ticks pass here?"""
        return bool(task.dependencies) or task.name in self._exclusive

    def awaited(self, names: Iterable[str]) -> set[str]:
        """The tasks whose ends those of these names wait for."""
        found: set[str] = set()
        slots: set[str] = set()
        for name in names:
            found.update(dependency.on for dependency in self._tasks[name].dependencies)
            found.update(exclusion.conflicts(self._pairs).get(name, ()))
            slots.update(slot.name for slot in self._shared.get(name, ()))
        return found.union(*(self._holders[slot] for slot in slots))

    def look(self, held: Iterable[Held], now: Instant) -> tuple[list[Draft], dict[str, list[Waiting]]]:
        """What goes or is skipped now; and what is held on, by task, each with its reason."""
        drafts: list[Draft] = []
        kept: dict[str, list[Waiting]] = {}
        ready: list[Held] = []
        for one in held:
            verdict = self._judged(one, now)
            if verdict.decision == "run":
                ready.append(one)
            elif verdict.decision == "skip":
                drafts.append(Draft(one.task, one.tick.at, one.tick.due_at, verdict.reason))
            else:
                kept.setdefault(one.task.name, []).append(_with_reason(one.tick, verdict.reason))
        drafts += self._turns(ready, kept, now)
        return drafts, kept

    def _turns(self, ready: list[Held], kept: dict[str, list[Waiting]], now: Instant) -> list[Draft]:
        """Among those that exclude each other or share a slot, who is first."""
        start = [one for one in ready if one.task.name not in self._exclusive]
        asking = {
            exclusion.Waiting(one.task.name, one.task.priority, one.tick.due_at): one
            for one in ready
            if one.task.name in self._exclusive
        }
        busy = [name for name in self._watch.names() if name in self._exclusive and asking]
        occupied = {name: self._watch.unfinished(name) for name in busy}
        holders = self._running(now) if asking else {}
        released = exclusion.release(list(asking), occupied, self._pairs, now, self._shared, holders=holders)
        for held in released.held:
            one = asking[held.tick]
            kept.setdefault(one.task.name, []).append(_with_reason(one.tick, held.reason))
        start += [asking[tick] for tick in released.start]
        return [Draft(one.task, one.tick.at, one.tick.due_at, is_held=True) for one in start]

    def _running(self, now: Instant) -> dict[str, list[str]]:
        """Who has a place under max_concurrent: what runs, and what was let go a moment ago.

        A tick that was let go long ago and does not run has none: its queue is paused, say, or it waits for
        its next attempt. If it counted, a few such ticks would stop every other recurring task. Shown by
        test_ticks_of_a_queue_that_is_paused_take_no_places in tests/recurring/test_max_concurrent.py.
        """
        tasks = self._holders.get(exclusion.ALL_TICKS)
        if tasks is None:
            return {}
        busy = [name for name in self._watch.names() if name in tasks]
        return {exclusion.ALL_TICKS: [name for name in busy for _ in range(self._watch.placed(name, now))]}

    def _judged(self, one: Held, now: Instant) -> Verdict:
        task, entry, tick = one
        closed = self._closed(task.name, now)
        is_probe = closed == "breaker" and entry.breaker.probing == tick.at
        if closed is not None and not is_probe:
            return Verdict("skip", closed)
        if not task.dependencies:
            return Verdict("run")
        wait = min(wait_seconds(task, tick.at), 1e10)
        asker = Asker(task.name, tick.at, entry.started_at, tick.due_at + round(wait * MICROSECONDS))
        others = [(dependency, self._other(dependency.on, tick.at, now)) for dependency in task.dependencies]
        return judge(asker, others, now)

    def _other(self, name: str, at: Instant, now: Instant) -> Other:
        task, entry = self._tasks[name], self._entry_of(name) or Entry()
        return Other(
            running=self._watch.unfinished(name) + len(entry.waiting),  # what is in line will run
            succeeded_at=entry.succeeded_at,
            disabled=self._closed(name, now) == "disabled",
            broken=phase(entry.breaker, now) != "closed",
            tick=self._fate(task, entry, at),
        )

    def _fate(self, task: RecurringTask[..., Any], entry: Entry, at: Instant) -> TickFate:
        """What became of its tick of this instant, or of the last one before."""
        same = None if task.cadence is None else latest(task.cadence, at)
        if same is None:
            return "absent"
        names = (same, same + SECOND)
        if any(tick.at in names for tick in entry.waiting) or any(at in names for at in entry.unfinished):
            return "pending"
        for tick in reversed(entry.recent):
            if tick.at in names:
                return RESULTS.get(tick.result, "skipped")
        return "pending" if entry.cursor < same else "skipped"


def _with_reason(tick: Waiting, reason: str) -> Waiting:
    return Waiting(tick.at, tick.due_at, reason)

"""Puts verdicts into the store: a row for each tick, its job with it, and what follows for the task.

A row that is there already is another planner's, before us or beside us: its job is watched like our own, and
if it turns out to have none, we say why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from millpond.errors import StoreUnavailable
from millpond.job import MICROSECONDS, Instant
from millpond.orchestrator.events import Happening, TickLate, TickMissed
from millpond.orchestrator.ledger import Entry, Ledger, Recent
from millpond.orchestrator.open_ticks import Watch
from millpond.orchestrator.skip_log import Notes, Skipped
from millpond.orchestrator.tick import Draft
from millpond.orchestrator.tick_ids import tick_id
from millpond.orchestrator.tick_results import has_ended
from millpond.rules.recurring.breaker import TickEnd, after_tick, begin_probe

if TYPE_CHECKING:
    from millpond.orchestrator.release import Gatekeeper
    from millpond.store.protocol import Store

MOST = 500  # ticks in one step of the store
LATE = 1.0  # seconds after which a tick is told to be late
UNPLANNED = ("missed", "late")


class Recorder:
    """Writes ticks."""

    def __init__(self, store: Store, ledger: Ledger, watch: Watch, notes: Notes, gates: Gatekeeper) -> None:
        self._store = store
        self._ledger = ledger
        self._watch = watch
        self._notes = notes
        self._gates = gates
        self.tell: Callable[[Happening], object] = lambda _: None
        self.may_plan: Callable[[], bool] = lambda: True

    def record(self, drafts: Sequence[Draft], now: Instant) -> None:
        """Record ticks with their jobs."""
        for first in range(0, len(drafts), MOST):
            part = drafts[first : first + MOST]
            if not self.may_plan():  # we stood still: what was decided then is not to be done now
                raise StoreUnavailable("the lease of this planner has run out")
            results = self._store.plan([draft.tick(now) for draft in part])
            enqueued_at = self._store.clock.now()
            late: list[Draft] = []
            missed: list[Draft] = []
            disputed: list[Draft] = []
            for draft, is_new in zip(part, results, strict=True):
                if not is_new and self._is_disputed(draft):
                    disputed.append(draft)
                elif not is_new:
                    self.follow(draft.task.name, draft.at, now, draft.reason)
                elif draft.reason:
                    self._skipped(draft, now)
                    missed += [draft] if draft.reason in UNPLANNED else []
                elif self._started(draft, enqueued_at) > LATE and not self._gates.holds(draft.task):
                    late.append(draft)
            self._tell_late(late, enqueued_at)
            self._tell_missed(missed)
            self.record(self._settled(disputed, now), now)

    def _is_disputed(self, draft: Draft) -> bool:
        dispute = self._ledger.need(draft.task.name).dispute
        return dispute is not None and draft.at <= dispute.until and not draft.is_second

    def _may_run_after_all(self, draft: Draft, entry: Entry) -> bool:
        """Did only a wrong clock decide that this instant does not run? Without a job it may have run all
        the same, and the job have been deleted since."""
        dispute = entry.dispute
        if draft.reason or dispute is None or draft.at <= dispute.since:
            return False
        return self._notes.was_skipped(draft.task.name, draft.at)

    def _settled(self, drafts: Sequence[Draft], now: Instant) -> list[Draft]:
        """Of instants that were planned while the clock was ahead, those which are to run all the same.

        An instant whose tick has a job has had its run: it gets no second one, and how the first one
        ended was learnt then. One that the wrong clock skipped ("missed", a hundred of them at a time) has
        none, and would never run though the right clock only comes to it now. It runs under its second
        name, which is the same for all who plan, so that it, too, is recorded once. Shown by
        tests/recurring/test_wrong_clock.py.
        """
        jobs = self._store.get([tick_id(draft.task.name, draft.at) for draft in drafts]) if drafts else []
        again: list[Draft] = []
        for draft, job in zip(drafts, jobs, strict=True):
            name, entry = draft.task.name, self._ledger.need(draft.task.name)
            is_probe = entry.breaker.probing == draft.at
            if not has_ended(job):
                self.follow(name, draft.at, now)
            elif job is None and self._may_run_after_all(draft, entry):
                again.append(draft.second)
                if is_probe:
                    entry.breaker = begin_probe(entry.breaker, draft.second.at)
            elif is_probe:
                end = TickEnd(draft.at, None, "neutral")
                entry.breaker = after_tick(entry.breaker, draft.task.breaker_rule, end, name, now)
            self._ledger.change(name)
        return again

    def follow(self, name: str, at: Instant, now: Instant, doubt: str = "") -> None:
        """Watch a tick that was planned by somebody else; `doubt` is why it did not run, if it did not."""
        entry = self._ledger.need(name)
        if at not in entry.unfinished and all(tick.at != at for tick in entry.recent):
            entry.unfinished = (*entry.unfinished, at)
            if doubt:
                entry.doubts = (*entry.doubts, Recent(at, doubt))
            self._watch.add(name, [at], now)
            self._ledger.change(name)

    def _tell_late(self, drafts: Sequence[Draft], now: Instant) -> None:
        """One word about all of a round: a store that was slow made thousands late, for one reason."""
        if drafts:
            draft = min(drafts, key=lambda draft: draft.due_at)
            late = (now - draft.due_at) / MICROSECONDS
            self.tell(TickLate(draft.task.name, draft.at, late, len(drafts)))

    def _tell_missed(self, drafts: Sequence[Draft]) -> None:
        """One word about each task: a long absence has a hundred rows, and one reason."""
        told: dict[tuple[str, str], tuple[Instant, int]] = {}
        for draft in drafts:
            name = draft.task.name, draft.reason
            told[name] = draft.at, told.get(name, (0, 0))[1] + draft.instants
        for (task, reason), (at, instants) in told.items():
            self.tell(TickMissed(task, at, reason, instants))

    def _started(self, draft: Draft, now: Instant) -> float:
        """Returns how many seconds late it is."""
        task, entry = draft.task, self._ledger.need(draft.task.name)
        entry.unfinished = (*entry.unfinished, draft.at)
        entry.late = round(max(0, now - draft.due_at) / MICROSECONDS, 3)
        self._watch.add(task.name, [draft.at], now)
        self._notes.conclude(task.name)
        self._ledger.change(task.name)
        return entry.late

    def _skipped(self, draft: Draft, now: Instant) -> None:
        task, entry = draft.task, self._ledger.need(draft.task.name)
        entry.skipped, entry.skipped_at = draft.reason, draft.at
        if entry.breaker.probing == draft.at:  # then the next tick is the probe
            end = TickEnd(draft.at, None, "neutral")
            entry.breaker = after_tick(entry.breaker, task.breaker_rule, end, task.name, now)
        line = Skipped(draft.at, draft.reason, draft.instants, draft.since)
        self._notes.skipped(task.name, line, now)
        self._ledger.change(task.name)

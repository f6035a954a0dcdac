"""The planner: looks which ticks are due, records them with their jobs, and learns what came of them.

One round after the other, whenever something is due. All decisions are those of the rules, all time is the
store's. After an error nothing that is in memory is believed: the next round begins with what is stored.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from millpond.errors import MillpondError
from millpond.job import MICROSECONDS, Instant
from millpond.orchestrator.clock_correction import correct, stranded
from millpond.orchestrator.due_queue import Agenda
from millpond.orchestrator.events import ClockCorrected, Happening, TriggersDropped
from millpond.orchestrator.ledger import Entry, Ledger, Waiting, shard_of
from millpond.orchestrator.open_ticks import Watch
from millpond.orchestrator.recorder import Recorder
from millpond.orchestrator.release import Gatekeeper, Held
from millpond.orchestrator.skip_log import Notes, Skipped
from millpond.orchestrator.switches import Switch, Switches
from millpond.orchestrator.tick import Draft
from millpond.orchestrator.tick_ids import tick_id
from millpond.orchestrator.tick_results import begun, ended, has_ended, why_not
from millpond.orchestrator.triggers import Batch, Inbox
from millpond.recurring import Exclusions, RecurringTask
from millpond.rules.recurring import continuous
from millpond.rules.recurring.breaker import begin_probe, enable, gate
from millpond.rules.recurring.cadence import next_after, recent
from millpond.rules.recurring.due_ticks import ROWS, Activity, Due, first, plan
from millpond.store.protocol import Filter, Store

logger = logging.getLogger("millpond")
MOST = 500  # tasks looked at in one round
HEAR_EVERY = round(0.5 * MICROSECONDS)  # between two looks at switches and triggers
LONGEST = MICROSECONDS  # between two rounds
FLUSH = 0.02  # seconds of a round for writing what is remembered
MOST_ROWS = 20_000  # for skipped instants after a long outage, of all tasks together

Tasks = dict[str, RecurringTask[..., Any]]


class Planner:
    """Plans the recurring tasks of one app."""

    def __init__(
        self,
        store: Store,
        app: str,
        tasks: Tasks,
        exclusions: Exclusions,
        *,
        tell: Callable[[Happening], object] = lambda _: None,
        may_plan: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._tell = tell
        self.ledger = Ledger(store, app)
        self.inbox = Inbox(store, app, tasks)
        self._notes = Notes(store)
        self._watch = Watch(store)
        self._switches = Switches(store, app)
        self._switched: dict[str, Switch] = {}
        self._gates = Gatekeeper(tasks, self.ledger.get, self._closed, self._watch, exclusions)
        self._recorder = Recorder(store, self.ledger, self._watch, self._notes, self._gates)
        self._recorder.tell, self._recorder.may_plan = tell, may_plan
        self._agenda = Agenda()
        self._held: dict[str, None] = {}  # tasks with ticks that are held back
        self._rows = max(1, min(ROWS, MOST_ROWS // max(1, len(tasks))))
        self._hear_at: Instant = 0
        self._flushed: dict[int, Instant] = {}
        self._hurries = False  # the next round writes all that is remembered, however long it takes
        self.is_ready = False

    # --- beginning and ending --------------------------------------------------------------------------
    def begin(self, read: int) -> None:
        """Take up where the last planner left off; `read` is how far it had dealt with triggers."""
        self.ledger.load()
        now = self._store.clock.now()  # not before the store has been asked something: it may be a server's
        self.inbox.begin(read)
        self._hear_at = 0
        self._agenda.clear()
        self._held.clear()
        self._take_up_all(self._tasks, now)
        for shard in self.ledger.dirty():  # when a task was first seen must not be forgotten
            self._flush(shard, now)
        self.is_ready = True

    def _take_up_all(self, names: Iterable[str], now: Instant) -> None:
        """Begin with these. What the clock that was wrong left behind is told once, for all of them."""
        ahead = [self._take_up(name, now) for name in names if name in self._tasks]
        wrong = [seconds for seconds in ahead if seconds]
        if wrong:
            self._tell(ClockCorrected(max(wrong), len(wrong)))

    def _take_up(self, name: str, now: Instant) -> float:
        """Begin with one task as it is remembered, or for the first time; returns by how many seconds it was
        ahead of the clock."""
        entry = self.ledger.get(name)
        if entry is None:  # what was due before it was first seen is not missed
            entry = _first_entry(self._tasks[name], now)
            self.ledger.put(name, entry)
        ahead = correct(self._tasks[name], entry, now)
        if ahead:
            self.ledger.change(name)
            self._cancel_stranded(name, entry, now)
        self._watch.forget(name)
        self._watch.add(name, entry.unfinished, now)
        if entry.waiting:
            self._held[name] = None
        self._put_in_line(name, entry, now)
        return ahead

    def _cancel_stranded(self, name: str, entry: Entry, now: Instant) -> None:
        """Ticks in line for a time that the wrong clock named: their task must not wait for them."""
        jobs = self._store.get([tick_id(name, at) for at in entry.unfinished])
        late = tuple(job.id for job in jobs if job is not None and stranded(job, now))
        if late:
            self._store.cancel(Filter(ids=late))

    def _put_in_line(self, name: str, entry: Entry, now: Instant) -> None:
        task = self._tasks[name]
        if task.cadence is not None:
            following = next_after(task.cadence, entry.cursor)
            if following is not None:
                self._agenda.put(name, following + (0 if entry.is_new else task.offset))
        elif task.mode == "continuous":
            self._agenda.put(name, self._restart_at(task, entry, now))

    def close(self) -> None:
        """Write down what is known."""
        was_ready, self.is_ready = self.is_ready, False
        self._notes.close()  # also from before the lead was lost: nobody else knows
        if was_ready:
            for shard in self.ledger.dirty():
                self.ledger.flush(shard)

    def rest(self) -> None:
        """Somebody else plans now: say what was not said yet, and believe nothing of what is remembered."""
        was_ready, self.is_ready = self.is_ready, False
        if was_ready:
            self._notes.close()

    # --- a round ---------------------------------------------------------------------------------------
    def round(self, now: Instant) -> Instant:
        """Do what is due; returns when to come again."""
        try:
            self._hear(now)
            due = self._agenda.take(now, MOST)
            self._learn(now, due)
            self._let_go(now)  # what has waited long enough makes room for the next tick
            self._recorder.record(list(self._planned(due, now)), now)
            self._run_triggers(now)
            self._let_go(now)
            self._write(now)
        except BaseException:
            self.is_ready = False
            raise
        return self._wake(now)

    def hurry(self) -> None:
        """Let nothing wait for its usual pause in the next round: time may stand still."""
        self._hear_at = 0
        self._flushed.clear()
        self._hurries = True
        self._watch.hurry()

    def _wake(self, now: Instant) -> Instant:
        wishes = [now + LONGEST, self._agenda.next(), self._watch.next_look(), self.inbox.next_due()]
        return min(wish for wish in wishes if wish is not None)

    def _hear(self, now: Instant) -> None:
        """What people have switched and triggered."""
        if now < self._hear_at <= now + HEAR_EVERY:
            return
        self._hear_at = now + HEAR_EVERY
        self._switched = self._switches.read()
        for name, switch in self._switched.items():
            entry = self.ledger.get(name)
            if entry is not None and name in self._tasks and entry.switch < switch.number:
                entry.switch = switch.number
                self._obey(name, entry, switch)
        for name, at in self.inbox.hear(now):
            self._recorder.follow(name, at, now)
        for name, number, reason in self.inbox.dropped():
            self._tell(TriggersDropped(name, number, reason))
            if name in self._tasks:
                entry = self.ledger.need(name)
                entry.skipped, entry.skipped_at = f"{reason}; triggers dropped: {number}", now
                self.ledger.change(name)

    def _obey(self, name: str, entry: Entry, switch: Switch) -> None:
        if switch.enabled:
            entry.breaker = enable()
        elif self._tasks[name].mode == "continuous" and entry.unfinished:  # it would not end by itself
            self._store.cancel(Filter(ids=tuple(tick_id(name, at) for at in entry.unfinished)))
        self.ledger.change(name)

    def _learn(self, now: Instant, due: Iterable[str]) -> None:
        """Look at the jobs of ticks: of those it is time for, and of all that matter in this round."""
        wanted = {name for name in due if name in self._watch.names()}
        wanted.update(name for name in self._gates.awaited(self._held) if name in self._watch.names())
        for tick, job in self._watch.look(now, wanted):
            entry = self.ledger.need(tick.name)
            if not has_ended(job):
                assert job is not None
                begun(entry, job, now)
                continue
            self._watch.drop(tick)
            task = self._tasks[tick.name]
            if job is None and not self._notes.is_said(tick.name, tick.at):
                self._notes.skipped(tick.name, Skipped(tick.at, why_not(entry, tick.at)), now)
            for happening in ended(task, entry, tick.at, job, now):
                self._tell(happening)
            if task.mode == "continuous":
                self._put_in_line(tick.name, entry, now)
            self.ledger.change(tick.name)

    # --- what is due -----------------------------------------------------------------------------------
    def _planned(self, names: Iterable[str], now: Instant) -> Iterator[Draft]:
        for name in names:
            task, entry = self._tasks[name], self.ledger.need(name)
            way = self._restarted if task.mode == "continuous" else self._scheduled
            try:
                yield from list(way(task, entry, now))
            except Exception:  # a bug in the rules about one task must not stop all others
                logger.exception("%s could not be planned; it is tried again", name)
                self._agenda.put(name, now + LONGEST)

    def _scheduled(self, task: RecurringTask[..., Any], entry: Entry, now: Instant) -> Iterator[Draft]:
        assert task.cadence is not None
        closed = self._closed(task.name, now)
        waiting = self._watch.waiting(task.name) + len(entry.waiting)
        activity = Activity(self._watch.running(task.name), waiting)
        due = Due(task.cadence, task.policy, task.offset, entry.cursor)
        is_first, entry.is_new = entry.is_new, False
        verdict = plan(first(due) if is_first else due, now, activity, closed, self._rows)
        entry.cursor = verdict.cursor
        if verdict.next_due_at is not None:
            self._agenda.put(task.name, verdict.next_due_at)
        ticks = [tick._replace(due_at=now) for tick in verdict.ticks] if is_first else verdict.ticks
        for tick in ticks:
            if not tick.is_run:
                reason = tick.reason or "missed"
                yield Draft(task, tick.at, tick.due_at, reason, 1 + tick.folded, tick.since)
                continue
            if self._is_turned_away(task.name, tick.at, now):
                yield Draft(task, tick.at, tick.due_at, "breaker")
            elif self._gates.holds(task):
                entry.waiting = (*entry.waiting, Waiting(tick.at, tick.due_at, ""))
                self._held[task.name] = None
            else:
                yield Draft(task, tick.at, tick.due_at)
        if verdict.ticks:
            self.ledger.change(task.name)

    def _restart_at(self, task: RecurringTask[..., Any], entry: Entry, now: Instant) -> Instant:
        return continuous.next_start(entry.restarts, task.restart_rule, task.name).at or now

    def _restarted(self, task: RecurringTask[..., Any], entry: Entry, now: Instant) -> Iterator[Draft]:
        """A continuous task that does not run is started, when its pause is over."""
        if task.name in self._watch.names():
            return  # its end puts it in line again
        at = self._restart_at(task, entry, now)
        if at > now or self._closed(task.name, now) is not None:
            self._agenda.put(task.name, max(at, now + LONGEST))
            return
        if self._is_turned_away(task.name, at, now):
            return
        entry.restarts = continuous.started(entry.restarts, task.restart_rule, now)
        yield Draft(task, at, at)

    def _is_turned_away(self, name: str, at: Instant, now: Instant) -> bool:
        """Is there a probe under way already? If there should be one, this tick is it."""
        entry = self.ledger.need(name)
        state = gate(entry.breaker, now)
        if state == "probe":
            entry.breaker = begin_probe(entry.breaker, at)
            self._flushed.pop(shard_of(name), None)  # written in this round: the next planner begins no other
        return state == "breaker"

    def _run_triggers(self, now: Instant) -> None:
        """Make ticks of gathered triggers whose time has come.

        They were accepted, so they leave the inbox only once their job is in the store. The store makes none
        while another tick of the task has not ended and ticks may not overlap: one that a trigger at once, in
        another process, has begun a moment ago is not known here yet. Then they wait for its end and are
        planned under another name. Shown by test_gathered_triggers_that_meet_a_run_wait_for_its_end in
        tests/recurring/test_triggers.py.
        """
        sent = list(self._triggered(now))
        self._recorder.record([draft for _, draft in sent], now)
        made = [(batch, draft) for batch, draft in sent if not draft.reason]
        jobs = self._store.get([tick_id(draft.task.name, draft.at) for _, draft in made]) if made else []
        for (batch, _), job in zip(made, jobs, strict=True):
            if job is None:
                batch.tries += 1
            else:
                self.inbox.taken(batch)

    def _triggered(self, now: Instant) -> Iterator[tuple[Batch, Draft]]:
        taken: set[str] = set()
        for batch in self.inbox.ready(now):
            task, entry = self._tasks[batch.name], self.ledger.need(batch.name)
            if task.policy.overlap == "skip" and (batch.name in self._watch.names() or batch.name in taken):
                continue  # they wait for the end of the one that runs
            state, at = gate(entry.breaker, now), batch.at(task.trigger_rule)
            if state == "breaker" and entry.breaker.probing is not None:
                continue  # the probe shows whether they run
            reason, content = "", None
            try:
                content = task.payload_of(batch.payloads)
            except MillpondError as error:  # the function takes others than it did when they were sent
                reason = f"its payloads were refused: {error}"
            if state == "breaker":
                reason = "its breaker was open"
            if reason:
                self.inbox.taken(batch)
                self._tell(TriggersDropped(batch.name, batch.pending.triggers, reason))
                reason += f"; triggers dropped: {batch.pending.triggers}"
            else:
                self._is_turned_away(batch.name, at, now)
                taken.add(batch.name)
            yield batch, Draft(task, at, at, reason, payload=content)

    def _closed(self, name: str, now: Instant) -> str | None:
        """Why a task may not run at all, whatever is due: "disabled" or "breaker"."""
        task, switch = self._tasks[name], self._switched.get(name)
        if not (task.is_enabled if switch is None else switch.enabled):
            return "disabled"
        return "breaker" if gate(self.ledger.need(name).breaker, now) == "breaker" else None

    # --- letting go ------------------------------------------------------------------------------------
    def _let_go(self, now: Instant) -> None:
        """Look at what is held back, until nothing more may go in this round."""
        if not self._held:
            return
        held = [
            Held(self._tasks[name], entry, tick)
            for name in self._held
            for entry in [self.ledger.need(name)]
            for tick in entry.waiting
        ]
        drafts, kept = self._gates.look(held, now)
        for name in list(self._held):
            entry, left = self.ledger.need(name), tuple(kept.get(name, ()))
            if entry.waiting != left:
                entry.waiting = left
                self.ledger.change(name)
            if not left:
                del self._held[name]
        self._recorder.record(drafts, now)

    # --- writing ---------------------------------------------------------------------------------------
    def _write(self, now: Instant) -> None:
        """Write what is remembered, within the time a round has for it.

        A hurried round writes all of it: where time stands still no other round follows, and on a busy
        machine a reader would find the first tasks as they are and the others as they were
        (test_what_a_test_reads_of_a_task_does_not_depend_on_the_pace_of_the_machine).
        """
        budget, self._hurries = math.inf if self._hurries else FLUSH, False
        self._notes.write(budget)  # first: what the ledger has passed nobody explains any more
        until = time.monotonic() + budget
        pause = round(self.ledger.pause() * MICROSECONDS)
        for shard in self.ledger.dirty():
            is_soon = abs(now - self._flushed.get(shard, 0)) < pause
            if is_soon or self._notes.waits(self.ledger.changed(shard)):
                continue
            self._flush(shard, now)
            if time.monotonic() >= until:
                break

    def _flush(self, shard: int, now: Instant) -> None:
        self._flushed[shard] = now
        self._take_up_all(self.ledger.flush(shard), now)  # another planner knows better


def _first_entry(task: RecurringTask[..., Any], now: Instant) -> Entry:
    """What is remembered of a task that is seen for the first time.

    One that begins at once has the tick of its last instant. Two nodes may both take themselves for the
    planner: it is the same tick for both, and runs once. Shown by tests/recurring/test_planning.py,
    test_a_task_that_is_known_already_does_not_begin_again.
    """
    last = recent(task.cadence, 0, now, 1) if task.cadence is not None and task.begins_at_once else []
    return Entry(cursor=last[0] - 1, is_new=True) if last else Entry(cursor=now)

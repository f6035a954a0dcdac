"""The claim-and-settle loop: one round trip tells the store what ended and takes what fits.

Sleeps until something ended, the store hints at work, or it is time to look. Whatever happens to the
store, the loop goes on: what was not acknowledged is said again, and an outcome that is unknown is
resolved by asking the store what this node holds.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from millpond.errors import NodeRefused, OutcomeUnknown, StoreError
from millpond.job import MICROSECONDS, Job, Outcome, Released, Settlement
from millpond.node.jobs.exchange import Speaker
from millpond.node.jobs.intake import Intake
from millpond.node.jobs.quarantine import split
from millpond.node.jobs.recovery import Recovery
from millpond.node.jobs.running import Running
from millpond.node.jobs.settle_queue import size_of
from millpond.node.observability.job_tally import Durations
from millpond.rules.jobs import settle_size
from millpond.rules.jobs.backoff import pause
from millpond.rules.node.health import MOST_UNSETTLED
from millpond.settlement import settlement
from millpond.store.protocol import Claim, Exchanged, Said

if TYPE_CHECKING:
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")
POLL = 1.0  # how often to look without a hint: the truth, in case hints are lost
WORTH = 50  # settlements that keep the store busy for long enough to do something meanwhile
LINGER = 0.003  # how long to let ends gather while the workers have plenty to do
GATHER = 64


class ClaimLoop:
    """The thread that talks to the store about jobs."""

    def __init__(self, state: NodeState) -> None:
        self.state = state
        self.bell = threading.Event()
        self._turn = threading.Lock()  # held for a round, by whichever thread takes it
        self.hinted = True
        self.refused = ""  # the incarnation of which the heartbeat was told that it was rescued
        self.stopping = False
        self.resting = False  # there is nothing left to say
        self.round_trip = 0.005
        self.rounds = 0
        self.settled = self.stale = 0
        self.round_at = time.monotonic()  # the last completed one
        self.trouble: str | None = None
        self.times = Durations()  # of exchanges that were answered
        self.troubles: Counter[str] = Counter()  # those that were not, by the class of the error
        self._failures = 0
        self._sequence = 0
        self.pace = settle_size.Pace()  # settlements of one exchange: fewer after one that failed
        self.doubts = 0  # how often the same end has failed by itself
        self._full = True  # the last claim got all it asked for: there is more
        self._claimed: Sequence[Job] = ()  # by the last exchange, and not handed out yet
        self._is_awaited = False  # what is claimed now begins at once: bookkeeping comes later
        self._speaker = Speaker(state.store)
        self._intake = Intake(state)
        self.recovery = Recovery(self, state)
        self._look_at = 0.0
        self._running = Running(state)
        self.unsure: int | None = None  # so many settlements were said, and their outcome is unknown
        state.line.ring = self._ring

    def _ring(self) -> None:
        if not self.bell.is_set():
            self.bell.set()

    def hint(self) -> None:
        """There may be work."""
        self.hinted = True
        self.bell.set()

    def hear(self) -> None:
        """The store says that there is work. While the loop rests, whoever hears it claims and hands out:
        to wake the loop for it would take longer than the claim."""
        self.hinted = True
        if not self._plenty() and self._turn.acquire(blocking=False):
            self._is_awaited = True
            try:
                if not self.stopping and not self._safe_round():
                    self._safely(self.hand_out)
            finally:
                self._is_awaited = False
                self._turn.release()
        self.bell.set()  # it may have to wake earlier now

    @property
    def compared(self) -> int:
        """How often this node and the store were compared."""
        return self.recovery.reconcile.looks

    # --- the loop -------------------------------------------------------------------------------------
    def run(self) -> None:
        """Until the node says stop."""
        while not self.stopping:
            with self._turn:
                has_said_all = self._safe_round()
            if has_said_all:
                self._wait()
        self._speaker.close()

    def _safe_round(self) -> bool:
        return self._safely(self._round) is True

    def _safely(self, step: Callable[[], bool | None]) -> bool | None:
        try:
            return step()
        except Exception:  # a bug; the node must go on all the same
            logger.exception("A claim round failed; the next one follows")
            if self.unsure is None:
                self.unsure = 0  # what was claimed may be lost on the way: ask the store
            time.sleep(1.0)
            return False

    def _round(self) -> bool:
        """One exchange; True if there is nothing to say."""
        self.resting = False
        now = time.monotonic()
        self._take_ends()
        if self.refused == self.state.identity.id:
            self.be_reborn()
        if self.unsure is not None:
            self.hand_out()
            if not self.recovery.resolve():
                return False
        if now >= self.recovery.reconcile.due_at and not self.recovery.compare():
            return False
        isolated = self.state.line.quarantine.due(now, hurry=self._hurries())
        if isolated:
            self.recovery.try_again(isolated)
        settlements = self.state.line.batch(self.pace.most)
        started, tasks = self._running.begun(now)
        progress = self._running.progress()
        ask = now >= self._look_at and self._holds_any()  # full or not: is anybody's end wanted?
        claims = self._claims(now, busy=bool(settlements))
        if not (settlements or started or progress or claims or ask):
            self.hand_out()
            if not self._failures:
                self.round_at = now  # nothing to say is a round, too
            self.resting = not self._claimed and not self.state.line.raw
            return True
        said = Said(settlements, started, progress, claims)
        answer = self._exchange(said)
        if answer is not None:
            for task in tasks:
                task.told = task.job.id not in answer.deferred
            self._apply(answer, said)
        return False

    def _wait(self) -> None:
        quarantine = self.state.line.quarantine
        wake = min(self._look_at, self.recovery.reconcile.due_at, quarantine.next_at(hurry=self._hurries()))
        if self._holds_any():
            wake = min(wake, self._running.look_at)
        if self.bell.wait(max(0.0, wake - time.monotonic())):
            self.bell.clear()
            if self._plenty():  # nobody waits for us: let more ends gather
                time.sleep(LINGER)

    def _holds_any(self) -> bool:
        return any(pool.held for pool in self.state.pools.values())

    def _hurries(self) -> bool:
        return self.state.phase == "draining"

    def _plenty(self) -> bool:
        if len(self.state.line.raw) >= GATHER:
            return False
        for pool in self.state.pools.values():
            if pool.held and len(pool.held) > 2 * pool.size() * pool.settings.concurrency:
                return True
        return False

    def _sleep(self, seconds: float) -> None:
        """Wait in trouble; only the end of the node wakes us."""
        until = time.monotonic() + seconds
        while not self.stopping and (left := until - time.monotonic()) > 0:
            self.bell.wait(min(left, 0.1))
            self.bell.clear()
            self._take_ends()

    # --- what to say ----------------------------------------------------------------------------------
    def _take_ends(self) -> None:
        if self._intake.take():
            self.hold_back()

    def _is_full(self) -> bool:
        """Does so much wait for the store that nothing more may begin?"""
        return self.state.line.total > MOST_UNSETTLED

    def hold_back(self) -> None:
        """When so much waits, take back what has not begun: its end would have to wait, too. Others call this
        as well, since the loop may be waiting for the store."""
        if self.state.line.unsettled() > MOST_UNSETTLED:
            for pool in self.state.pools.values():
                pool.withdraw()
            self.state.budget.withdraw()

    def _claims(self, now: float, *, busy: bool) -> list[Claim]:
        state = self.state
        due = now >= self._look_at
        if not (due or self.hinted or self._full or busy) or not state.may_claim():
            if due:
                self._look_at = now + POLL
            return []
        if self._is_full():
            return []
        if due:
            self._look_at = now + POLL * random.uniform(0.9, 1.1)  # nodes must not march in step
        if due or self.hinted:
            for pool in state.pools.values():
                pool.news_at = now
        self.hinted = False
        claims = [claim for pool in state.pools.values() for claim in pool.claims(self.round_trip)]
        if state.budget.active:
            claims = state.budget.shape(claims)
        claims = state.unknown.shape(claims)
        if not claims:
            self._full = False
        return claims

    # --- saying it --------------------------------------------------------------------------------------
    def _exchange(self, said: Said) -> Exchanged | None:
        """Tell the store and take its answer; None when there is none, and then that was dealt with."""
        self.next_sequence()
        before = time.monotonic()
        try:
            answer = self._speak(said)
        except NodeRefused:
            self.be_reborn()
        except OutcomeUnknown as error:
            self.unsure = len(said.settlements)
            self.in_trouble(error, len(said.settlements))
        except StoreError as error:
            self.in_trouble(error, len(said.settlements))
            if len(said.settlements) == 1:  # by itself; the pace may still be that of an exchange before
                self.recovery.set_apart(said.settlements[0], error, time.monotonic() - before)
        else:
            took = time.monotonic() - before
            self.times.add(round(took * MICROSECONDS))
            self.round_trip += (took - self.round_trip) * 0.2
            self.fine()
            self.pace = settle_size.after_success(self.pace, len(said.settlements))
            self.doubts = 0
            if not answer.replayed:
                return answer
            self.unsure = len(said.settlements)  # the store heard it twice, and we no answer
        self._running.keep(said.progress)
        return None

    def _speak(self, said: Said) -> Exchanged:
        node = self.state.identity.id
        if len(said.settlements) < WORTH or not self._speaker.is_free:
            if self._claimed or self.state.budget.waiting:
                self.hand_out()
            return self._speaker.say(node, self._sequence, said)
        # The store need not wait for us, nor we for the store
        answer = self._speaker.say_meanwhile(node, self._sequence, said, self._meanwhile)
        self.hand_out()
        return answer

    def _meanwhile(self) -> None:
        self.hand_out()
        self._take_ends()

    def _apply(self, answer: Exchanged, said: Said) -> None:
        state, settlements, claims = self.state, said.settlements, said.claims
        state.line.settled(len(settlements))
        settlements, later = split(settlements, answer.deferred)
        for one in later:
            state.line.isolate(one, None, time.monotonic())
        self.settled += len(settlements) - len(answer.stale)
        self.stale += len(answer.stale)
        self.tell(settlements, answer.stale)
        for job_id in answer.cancelling:
            state.cancel(job_id)
        if claims:
            self._full = answer.more or len(answer.claimed) >= sum(claim.limit for claim in claims)
            self._claimed = answer.claimed
            got = answer.by_queue()
            if self._is_awaited:
                self.hand_out()
            self._note_claims(claims, got)

    def _note_claims(self, claims: Sequence[Claim], got: Mapping[str, int]) -> None:
        """What is on its way to each pool; a queue that gave less than was asked for has nothing more."""
        now, is_pressed = time.monotonic(), False
        asked: Counter[str] = Counter()  # of a queue in which some jobs need something, in two steps
        first: dict[str, int] = {}
        may_have_more: set[QueuePool] = set()  # pools with room left
        for claim in claims:
            first.setdefault(claim.queue, claim.limit)
            asked[claim.queue] += claim.limit
        for queue, limit in asked.items():
            pool, number = self.state.by_queue[queue], got.get(queue, 0)
            if self._claimed:
                pool.promised += number
            if first[queue] <= number < limit:
                self._full = True  # all that the first step asked for: there may be more of those
            if number < limit:
                pool.short_at[queue] = now
                if number < first[queue]:  # also of those for which there was room
                    pool.first_short.setdefault(queue, pool.claimed)
                may_have_more.add(pool)
            else:
                is_pressed = True
        self._full = self._full or any(pool.may_have_more() for pool in may_have_more)
        if is_pressed:
            self.state.pressed()

    def tell(self, settlements: Sequence[Settlement], stale: Sequence[str] = ()) -> None:
        if self.state.has_news():
            for said in settlements:
                self.state.accepted(said, said.id not in stale)

    def hand_out(self) -> None:
        """Give the pools what was claimed."""
        jobs, self._claimed = self.state.unknown.sifted(self._claimed, self.give_up), ()
        by_pool: dict[QueuePool, list[Job]] = {}
        for job in jobs:
            by_pool.setdefault(self.state.by_queue[job.queue], []).append(job)
        self._keep_promises()
        budget = self.state.budget
        for pool, some in by_pool.items():
            if self.state.may_claim() and not self._is_full():
                if budget.active or any(job.options.resources for job in some):
                    self._sift(pool, some)
                else:
                    pool.take(some)
                if self.state.phase == "draining":
                    pool.withdraw()  # it began to drain in this moment, and has withdrawn already
            else:
                for job in some:
                    self.give_up(job, Released())
        if budget.waiting:
            self._admit()

    def _sift(self, pool: QueuePool, jobs: Sequence[Job]) -> None:
        """The same when some job needs something: those wait for it, or cannot run here."""
        straight, refused = self.state.budget.sift(pool, jobs)
        if straight:
            pool.take(straight)
        for job, outcome in refused:
            self.give_up(job, outcome)

    def _admit(self) -> None:
        """Let jobs that wait for memory, cores or tokens begin as far as there is room for them."""
        budget = self.state.budget
        if self.state.phase in ("draining", "stopped") or self._is_full():
            budget.withdraw()
            return
        for task, pool in budget.admit(time.monotonic()):
            pool.begin(task)

    def _keep_promises(self) -> None:
        """No job is on its way to a pool any more."""
        for pool in self.state.pools.values():
            pool.promised = 0

    def give_up(self, job: Job, outcome: Outcome) -> None:
        """Say what becomes of a claimed job that does not begin here."""
        said = settlement(job, outcome, self.state.identity.id, now=self.state.store_now())
        self.state.by_queue[job.queue].tally.ended(said, outcome)
        self.state.line.waiting.append(said)
        self.state.line.size += size_of(said)

    def next_sequence(self) -> int:
        """The number of the next exchange."""
        self._sequence += 1
        return self._sequence

    # --- trouble ------------------------------------------------------------------------------------------
    def fine(self) -> None:
        self.rounds += 1
        self.round_at = time.monotonic()
        if self._failures:
            self.trouble, self._failures = None, 0
            self.hinted = True
            self.recovery.reconcile.soon()  # the store was away: it may have lost its last moments
        self.recovery.reconcile.heed_hang_ups()

    def in_trouble(self, error: StoreError, said: int = 0) -> None:
        """The store has not taken what it was told, of that so many ends."""
        self._failures += 1
        if said:
            self.pace = settle_size.after_failure(said)
        self.trouble = str(error)
        self.troubles[type(error).__name__] += 1
        self._sleep(pause(self._failures, random.random()))

    def be_reborn(self) -> None:
        """We were rescued: our jobs are others' now. Stop them, and go on under a new name."""
        state = self.state
        logger.error("Node %s was rescued by another: its jobs run elsewhere now", state.identity.id)
        self.unsure = None
        state.disown_all()
        self.stale += state.line.drop_all()
        state.forget_news()
        state.identity.born_again()
        self._sequence = 0
        self._claimed = ()
        self._keep_promises()
        self.recovery.reconcile.forget()
        try:
            state.renew()
        except StoreError as error:
            self.in_trouble(error)

"""What the claim loop does when the store does not take an end, does not answer, or has lost something.

An end that fails by itself waits apart; an exchange whose outcome is unknown is resolved by asking the store
what this node has; what the store or the node has lost is found by comparing the two. Runs in the turns of
the claim loop, and only there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from millpond.errors import NodeRefused, OutcomeUnknown, StoreError
from millpond.job import Job, Lost, Outcome, Released, Settlement
from millpond.node.jobs.quarantine import split
from millpond.node.jobs.reconcile import Reconcile
from millpond.rules.jobs import settle_size
from millpond.rules.jobs.reconcile import Claim
from millpond.store.protocol import HeldJob

if TYPE_CHECKING:
    from millpond.node.jobs.claim_loop import ClaimLoop
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")


def unbegun_or_lost(job: Job) -> Outcome:
    """A claim whose answer was lost has not begun. One that the store knows to have begun has ended here, and
    the store has lost that end: released uncharged, a job whose end is lost each time would run without a
    bound. Shown by tests/node/test_reconcile.py."""
    return Released() if job.started_at is None else Lost(started=True)


class Recovery:
    """The claim loop's part for trouble."""

    def __init__(self, loop: ClaimLoop, state: NodeState) -> None:
        self._loop, self._state = loop, state
        self.reconcile = Reconcile(state)

    def set_apart(self, said: Settlement, error: StoreError, took: float) -> None:
        """An end failed by itself. If the store answers without it, the end is the reason: it waits apart.

        Sent again and again at the head of the line it would stop this node, and after a restart the next.
        A store that is away altogether fails without it as well, and then nothing is set apart.
        Shown by tests/node/test_quarantine.py.
        """
        if not self._answers():
            self._loop.pace = settle_size.Pace(1)
            return
        line = self._state.line
        line.settled(1)
        line.isolate(said, error, time.monotonic(), took)
        self._loop.pace, self._loop.doubts = settle_size.Pace(), 0
        self._loop.fine()

    def _answers(self) -> bool:
        """Does the store take an exchange that says nothing?"""
        sequence = self._loop.next_sequence()
        try:
            self._state.store.exchange(self._state.identity.id, sequence)
        except NodeRefused:
            self._loop.be_reborn()
        except StoreError:
            return False
        else:
            return True
        return False

    def try_again(self, said: Sequence[Settlement]) -> None:
        """Send ends that wait apart; what becomes of it concerns no other."""
        quarantine, before = self._state.line.quarantine, time.monotonic()
        sequence = self._loop.next_sequence()
        try:
            answer = self._state.store.exchange(self._state.identity.id, sequence, settlements=said)
        except NodeRefused:
            self._loop.be_reborn()
            return
        except StoreError as error:
            now = time.monotonic()
            quarantine.tried(said, error, now, now - before)
            if isinstance(error, OutcomeUnknown):
                self._loop.unsure = 0
            return
        now = time.monotonic()
        taken, later = split(said, answer.deferred)
        quarantine.tried(later, None, now, now - before)
        quarantine.remove(taken)
        self._loop.settled += len(taken) - len(answer.stale)
        self._loop.stale += len(answer.stale)
        self._loop.tell(taken, answer.stale)

    def _held(self) -> tuple[HeldJob, ...] | None:
        """What the store believes this node has; None if it does not answer."""
        try:
            return self._state.store.held(self._state.identity.id).jobs
        except NodeRefused:
            self._loop.be_reborn()
        except StoreError as error:
            self._loop.in_trouble(error)
        return None

    def compare(self) -> bool:
        """Find what the store or this node has lost. A settlement that the store acknowledged and forgot
        leaves its job running for ever, with its slots, on a node that knows nothing of it: it runs again."""
        self._loop.hand_out()
        believed = self._held()
        if believed is None:
            return False
        found = self.reconcile.look(believed)
        self.reconcile.disown(found.missing)
        if found.unknown:
            logger.error(
                "The store believes that this node runs %d jobs which ended or never came: they run again",
                len(found.unknown),
            )
            self._give_back(found.unknown, lambda _: Lost(started=True))
        return True

    def _give_back(self, claims: Collection[Claim], outcome_of: Callable[[Job], Outcome]) -> bool:
        """Settle claims that the store believes this node has, and of which the node knows nothing; False if
        the store did not answer."""
        try:
            jobs = self._state.store.get([job_id for job_id, _ in claims])
        except StoreError as error:
            self._loop.in_trouble(error)
            return False
        for job in jobs:
            if job is not None and (job.id, job.token) in claims:
                self._loop.give_up(job, outcome_of(job))
        return True

    def resolve(self) -> bool:
        """Ask the store what became of an exchange whose answer was lost.

        It may still be on its way: an empty one with a later number first, after which it is refused.
        """
        state = self._state
        said = state.line.first(self._loop.unsure or 0)
        sequence = self._loop.next_sequence()
        try:
            state.store.exchange(state.identity.id, sequence)
        except NodeRefused:
            self._loop.be_reborn()
            return False
        except StoreError as error:
            self._loop.in_trouble(error)
            return False
        believed = self._held()
        if believed is None:
            return False
        still = {(job.id, job.token) for job in believed}
        self._note_resolved(said, still)
        # The ends are dealt with; what was claimed in the lost answer is not until it is read as well. If it
        # were forgotten here, the next comparison would charge these jobs with a run that never began.
        # Shown by tests/proof_node/test_store_trouble.py.
        self._loop.unsure = 0
        unknown = self.reconcile.unknown(believed)
        if unknown and not self._give_back(unknown, unbegun_or_lost):
            return False
        self._loop.unsure = None
        self._loop.fine()
        return True

    def _note_resolved(self, said: Sequence[Settlement], still: set[tuple[str, int]]) -> None:
        """Which ends the store has taken, of those that were sent and those that wait apart."""
        line = self._state.line
        taken = [one for one in said if (one.id, one.token) not in still]
        if taken:  # the step was done: what is not taken, a lock kept out
            self._loop.tell(taken)
            line.settled(len(said))
            self._loop.settled += len(taken)
            for one in said:
                if (one.id, one.token) in still:
                    line.isolate(one, None, time.monotonic())
        elif len(said) == 1 and self._loop.pace.is_alone:
            self._loop.doubts += 1
            if self._loop.doubts > 1:  # the store answers without it, twice: it waits apart
                line.settled(1)
                line.isolate(said[0], OutcomeUnknown("the store's answer was lost"), time.monotonic())
                self._loop.pace, self._loop.doubts = settle_size.Pace(), 0
        line.quarantine.keep_only(still)

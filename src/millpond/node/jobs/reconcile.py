"""Compares what the store believes this node has with what it has: once a minute, and after any trouble.

A server that lost its last moments (a power cut, a fail-over to a replica that lags, a restored copy)
believes in claims that were settled, and their jobs would be running for ever with their slots; or it has
forgotten claims, and their runs would go on for nothing. What is done about either belongs to the claim loop;
what is a difference is decided in `rules/jobs/reconcile.py`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from millpond.rules.jobs.reconcile import Claim, Difference, confirmed, difference

if TYPE_CHECKING:
    from millpond.node.jobs.claimed_job import JobTask
    from millpond.node.state import NodeState
    from millpond.store.protocol import HeldJob

EVERY = 60.0  # seconds between two looks
AGAIN = 3.0  # seconds until a difference is looked at once more


class Reconcile:
    """Remembers what was different at the last look. Used in the turns of the claim loop alone: there no
    exchange is on its way, and whatever was claimed or has ended is in one of the places looked at."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.looks = 0
        self._before = Difference()
        self._hang_ups = 0
        self.due_at = time.monotonic() + EVERY * random.uniform(0.5, 1.0)  # nodes must not march in step

    def soon(self) -> None:
        """The store was away, or is another one now."""
        self.due_at = 0.0

    def heed_hang_ups(self) -> None:
        """Look soon if the server has closed a connection that lay idle.

        A server that was restarted or replaced between two calls makes none of them fail: the next one takes
        a new connection, and the lost ends would be found only after a minute. Of a client that the app made
        itself nothing is known; then it is the minute. Shown by tests/node/test_reconcile.py.
        """
        seen = getattr(self._state.store, "hang_ups", 0)
        if seen != self._hang_ups:
            self._hang_ups = seen
            self.soon()

    def forget(self) -> None:
        """The node goes on under a new name, which has nothing yet."""
        self._before = Difference()

    def unknown(self, believed: Collection[HeldJob]) -> set[Claim]:
        """Of what the store believes we have, that of which we know nothing."""
        return {(job.id, job.token) for job in believed} - self._known()

    def look(self, believed: Collection[HeldJob]) -> Difference:
        """What is different for the second time in a row."""
        self.looks += 1
        runs = {(task.job.id, task.job.token) for task in self._running()}
        now = difference({(job.id, job.token) for job in believed}, self._known(), runs)
        sure, self._before = confirmed(self._before, now), now
        self.due_at = time.monotonic() + (AGAIN if now else EVERY * random.uniform(0.9, 1.1))
        return sure

    def disown(self, missing: Collection[Claim]) -> list[JobTask]:
        """Stop the runs of claims that are not ours any more."""
        tasks = [task for task in self._running() if (task.job.id, task.job.token) in missing]
        for task in tasks:
            self._state.disown(task)
        return tasks

    def _running(self) -> Iterator[JobTask]:
        for pool in self._state.pools.values():
            for task in list(pool.held.values()):
                if not task.done() and not task.disowned:
                    yield task

    def _known(self) -> set[Claim]:
        """All that was claimed and of whose end the store has not heard."""
        line = self._state.line
        # First those who run: one that ends meanwhile is in the pool's books until the loop takes its end
        found = {
            (task.job.id, task.job.token)
            for pool in self._state.pools.values()
            for task in list(pool.held.values())
        }
        found |= {(end[0].job.id, end[0].job.token) for end in list(line.raw)}
        found |= {(said.id, said.token) for said in line.waiting}
        return found | line.quarantine.claims()

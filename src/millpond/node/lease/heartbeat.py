"""Keeps the node's lease: a thread of its own, with a connection of its own, that waits for nobody.

A connection that died without a word is given up soon enough for another try on a new one. When the lease can
no longer be renewed in time, the jobs that hold slots are stopped before it ends: another node may run their
like from then on. All other jobs go on.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from millpond.errors import NodeRefused, StoreError

if TYPE_CHECKING:
    from millpond.node.jobs.claim_loop import ClaimLoop
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")
BEATS = 5  # renewals in the length of one lease
AGAIN = 0.5  # seconds until a renewal that failed is tried again
LOOK = 0.1  # seconds between two looks for holders of slots, once the lease is about to end
TRIES = 3  # in the length of one lease, if each has to be given up unanswered


def patience(lease: float) -> float:
    """How long a renewal may wait for its store."""
    return lease / TRIES


class Heartbeat:
    """The thread that renews."""

    def __init__(self, state: NodeState, loop: ClaimLoop) -> None:
        self._state = state
        self._loop = loop
        self._stop = threading.Event()

    def run(self) -> None:
        """Until the node has nothing to keep any more."""
        every = self._state.lease / BEATS
        due = time.monotonic() + every
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = time.monotonic() + (every if self._beat() else min(AGAIN, every))

    def guard(self) -> None:
        """Keep the fence. In a thread beside the beats: one that waits for its answer must not keep this
        waiting."""
        state = self._state
        while not self._stop.wait(max(LOOK, state.lease_left() - state.margin)):
            self._fence()

    def stop(self) -> None:
        """No more beats."""
        self._stop.set()

    def _beat(self) -> bool:
        name = self._state.identity.id
        try:
            self._state.renew()
        except NodeRefused:
            self._loop.refused = name
            self._loop.bell.set()
        except StoreError as error:
            logger.warning(
                "The lease could not be renewed (%.1f s left): %s", self._state.lease_left(), error
            )
            return False
        except Exception:  # whatever it is, the heart goes on
            logger.exception("Renewing the lease failed")
            return False
        return True

    def _fence(self) -> None:
        state = self._state
        if state.lease_left() > state.margin:
            return
        for pool in state.pools.values():
            for task in list(pool.held.values()):
                if task.job.slots and not task.done():
                    logger.error("Job %s holds slots and the lease ends: it is stopped", task.job.id)
                    pool.kill(task)

"""What a node does beside its jobs: rescues the dead, ends what was cancelled, prunes.

One thread, a round a second (ten while a job must be ended). Nothing here is needed for a job to run; a
round that fails is logged and the next one follows. The store is asked for the dead only when there may be
some: a node with nothing to do should cost next to nothing.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from millpond.errors import StoreError
from millpond.node.blocked import LoopWatch
from millpond.node.ending import Endings
from millpond.node.events import NodeEvents, NodeRescued
from millpond.node.identity import gone
from millpond.node.observing import FRESH
from millpond.store.protocol import Retention

if TYPE_CHECKING:
    from millpond.node.observing import Counting
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")
ROUND = 1.0
QUICK = 0.05
PRUNE_EVERY = 3600.0


class Upkeep:
    """The thread for everything else."""

    def __init__(
        self, state: NodeState, retention: Retention, events: NodeEvents, counting: Counting
    ) -> None:
        self._state = state
        self._counting = counting
        self.events = events
        self.retention = retention
        self._stop = threading.Event()
        self.rescued = 0
        self.chores: tuple[Callable[[], None], ...] = ()  # what others want done in each round
        self.hint: Callable[[], object] = list  # tells the claim loop of jobs that were rescued
        self._loops = LoopWatch()
        self._endings = Endings(state)
        self._round_at = 0.0
        self._prune_at = time.monotonic() + random.uniform(60, PRUNE_EVERY)

    def run(self) -> None:
        """Until the node stops."""
        while not self._stop.wait(self._pause()):
            try:
                self._endings.look(time.monotonic())
                if time.monotonic() >= self._round_at:
                    self._round_at = time.monotonic() + 0.9 * ROUND  # a pause that ends early skips none
                    for pool in self._state.pools.values():
                        self._loops.look(pool)
                    self._round()
            except StoreError as error:
                logger.debug("Upkeep could not reach the store: %s", error)
            except Exception:
                logger.exception("An upkeep round failed; the next one follows")

    def _pause(self) -> float:
        if self._state.cancelled:
            return QUICK
        # Only a job that is held can be cancelled
        return ROUND / 4 if any(pool.held for pool in self._state.pools.values()) else ROUND

    def stop(self) -> None:
        """No more rounds."""
        self._stop.set()

    def _round(self) -> None:
        state = self._state
        now = time.monotonic()
        counts = self._counting.counts
        dead = [] if counts is None else gone(counts.nodes, state.identity.id)
        if state.phase in ("running", "held") and (dead or self._may_be_dead(now)):
            found = state.store.rescue(state.identity.id, dead)
            if found.nodes:
                self.rescued += found.jobs
                self.hint()  # not every store announces them
                for number, name in enumerate(found.nodes):  # the count is of all of them together
                    self.events.publish(NodeRescued(name, 0 if number else found.jobs))
        if now >= self._prune_at:
            self._prune_at = now + PRUNE_EVERY
            threading.Thread(target=self._prune, name="millpond-prune", daemon=True).start()
        for chore in self.chores:
            chore()

    def _prune(self) -> None:
        """Beside the rounds: of millions of jobs it takes minutes, in which others may have to be rescued."""
        try:
            self._state.store.prune(self.retention)
        except StoreError as error:
            logger.debug("Pruning could not reach the store: %s", error)
        except Exception:
            logger.exception("Pruning failed; the next time is in an hour")

    def _may_be_dead(self, now: float) -> bool:
        """May a lease have run out? Not if a young count saw all of them alive for longer."""
        counts, age = self._counting.counts, now - self._counting.counted_at
        if counts is None or age > FRESH:
            return True
        others = (node for node in counts.nodes if node.id != self._state.identity.id)
        return any(node.sealed or node.lease_left <= age for node in others)

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

from millpond.errors import StoreError, StoreUnavailable
from millpond.node.lease.identity import gone
from millpond.node.observability.blocked_loops import LoopWatch
from millpond.node.observability.events import CleanupHeldBack, NodeEvents, NodeRescued, StoreFilling
from millpond.node.scaling.observe import FRESH
from millpond.node.shutdown import Endings
from millpond.rules.store import dead_rows
from millpond.rules.store.headroom import level
from millpond.store.protocol import Retention

if TYPE_CHECKING:
    from millpond.node.scaling.observe import Counting
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")
ROUND = 1.0
QUICK = 0.05
PRUNE_EVERY = 3600.0
STORE_EVERY = 60.0  # seconds between two looks at how the store itself is


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
        self._told: set[str] = set()  # the nodes that the last rescue found
        self.chores: tuple[Callable[[], None], ...] = ()  # what others want done in each round
        self.hint: Callable[[], object] = list  # tells the claim loop of jobs that were rescued
        self._loops = LoopWatch()
        self._endings = Endings(state)
        self._round_at = 0.0
        self._prune_at = time.monotonic() + random.uniform(60, PRUNE_EVERY)
        self._store_at = 0.0
        self._memory_level = 0
        self._held_back: dict[dead_rows.Key, float] = {}
        self._held_back_level = 0

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
                for name, number in zip(found.nodes, found.each, strict=True):
                    # One whose last job another transaction has locked is found again in every round
                    if number or name not in self._told:
                        self.events.publish(NodeRescued(name, number))
                self._told = set(found.nodes)
        if now >= self._store_at:
            self._store_at = now + STORE_EVERY
            self._look_at_memory(now)
            self._look_at_cleanup(now)
        if now >= self._prune_at:
            self._prune_at = now + PRUNE_EVERY
            threading.Thread(target=self._prune, name="millpond-prune", daemon=True).start()
        for chore in self.chores:
            chore()

    def _look_at_memory(self, now: float) -> None:
        """Tell when a store that lives in memory fills up, and prune before its time when it is short."""
        ask = getattr(self._state.store, "memory", None)
        memory = ask() if ask else None
        before, self._memory_level = self._memory_level, level(memory) if memory else 0
        if memory and self._memory_level > before:
            self.events.publish(StoreFilling(memory.share, memory.used, memory.limit))
        if self._memory_level == 2:
            self._prune_at = now

    def _look_at_cleanup(self, now: float) -> None:
        """Tell when an old transaction keeps the store's server from removing what has ended."""
        ask = getattr(self._state.store, "holdbacks", None)
        self._held_back, oldest = dead_rows.look(self._held_back, ask() if ask else [], now)
        age = (oldest.age or 0.0) if oldest else 0.0
        before, self._held_back_level = self._held_back_level, dead_rows.level(age)
        if oldest and self._held_back_level > before:
            self.events.publish(CleanupHeldBack(oldest.kind, oldest.name, age, dead_rows.CURES[oldest.kind]))

    def _prune(self) -> None:
        """Beside the rounds: of millions of jobs it takes minutes, in which others may have to be rescued."""
        try:
            self._state.store.prune(self.retention)
        except StoreUnavailable as error:
            logger.debug("Pruning could not reach the store: %s", error)
        except StoreError as error:
            logger.warning("Pruning failed, and is tried again in an hour: %s", error)
        except Exception:
            logger.exception("Pruning failed; the next time is in an hour")

    def _may_be_dead(self, now: float) -> bool:
        """May a lease have run out? Not if a young count saw all of them alive for longer."""
        counts, age = self._counting.counts, now - self._counting.counted_at
        if counts is None or age > FRESH:
            return True
        others = (node for node in counts.nodes if node.id != self._state.identity.id)
        return any(node.sealed or node.lease_left <= age for node in others)

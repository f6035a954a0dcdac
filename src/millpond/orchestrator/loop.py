"""The thread that plans on a node: stands for election, and has the planner do its rounds while it leads.

An error costs one round. When the node drains it stops planning, and another may begin at once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from millpond.errors import StoreError
from millpond.job import MICROSECONDS
from millpond.orchestrator.events import Happening
from millpond.orchestrator.leader import LEASE, RENEWALS, Leadership
from millpond.orchestrator.planner import Planner

if TYPE_CHECKING:
    from millpond.app import App

logger = logging.getLogger("millpond")
AGAIN = 0.5  # seconds until the next round after one that failed
SHORTEST = 0.002  # between two rounds
STEP = MICROSECONDS  # a clock that went back by more is believed, and everything looked at anew


class Service:
    """Plans the recurring tasks of an app, while this node leads."""

    def __init__(
        self,
        app: App,
        identity: Callable[[], str],
        alive: Callable[[], Collection[str] | None] = lambda: None,
        tell: Callable[[Happening], object] = lambda _: None,
        lease: float = LEASE,
    ) -> None:
        self._app = app
        self._changes = app.changes
        self._most = app.orchestrator.max_concurrent
        self._store = app.store
        orchestrator = app.orchestrator
        tasks = dict(orchestrator.tasks)
        self.leadership = Leadership(self._store, orchestrator.leader_document(), identity, alive, lease)
        self.planner = Planner(
            self._store,
            app.name,
            tasks,
            orchestrator.exclusions,
            tell=tell,
            may_plan=lambda: self.leadership.is_leader,
        )
        self._stop = threading.Event()
        self._last = 0
        self.rounds = 0

    def run(self) -> None:
        """Until the node stops, or other tasks are to be planned: then another service begins with them."""
        wait = 0.0
        while not self._stop.wait(wait) and self._is_current():
            try:
                wait = self._round()
            except StoreError as error:
                logger.debug("Planning could not reach the store: %s", error)
                wait = AGAIN
            except Exception:
                logger.exception("A planning round failed; the next one follows")
                wait = AGAIN
        self._leave()

    def _is_current(self) -> bool:
        """Are the tasks, and how many may run at a time, still those that are planned?"""
        return self._app.changes == self._changes and self._app.orchestrator.max_concurrent == self._most

    def stop(self) -> None:
        """No more rounds."""
        self._stop.set()

    def _round(self) -> float:
        """One turn; returns how many seconds to wait."""
        if not self.leadership.attend():
            self.planner.rest()
            return min(1.0, self.leadership.lease / 10)
        if not self.planner.is_ready or self._store.clock.now() < self._last - STEP:
            self.planner.begin(self.leadership.trigger)
        self._last = now = self._store.clock.now()
        wake = self.planner.round(now)
        self.leadership.trigger = self.planner.inbox.done
        self.rounds += 1
        pause = (wake - self._store.clock.now()) / MICROSECONDS
        return min(max(SHORTEST, pause), self.leadership.lease / RENEWALS)

    def _leave(self) -> None:
        try:
            self.planner.close()
        except Exception as error:  # what was not written will be found out again
            logger.debug("The planner could not write its last words: %s", error)
        self.leadership.give_up()

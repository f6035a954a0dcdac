"""The node's part in recurring tasks: a thread that plans them while this node leads, and their end when
it drains. A node whose app has none starts nothing and imports nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from millpond.job import MICROSECONDS
from millpond.node.observability.report import RecurringReport, TickingReport
from millpond.node.shutdown import nudge

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.node.observability.events import NodeEvents
    from millpond.node.state import NodeState
    from millpond.orchestrator.ledger import Entry
    from millpond.orchestrator.loop import Service

logger = logging.getLogger("millpond")
PART = 2 / 3  # of the node's lease is that of whoever plans: a dead leader is missed sooner than a dead node
AGAIN = 5.0
LATER = 1.0  # seconds between two looks whether there are recurring tasks by now
LOOK = 0.05
ASK = 2.0  # seconds for a task that runs for ever to end when it is asked to


class Planning:
    """Plans the recurring tasks of an app, as one of those who could."""

    def __init__(self, app: App, state: NodeState, events: NodeEvents) -> None:
        self._app = app
        self._state = state
        self._events = events
        self._service: Service | None = None
        self._stop = threading.Event()
        self._left = threading.Event()

    def check(self) -> None:
        """Raise OptionError if tasks say impossible things about each other; every one is known by now."""
        if self._tasks():
            from millpond.recurring import never_run

            self._app.orchestrator.check()
            for sentence in never_run(self._app.orchestrator.tasks):
                logger.warning("%s", sentence)

    def _tasks(self) -> list[Any]:
        return [task for task in self._app.tasks.values() if hasattr(task, "cadence")]

    def run(self) -> None:
        """Until the node drains."""
        while not self._stop.is_set():
            if not self._tasks():
                self._stop.wait(LATER)
                continue
            try:
                self._plan()
            except Exception:  # a bug; a node that never plans again would be worse
                logger.exception("Planning recurring tasks failed; it begins anew in %g s", AGAIN)
                self._stop.wait(AGAIN)
        self._left.set()

    def _plan(self) -> None:
        from millpond.orchestrator.loop import Service

        state = self._state
        self._service = Service(
            self._app,
            lambda: state.identity.id,
            self._alive,
            self._events.publish,
            lease=state.lease * PART,
        )
        if not self._stop.is_set():
            self._service.run()

    def seen(self) -> RecurringReport | None:
        """The tasks as whoever plans them knows; None if there are none. May be asked by any thread."""
        tasks, service = self._tasks(), self._service
        if not tasks:
            return None
        if service is None or not (service.leadership.is_leader and service.planner.is_ready):
            return RecurringReport(is_leader=False)
        known = ((task.name, service.planner.ledger.get(task.name)) for task in tasks)
        return RecurringReport(
            True, tuple(_ticking(name, entry) for name, entry in known if entry is not None)
        )

    def _alive(self) -> set[str]:
        """The nodes that the store knows; asked only when a leader has been silent for long."""
        return {node.id for node in self._state.store.counts().nodes if not node.sealed}

    def stop(self) -> None:
        """Plan no more, and let what would run for ever come to its end: another node takes it up."""
        self._stop.set()
        if self._service is not None:
            self._service.stop()
        endless = {task.name for task in self._tasks() if task.mode == "continuous"}
        if endless:
            threading.Thread(target=self._end, args=(endless,), name="millpond-endless", daemon=True).start()

    def join(self, timeout: float) -> None:
        """Wait until what is known has been written down and the lead given up."""
        if self._service is not None:
            self._left.wait(timeout)

    def _end(self, endless: set[str]) -> None:
        """Ask each to end, then terminate its worker; what shares one is left to the end of the grace."""
        for name in ("ask", "terminate"):
            for pool in self._state.pools.values():
                for task in list(pool.held.values()):
                    if task.job.task in endless:
                        task.stopped = True
                        link = task.link
                        if link is not None and link.concurrency == 1:
                            nudge(pool, task, name)
            until = time.monotonic() + ASK
            while time.monotonic() < until and self._running(endless):
                time.sleep(LOOK)

    def _running(self, endless: set[str]) -> bool:
        return any(
            task.job.task in endless
            for pool in self._state.pools.values()
            for task in list(pool.held.values())
        )


def _ticking(name: str, entry: Entry) -> TickingReport:
    return TickingReport(
        name,
        is_open=entry.breaker.opened_at is not None,
        failures=entry.breaker.failures,
        unfinished=len(entry.unfinished),
        late=entry.late,
        succeeded_at=None if entry.succeeded_at is None else entry.succeeded_at / MICROSECONDS,
    )

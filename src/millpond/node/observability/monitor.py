"""Everything that watches a node, started and stopped as one: events, log lines, alerts, the lookout.

The node tells it what happens; nothing it does waits for the node or makes the node wait. An event about a
job is published only after the store has accepted its end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from millpond.disclosure import knowing
from millpond.job import Job, JobState, Outcome, Settlement
from millpond.node.observability.alerts import Alerts, Hook
from millpond.node.observability.concerns import Lookout
from millpond.node.observability.events import (
    JobCompleted,
    JobDied,
    JobRetried,
    JobStopped,
    NodeEvent,
    NodeEvents,
    NodeStarted,
    NodeStopped,
    of_settlement,
)
from millpond.node.observability.logs import log_events
from millpond.node.observability.report import NodeReport

logger = logging.getLogger("millpond.node")
MESSAGE = 4_000  # characters of an error's message that are told
LOOK = 1.0  # seconds between two looks at the report
MOST_PENDING = 100_000  # ends whose event waits for the store; beyond it they go untold
KIND_OF = {JobState.COMPLETED: JobCompleted, JobState.DEAD: JobDied, JobState.CANCELLED: JobStopped}


def _without_marked(event: NodeEvent, job: Job) -> NodeEvent:
    """The event without the values of parameters that are marked as secrets."""
    if job.options.hidden and isinstance(event, JobDied | JobRetried) and event.message:
        return event._replace(message=knowing(job).plain(event.message[:MESSAGE]))
    return event


class JobNews:
    """Events about jobs: noted when a verdict is put in line, published when the store has taken it.

    Both are done by the claim loop's thread.
    """

    def __init__(self, events: NodeEvents) -> None:
        self._events = events
        self._pending: dict[tuple[str, int], NodeEvent] = {}

    def note(self, job: Job, outcome: Outcome, said: Settlement, worker: int | None) -> None:
        """Remember what to tell; cheap where nobody wants to hear it."""
        if not self._events.wanted(KIND_OF.get(said.transition.state, JobRetried)):
            return
        event = of_settlement(job, outcome, said, worker)
        if event is not None and len(self._pending) < MOST_PENDING:
            self._pending[said.id, said.token] = _without_marked(event, job)

    def waits(self) -> bool:
        """Is there anything to publish once the store has taken it?"""
        return bool(self._pending)

    def accepted(self, said: Settlement, is_valid: bool) -> None:
        """The store has answered; a late verdict that it refused is not told."""
        if self._pending:
            event = self._pending.pop((said.id, said.token), None)
            if is_valid:
                self._events.publish(event)

    def forget(self) -> None:
        """The node was rescued: others will tell how its jobs ended."""
        self._pending.clear()


class Monitoring:
    """What watches one node."""

    def __init__(self, report: Callable[[], NodeReport], hooks: Iterable[Hook] = ()) -> None:
        self.events = NodeEvents()
        self.jobs = JobNews(self.events)
        self._report = report
        self._hooks = tuple(hooks)
        self._node = ""  # its id at the start; one that was rescued goes on under another
        self._alerts: Alerts | None = None
        self._end_log: Callable[[], None] | None = None
        self._lookout = Lookout(self.events)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch; the node is up."""
        report = self._report()
        self._node = report.id
        self.follow_log_level()
        self._alerts = Alerts(self.events, report.id, self._hooks)
        pools = tuple(pool.name for pool in report.pools)
        self.events.publish(NodeStarted(report.id, report.store, report.durability, pools))
        self._thread = threading.Thread(target=self._watch, name="millpond-lookout", daemon=True)
        self._thread.start()

    def follow_log_level(self) -> None:
        """Log what the level of the logger asks for; call it again after the level was changed."""
        before = self._end_log
        self._end_log = log_events(self.events, self._node)
        if before is not None:
            before()

    def stop(
        self, reason: str = "asked to", *, released: int = 0, killed: int = 0, timeout: float = 1.0
    ) -> None:
        """Say so, deliver what is waiting, for so long, and end. Safe to call twice, or without a start."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is None:
            return
        thread.join(timeout)
        self.events.publish(NodeStopped(self._node, reason, released, killed))
        self.events.close(timeout)
        if self._alerts is not None:
            self._alerts.close(timeout)

    def _watch(self) -> None:
        while not self._stop.wait(LOOK):
            try:
                self._lookout.look(self._report(), time.monotonic())
            except Exception:  # one look that fails must not be the last
                logger.exception("The node could not be looked at")

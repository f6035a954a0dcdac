"""What there is to be seen at one moment: the overview of the HTTP API, and the lists behind it.

Asks the store through the same gathering as the dashboard, so that both show the same numbers. What moves
slowly and costs a search is asked for less often.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple

from millpond.api.fleet import node_document, told_by, workers_of
from millpond.api.job_documents import job_row
from millpond.api.overview import overview
from millpond.api.snapshot import Gathering, Snapshot
from millpond.job import Job, JobState
from millpond.store.protocol import Filter, NodeRecord, Store

if TYPE_CHECKING:
    from millpond.app import App

Document = dict[str, Any]
DEAD_EVERY = 5.0  # seconds between two looks at the dead jobs
DEAD_SEEN = 500  # of them, the newest, that are grouped
DEAD_PAGE = 50  # read at once: a job may carry a megabyte
DEAD_BYTES = 32 << 20  # of what they carry; then it is enough
EVENTS_SEEN = 200


class View(NamedTuple):
    """Everything at one moment."""

    overview: Document
    nodes: list[Document]
    workers: list[Document]
    dead: list[Document]  # what the newest dead jobs died of, the most frequent first
    recurring: list[Document] | None  # None: no app is known that could have any
    events: list[Document]  # the newest first


class Looking:
    """Makes views of one store. Used by one thread."""

    def __init__(self, app: App, *, app_name: str | None = None) -> None:
        self._app = app
        self._app_name = app_name
        self.gathering = Gathering(app, knows_tasks=bool(app.tasks))
        self._processors = Processors()
        self._dead: list[Document] = []
        self._dead_at = float("-inf")

    def look(self) -> View:
        """How things stand. StoreError when nothing was ever seen; later the last view says what is wrong."""
        snapshot = self.gathering.snapshot()
        store = self._app.store
        nodes = sorted(snapshot.counts.nodes, key=lambda node: (node.host, node.id))
        found = overview(
            snapshot,
            url=store.url,
            durability=self.gathering.durability,
            version=_version(),
            app=self._app_name,
        )
        if snapshot.trouble is None:
            self._look_at_dead(snapshot)
            self._processors.see(nodes)
        return View(
            overview=found,
            nodes=[node_document(node, with_workers=False) for node in nodes],
            workers=[self._worker(worker) for node in nodes for worker in workers_of(node)],
            dead=self._dead,
            recurring=snapshot.recurring,
            events=self.gathering.events.lines()[: -EVENTS_SEEN - 1 : -1],
        )

    def forget(self) -> None:
        """Something was changed: look again at everything."""
        self.gathering.forget()
        self._dead_at = float("-inf")

    def _worker(self, worker: Document) -> Document:
        return {**worker, "cpu_share": self._processors.share(worker["node"], worker["pid"])}

    def _look_at_dead(self, snapshot: Snapshot) -> None:
        if time.monotonic() - self._dead_at < DEAD_EVERY:
            return
        there_are = any(counts.states.get(JobState.DEAD) for counts in snapshot.counts.queues)
        dead = Filter(states=(JobState.DEAD,))
        self._dead = grouped(_newest(self._app.store, dead)) if there_are else []
        self._dead_at = time.monotonic()


def _newest(store: Store, chosen: Filter) -> Iterator[Job]:
    """Some of these jobs, the newest first; of large ones fewer."""
    cursor, read = None, 0
    for _ in range(DEAD_SEEN // DEAD_PAGE):
        page = store.search(chosen, DEAD_PAGE, cursor)
        yield from page.jobs
        read += sum(len(job.payload) for job in page.jobs)
        cursor = page.cursor
        if cursor is None or read > DEAD_BYTES:
            return


def grouped(jobs: Iterable[Job]) -> list[Document]:
    """Dead jobs, newest first, by where they were and what they died of."""
    groups: dict[tuple[object, ...], Document] = {}
    for job in jobs:
        key = (job.queue, job.task, job.reason, job.attempts[-1].error if job.attempts else None)
        if key not in groups:
            groups[key] = {**job_row(job), "count": 0}
        groups[key]["count"] += 1
    return sorted(groups.values(), key=lambda group: -int(group["count"]))


class Processors:
    """How much of a core each worker uses: the difference between two bulletins of its node."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, object], tuple[float, float, float | None]] = {}

    def see(self, nodes: Iterable[NodeRecord]) -> None:
        """Compare what nodes tell now with what they told before."""
        seen = {}
        for node in nodes:
            at = told_by(node)[1].get("at")
            if not isinstance(at, int | float):
                continue
            for worker in workers_of(node):
                key, used = (node.id, worker["pid"]), worker["cpu"]
                if isinstance(used, int | float):
                    seen[key] = self._compared(self._seen.get(key), float(at), float(used))
        self._seen = seen

    @staticmethod
    def _compared(
        before: tuple[float, float, float | None] | None, at: float, used: float
    ) -> tuple[float, float, float | None]:
        if before is None:
            return at, used, None
        if at <= before[0]:  # the same bulletin, seen again
            return before
        return at, used, max(0.0, used - before[1]) / (at - before[0])

    def share(self, node: str, pid: object) -> float | None:
        """Of one core; None until two bulletins were seen."""
        return self._seen.get((node, pid), (0.0, 0.0, None))[2]


def _version() -> str:
    try:
        return version("millpond")
    except PackageNotFoundError:
        return "unknown"

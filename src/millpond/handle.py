"""`JobHandle`: what an enqueue returns. It holds an id and asks the store for everything else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Generic, TypeVar

import msgspec

from millpond.errors import JobCancelled, JobFailed, ResultTimeout, UnknownJob
from millpond.job import ENDS, Job, JobState
from millpond.payload.codec import convert, decode
from millpond.rules.jobs.explain import why
from millpond.rules.jobs.known_tasks import live
from millpond.store.protocol import Filter, Store
from millpond.units import seconds

R = TypeVar("R")
FIRST_NAP = 0.005
LONGEST_NAP = 0.5  # between two looks at a job


class JobHandle(Generic[R]):
    """One job, wherever it is."""

    __slots__ = ("_kind", "_store", "created", "id")

    def __init__(self, store: Store, job_id: str, created: bool = True, kind: Any = Any) -> None:
        self._store = store
        self._kind = kind
        self.id = job_id
        self.created = created  # False: the enqueue found this job already there

    def job(self) -> Job:
        """The job as it is now. Raises UnknownJob if the store has none of that id."""
        (job,) = self._store.get([self.id])
        if job is None:
            raise UnknownJob(f"no job {self.id} is in {self._store.url}: it never was, or it has been pruned")
        return job

    def result(self, timeout: float | timedelta | str | None = None) -> R:
        """What the task returned. Waits for the job's end, at most `timeout`.

        Raises JobFailed if it ended dead, JobCancelled if cancelled, ResultTimeout if it has not ended.
        """
        patience = _Patience(timeout)
        while (job := self.job()).state not in ENDS:
            time.sleep(patience.nap(job))
        return self._value(job)

    async def aresult(self, timeout: float | timedelta | str | None = None) -> R:  # noqa: ASYNC109 - as result()
        """The same for async code."""
        patience = _Patience(timeout)
        while (job := await asyncio.to_thread(self.job)).state not in ENDS:  # noqa: ASYNC110 - a store has no event
            await asyncio.sleep(patience.nap(job))
        return self._value(job)

    def _value(self, job: Job) -> R:
        if job.state is JobState.CANCELLED:
            raise JobCancelled(
                f"job {job.id} was cancelled ({job.reason}): it has no result", job.reason or ""
            )
        if job.state is JobState.DEAD:
            raise _failed(job)
        try:
            plain = decode(job.result or b"null")
        except (ValueError, RecursionError) as error:
            said = f"the result of job {job.id} ({job.task}) cannot be read any more: {error}"
            raise JobFailed(said, "damaged", "", str(error), "") from None
        try:
            return convert(plain, self._kind)  # type: ignore[no-any-return]
        except Exception:  # the task did not return what it says it does
            return plain  # type: ignore[no-any-return]

    def cancel(self) -> bool:
        """End the job: at once if it waits, soon if it runs. False if it has ended already."""
        return self._store.cancel(Filter(ids=(self.id,))) > 0

    def why(self) -> str:
        """Why the job is where it is, in one sentence."""
        job = self.job()
        parents = [parent for parent in self._store.get(job.depends_on) if parent is not None]
        clock = getattr(self._store, "clock", None)
        now = time.time_ns() // 1000 if clock is None else clock.now()
        counts = self._store.counts()
        short = shortages(node.info for node in counts.nodes)
        return why(job, parents, counts, now, short=short, live=live(counts.nodes))

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, JobHandle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<JobHandle {self.id}>"


class _Info(msgspec.Struct):
    """What a node tells about itself, as far as it matters here."""

    short: dict[str, str] = {}


def shortages(infos: Iterable[bytes]) -> dict[str, str]:
    """What jobs of which task wait for, by the word of the nodes that keep them."""
    found: dict[str, str] = {}
    for info in infos:
        try:
            found.update(msgspec.json.decode(info, type=_Info).short)
        except (msgspec.DecodeError, RecursionError):  # another version's, or damaged: then we know nothing
            continue
    return found


class _Patience:
    """How long to wait for a job, and how often to look at it."""

    def __init__(self, timeout: float | timedelta | str | None) -> None:
        self._timeout = None if timeout is None else seconds(timeout, name="timeout")
        self._began = time.monotonic()
        self._nap = FIRST_NAP

    def nap(self, job: Job) -> float:
        """How long to sleep before the next look; ResultTimeout when there is none."""
        nap = self._nap
        self._nap = min(nap * 1.5, LONGEST_NAP)
        if self._timeout is None:
            return nap
        left = self._began + self._timeout - time.monotonic()
        if left <= 0:
            raise ResultTimeout(
                f"job {job.id} was still {job.state} after {self._timeout:g} s; it goes on: "
                "handle.why() tells what it waits for"
            )
        return min(nap, left)


def _failed(job: Job) -> JobFailed:
    last = job.attempts[-1] if job.attempts else None
    error = (last.error if last else None) or ""
    message = (last.message if last else None) or ""
    said = ": ".join(filter(None, (error, message)))
    number = "1 attempt" if job.attempt == 1 else f"{job.attempt} attempts"
    return JobFailed(
        f"job {job.id} ({job.task}) is dead ({job.reason}) after {number}" + (f": {said}" if said else ""),
        job.reason or "",
        error,
        message,
        (last.traceback if last else None) or "",
    )

"""Inside the worker: a claimed job's bytes become a call of its task, and the end of it becomes bytes.

The app was installed here when the worker was born. Nothing here touches a store or decides how a job
goes on; progress is told to the node, which tells the store.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import pickle
import struct
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import msgspec

from millpond.job import Outcome, Returned
from millpond.job_runner import arun, run
from millpond.node.worker.library_threads import limit
from millpond.node.worker.output_marks import mark_output
from millpond.node.worker.process_state import Surroundings
from millpond.node.worker.store_proxy import StoreOfTheNode
from millpond.pool.channel.frames import NOTE
from millpond.pool.channel.shared_page import RSS, SLOTS, UNWANTED
from millpond.pool.proc import resident
from millpond.pool.worker import main as pool_worker
from millpond.pool.worker.main import run_coroutine
from millpond.system.boot_clock import microseconds

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.job_runner import Order as AnyOrder

TIMES = struct.Struct("<qq")  # begun and ended, in microseconds since this machine was started
ID = 36  # characters of a job's id
TOKEN = struct.Struct("<q")
PROGRESS_EVERY = 0.05  # seconds between two reports of one job; what comes sooner is left out

logger = logging.getLogger("millpond")
_app: App
_threads: ThreadPoolExecutor | None = None
_surroundings: Surroundings
_learned: dict[str, bytes] = {}  # by task: definitions that came with an order
_encode = msgspec.json.Encoder().encode


class Order(msgspec.Struct, frozen=True, gc=False):
    """What a worker is told about a job."""

    task: str
    payload: bytes
    id: str
    queue: str
    attempt: int
    token: int
    trace: dict[str, str] | None
    definition: bytes | None = None  # of a task that was registered after this worker's app was loaded


def install(
    load: Callable[[], App],
    threads: int,
    doorway: str | None,
    library_threads: int | None = None,
    *,
    marks: bool = False,
) -> None:
    """The first thing in a worker's life: get the app, and threads if jobs are to share this process.

    `doorway` is where a store in the node's memory is reached, `library_threads` what numpy and the like
    may start. With `marks` each line that is printed says for the node which job printed it.
    """
    global _app, _threads, _surroundings
    limit(library_threads)
    if marks:
        mark_output()
    _app = load()
    _surroundings = Surroundings()
    if doorway is not None:
        _app.store = StoreOfTheNode(doorway)
    if threads:
        _threads = ThreadPoolExecutor(threads, thread_name_prefix="millpond-job")
    if pool_worker.current is not None:
        pool_worker.farewells.append(_flush_spans)
        # What a fresh worker holds: what its jobs take is counted from there, however soon the first comes
        pool_worker.current.page.words[RSS] = resident(os.getpid())


def _flush_spans() -> None:
    """Exporters that gather spans would lose those of the last seconds: idle workers leave sooner."""
    if "opentelemetry.trace" in sys.modules:
        from millpond.tracing import flush

        flush()


def execute(*order: object) -> bytes | str:
    """Run one job here; an async one on the loop that this worker keeps."""
    try:
        return _execute(*order)
    finally:  # also behind a KeyboardInterrupt, which is the job's end and not its worker's
        if not _surroundings.restore() and pool_worker.current is not None:
            pool_worker.current.wear_out("changed")


def _execute(*order: object) -> bytes | str:
    begun = microseconds()
    job = _taken(order)
    if job.trace:
        with _span(job) as ended:
            outcome = run(_app, job, Reporter, finish=run_coroutine)
            ended(outcome)
        return packed(begun, outcome)
    return packed(begun, run(_app, job, Reporter, finish=run_coroutine))


def _taken(order: tuple[object, ...]) -> Order:
    """The order; a task that came with it is registered first."""
    job = Order(*order)  # type: ignore[arg-type]
    if job.definition is not None and _learned.get(job.task) != job.definition:
        _learned[job.task] = job.definition
        before = _app.tasks.pop(job.task, None)
        try:
            pickle.loads(job.definition)  # registers itself; comes from the node, never from a store
        except Exception:
            logger.exception("Task %s, registered while the node runs, cannot be loaded here", job.task)
        if before is not None and not _app.knows(job.task):
            _app.register(before)
    return job


async def aexecute(*order: object) -> bytes | str:
    """Run one job on the loop of this worker, beside others."""
    begun = microseconds()
    job = _taken(order)
    if job.trace:
        with _span(job) as ended:
            outcome = await arun(_app, job, Reporter)
            ended(outcome)
        return packed(begun, outcome)
    return packed(begun, await arun(_app, job, Reporter))


def _span(job: Order) -> AbstractContextManager[Callable[[Outcome], None]]:
    from millpond.tracing import running

    return running(job.trace or {}, job=job.id, task=job.task, queue=job.queue, attempt=job.attempt + 1)


async def texecute(*order: object) -> bytes | str:
    """Run one job in a thread of this worker, beside others.

    A thread cannot be stopped: told to end, it stays in its place, so that its worker is ended instead of
    running on with one thread fewer.
    """
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    running = loop.run_in_executor(_threads, lambda: context.run(_execute, *order))
    while True:
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.cancelled():
                raise


class Reporter:
    """Takes a job's progress to the node."""

    __slots__ = ("_job", "_next")

    def __init__(self, job: AnyOrder) -> None:
        self._job = job.id.encode() + TOKEN.pack(job.token)
        self._next = 0.0

    def __call__(self, data: bytes) -> None:
        now = time.monotonic()
        worker = pool_worker.current
        if now >= self._next and worker is not None:
            self._next = now + PROGRESS_EVERY
            worker.outbox.send(NOTE, self._job + data)

    def unwanted(self) -> bool:
        """Has the node been asked to end the job that this worker runs?"""
        worker = pool_worker.current
        if worker is None:
            return False
        number = worker.page.words[UNWANTED]
        return number != 0 and number == worker.page.words[SLOTS]  # 0: nobody asked, or nothing in slot 0


def noted(note: bytes) -> tuple[tuple[str, int], bytes]:
    """What a Reporter has sent: the job with its token, which tells one run of it from the next, and what it
    said."""
    return (note[:ID].decode(), TOKEN.unpack_from(note, ID)[0]), note[ID + TOKEN.size :]


def packed(begun: int, outcome: Outcome) -> bytes | str:
    """An outcome for the way home: a result as it is, anything else as JSON."""
    times = TIMES.pack(begun, microseconds())
    if type(outcome) is Returned and outcome.refused is None and outcome.result is not None:
        return times + outcome.result
    return times.hex() + _encode(outcome).decode()


_decode = msgspec.json.Decoder(Outcome).decode


def unpacked(value: bytes | str) -> tuple[Outcome, int, int]:
    """The outcome, and when it began and ended."""
    if type(value) is bytes:
        begun, ended = TIMES.unpack_from(value)
        return Returned(value[TIMES.size :]), begun, ended
    assert isinstance(value, str)
    begun, ended = TIMES.unpack(bytes.fromhex(value[: 2 * TIMES.size]))
    return _decode(value[2 * TIMES.size :]), begun, ended

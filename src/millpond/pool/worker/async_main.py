"""The event loop of an async worker: up to `concurrency` tasks begin in one process and interleave.

Each running task owns a slot of the status page, so the parent can time them one by one. A task that
overruns is cancelled here first, politely; the parent kills the process if that does not help.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections import deque
from typing import Any

from millpond.pool.channel import frames
from millpond.pool.channel import shared_page as layout
from millpond.pool.worker.main import Call, Worker
from millpond.system.kernel import eventfd_read

TICK = 0.5


def serve(worker: Worker) -> None:
    """Run tasks concurrently until told to leave.

    The runner is never closed: closing cancels every task that still runs. Code of one task can end the loop
    (`sys.exit` in a background task or a callback, `loop.stop()`, closing every descriptor), and each of its
    neighbours would answer with a CancelledError and be charged for it. As it is they go down with this
    process, which the caller ends at once, and the parent sees a worker that died with so many suspects.
    Shown in tests/pool/test_loop_ends.py.
    """
    asyncio.Runner().run(_Loop(worker).serve())


class _Loop:
    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.words = worker.page.words
        self.waiting: deque[Call] = deque()
        self.free = list(range(worker.setup.concurrency - 1, -1, -1))
        self.tasks: dict[int, asyncio.Future[None]] = {}
        self.flushing = False
        self.spent: list[Any] = []  # values that are destroyed once their answers have been rung for
        self.ticking = False
        self.broken: asyncio.Future[None] | None = None
        self.retiring: str | None = None

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        self.broken = loop.create_future()
        self.worker.sock.setblocking(False)
        loop.add_reader(self.worker.sock.fileno(), self._readable)
        await self.broken  # ends with the exception that ends this worker

    def _readable(self) -> None:
        assert self.broken is not None
        unwanted: list[int] = []
        try:
            for frame in self.worker.reader.read():
                if frame.kind == frames.RESET:
                    self._start()  # finds the tickets gone and drops what was recalled
                    self.waiting.clear()
                if frame.kind == frames.CANCEL:
                    unwanted.append(int.from_bytes(frame.body, "little"))
                    continue
                calls = self.worker.calls(frame)
                self.waiting.extend(calls)
            self._start()
            for number in unwanted:
                # After its first step, if it came along: a coroutine that was never entered cannot answer
                asyncio.get_running_loop().call_soon(self._cancel, number)
        except BlockingIOError:
            pass
        except BaseException as error:
            if not self.broken.done():
                self.broken.set_exception(error)

    def _cancel(self, number: int) -> None:
        """The parent says this task has overrun: stop it here, where its neighbours are spared."""
        task = self.tasks.get(number)
        if task is not None:
            task.cancel()

    def _start(self) -> None:
        while self.waiting and self.free and self.retiring is None:
            try:
                eventfd_read(self.worker.tickets)
            except BlockingIOError:
                self.waiting.clear()
                return
            call = self.waiting.popleft()
            slot = self.free.pop()
            start = time.monotonic_ns()
            index = layout.SLOTS + 2 * slot
            self.words[index + 1] = start
            self.words[index] = call[0]
            self.tasks[call[0]] = asyncio.ensure_future(self._run(call, slot, start))
        if self.tasks and not self.ticking:
            self._tick()

    def _tick(self) -> None:
        """Show that the loop comes round, as long as there is something it could be blocked by."""
        self.words[layout.LOOP_AT] = time.monotonic_ns()
        self.ticking = bool(self.tasks)
        if self.ticking:
            asyncio.get_running_loop().call_later(TICK, self._tick)

    async def _run(self, call: Call, slot: int, start: int) -> None:
        try:
            function, args, kwargs = self.worker.bind(call)
            if call[3] & frames.CHUNK:
                value: Any = await self._run_chunk(function, *args)
            else:
                value = function(*args, **kwargs)
                if inspect.isawaitable(value):
                    value = await value
            good = True
        except BaseException as error:
            value, good = error, False
        if self.worker.forked:
            os._exit(0)
        end = time.monotonic_ns()
        self.worker.outbox.answer(call[0], end - start, value, good, end)
        self.words[layout.SLOTS + 2 * slot] = 0
        self.free.append(slot)
        del self.tasks[call[0]]
        items, errors = 1, 0 if good else 1
        if call[3] & frames.CHUNK and good:
            items, errors = len(value[0]), len(value[1] or ())
        self.worker.outbox.count([start - call[1]], [end - start], errors, items)
        self.spent.append(value)
        self._after()

    async def _run_chunk(
        self, function: Any, starred: bool, items: list[Any]
    ) -> tuple[list[Any], dict[int, bytes] | None]:
        values: list[Any] = []
        errors: dict[int, bytes] = {}
        for index, item in enumerate(items):
            try:
                value = function(*item) if starred else function(item)
                values.append(await value if inspect.isawaitable(value) else value)
            except BaseException as error:
                errors[index] = self.worker.outbox.pack_error(error)
                values.append(None)
        return values, errors or None

    def _after(self) -> None:
        """Look at the budgets, begin what waits, and ring once for all that ended in this turn."""
        if self.retiring is None and (reason := self.worker.over_budget()) is not None:
            self.retiring = reason
            self.waiting.clear()
            self.worker.outbox.flush()
            self.worker.outbox.send(frames.RETIRE, reason.encode())
        if self.waiting:
            self._start()
        if not self.flushing:
            self.flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self.flushing = False
        self.worker.outbox.flush()
        self.spent.clear()

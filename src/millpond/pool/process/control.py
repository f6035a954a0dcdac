"""The process engine as `Pool` uses it: start, look, steer and shut down.

Everything here may be called from any thread; what touches workers is handed to the dispatcher.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures._base import PENDING
from typing import Any

from millpond.errors import TaskKilled
from millpond.pool.channel import shared_page as layout
from millpond.pool.future import PoolFuture
from millpond.pool.proc import resident
from millpond.pool.process import dispatcher
from millpond.pool.process.inline_read import Driving
from millpond.pool.process.worker_link import Link
from millpond.pool.statistics import Health, PoolStatistics, WorkerRow, health, worker_row
from millpond.pool.task import Task


class CrewControl(Driving):
    """An engine with the verbs of a pool."""

    def start(self) -> None:
        """Start the dispatcher and the first workers; does nothing the second time."""
        if self.dispatcher is None and not self.closing:
            dispatcher.start(self)

    # --- for map ------------------------------------------------------------------------------------
    def estimate(self, call: Any) -> float | None:
        """How long a call takes, if that is known."""
        try:
            return self.functions.find(call).estimate
        except Exception:
            return None  # it cannot be pickled: submitting it will say so

    def running_for(self, future: PoolFuture[Any]) -> float | None:
        """How long the task has been running, if it has begun."""
        if not isinstance(future, Task) or (link := future.link) is None:
            return None
        with self.exclusive():
            start = None if link.closed else link.running().get(future.number)
        return None if start is None else time.monotonic() - start

    # --- looking ------------------------------------------------------------------------------------
    def statistics(self) -> PoolStatistics:
        """Counts, durations and one row for each worker, as of now."""
        now = time.monotonic()
        with self.exclusive():
            tally = self.tally.copy()
            rows = []
            for link in self.links.values():
                tally.fold(link.page, link.answered)
                rows.append(self._row(link, now))
            queued = len(self.queue) + len(self.returned) + len(self.inbox) - self.ended_in_line.count
            unseen = len(self.inbox)
        states = [row.state for row in rows]
        return tally.statistics(tuple(rows), states, queued, unseen)

    def _row(self, link: Link, now: float) -> WorkerRow:
        running = link.running()
        task, running_for = None, None
        if running:
            number, start = min(running.items(), key=lambda item: item[1])
            task, running_for = link.inflight[number].name, max(0.0, now - start)
        if link.gone_at is not None or link.killed_for is not None:
            state = "dead"
        elif link.draining is not None:
            state = "draining"
        elif not link.ready:
            state = "starting"
        else:
            state = "busy" if link.inflight else "idle"
        row = WorkerRow(
            pid=link.pid or None,
            state=state,
            task=task,
            running_for=running_for,
            rss=resident(link.pid) if link.pid else 0,
            tasks_done=link.page.words[layout.TASKS_DONE],
            age=now - link.born_at,
        )
        return worker_row(row, link.identity, link.page.words[layout.ERRORS] + link.failed)

    def health(self) -> Health:
        """ok, degraded or failed, with the reasons."""
        return health(
            closed=self.closing,
            failure=self.failure,
            starts=self.starts,
            queued=len(self.queue) + len(self.returned) + len(self.inbox) - self.ended_in_line.count,
            slots=self.most * self.options.concurrency,
            troubles=[] if self.upkeep is None else self.upkeep.standing.troubles(),
        )

    # --- steering -----------------------------------------------------------------------------------
    def kill(self, future: Future[Any]) -> bool:
        """Stop one task wherever it is."""
        if not isinstance(future, Task) or future._owner is not self:
            raise ValueError("this future belongs to another pool")
        if future._state is PENDING and future.cancel():
            return True
        done = threading.Event()
        answer: list[bool] = []

        def command() -> None:
            if future in self.returned:
                self.returned.remove(future)
                self.tally.killed += 1
                text = f"{future.name} was killed before it began"
                self.settle_soon(future, TaskKilled(text, began=False))
                answer.append(True)
            else:
                answer.append(self.upkeep.kill_task(future))
            done.set()

        if self.dispatcher and threading.current_thread() is self.dispatcher():
            # In a callback: nobody else would do it
            with self.exclusive():
                command()
            self.wake()
            return answer[0]
        self.call_soon(command)
        while not done.wait(0.05):
            if self.finished.is_set():
                return False
        return answer[0]

    def withdraw(self) -> None:
        """Take back every task that has not begun; each is abandoned."""

        def command() -> None:
            dispatcher.cancel_waiting(self, stop=True)
            for link in self.links.values():
                for task in link.recall():
                    task.abandon(self.later)

        if self.dispatcher is not None:
            self.call_soon(command)

    def begun(self) -> list[tuple[Task, float]]:
        """Every task that runs, with the instant it began, on the monotonic clock."""
        with self.exclusive():
            return [
                (link.inflight[number], start)
                for link in self.links.values()
                if link.inflight and not link.closed
                for number, start in link.running().items()
            ]

    def move_fence(self, until: int) -> None:
        """Fenced tasks may run until then (ns since boot); the template sees to it."""
        with self.exclusive():
            self.fence = until
            for link in self.links.values():
                if not link.closed:
                    link.move_fence(until)

    def resize(self, least: int, most: int) -> None:
        """New bounds; the dispatcher grows or shrinks towards them."""

        def command() -> None:
            self.least, self.most = least, most

        if self.dispatcher is None:
            command()
        else:
            self.call_soon(command)

    def want(
        self,
        workers: int | None,
        keep: int,
        most: int,
        idle_timeout: float,
        then: Callable[[], object] | None = None,
    ) -> None:
        """How many workers to have now, and how long they may stand idle where there are more than `keep`.
        None: as many as there is work for. Those beyond `most` leave when they have nothing to do. Calls
        `then` when all of that counts."""
        size = (workers, keep, most, idle_timeout)
        if (self.wanted, self.keep, self.most, self.idle_timeout) == size:
            if then is not None:
                then()
            return

        def command() -> None:
            self.wanted, self.keep, self.most, self.idle_timeout = size
            if then is not None:
                then()

        if self.dispatcher is None:
            command()
        else:
            self.call_soon(command)

    def start_no_more(self) -> None:
        """From now on, whatever size is wanted, nobody is started but for work that has no worker at all: the
        end is near, and whoever came would only be waited for."""

        def command() -> None:
            self.is_last = True

        if self.dispatcher is not None:
            self.call_soon(command)

    def recycle(self, pid: int) -> None:
        """Replace one worker: it gets nothing more, and leaves when what it runs has ended."""

        def command() -> None:
            for link in list(self.links.values()):
                if link.pid == pid and link.ready and link.draining is None and link.gone_at is None:
                    self.upkeep.let_go(link, "recycled")

        if self.dispatcher is not None:
            self.call_soon(command)

    def shutdown(self, *, wait: bool, cancel: bool, timeout: float | None) -> None:
        """Stop accepting, finish or stop what there is, end the workers."""
        if self.owner_pid != os.getpid():
            return  # a forked child: the pool and its processes are the parent's
        with self.exclusive():
            self.closing = True
            if timeout is not None:
                self.kill_at = time.monotonic() + timeout
        if self.dispatcher is None:
            self._never_started()
            return
        if cancel:
            self.commands.append(lambda: dispatcher.cancel_waiting(self))
        self.wake()
        thread = self.dispatcher()
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join()

    def _never_started(self) -> None:
        self.ended = True
        self.finished.set()

    def close_quietly(self, owner: int) -> None:
        """The pool was dropped: let the work finish without anybody waiting for it."""
        if owner == os.getpid():
            self.closing = True
            if self.dispatcher is None:
                self._never_started()
            else:
                self.wake()

    def give_up(self) -> None:
        """The program ends by Ctrl-C: do not wait for what runs."""
        self.kill_at = time.monotonic()

    def stop_workers(self, *, force: bool) -> None:
        """Signal every worker; their tasks fail with WorkerDied, waiting ones are cancelled."""

        def command() -> None:
            dispatcher.cancel_waiting(self, stop=True)
            for link in self.links.values():
                for task in link.take_back(link.tickets_left()):
                    task.abandon(self.later)
                if force:
                    link.kill()
                else:
                    link.signal(signal.SIGTERM)
                link.draining = link.draining or "shutdown"

        with self.exclusive():
            self.closing = True
        if self.dispatcher is None:
            self._never_started()
        else:
            self.call_soon(command)

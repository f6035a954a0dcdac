"""A caller that waits reads its own answer, instead of waiting for the dispatcher to read it.

Saves two thread switches a round trip. Bounded to a few milliseconds: whatever else may happen to the worker
meanwhile is the dispatcher's business, and it takes a worker back from a caller that was interrupted.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from millpond.pool.future import DONE, PoolFuture
from millpond.pool.options import PoolOptions
from millpond.pool.process.engine import Engine
from millpond.pool.process.worker_link import Link
from millpond.pool.task import Task
from millpond.rules.pool.dispatch import watch_for
from millpond.system.cores import usable_cores

DRIVE_FOR = 0.005  # a caller reads its own answer for this long, then leaves it to the dispatcher


class Driving(Engine):
    """An engine whose callers lend a hand."""

    def __init__(self, options: PoolOptions) -> None:
        super().__init__(options)
        self.cores = usable_cores()

    def drive(self, future: PoolFuture[Any], limit: float | None) -> None:
        """Read the answer here instead of waiting for the dispatcher: saves two thread switches.

        Bounded to a few milliseconds, so whatever happens to the worker meanwhile is the dispatcher's.
        """
        until = time.monotonic() + (DRIVE_FOR if limit is None else min(limit, DRIVE_FOR))
        while future._state not in DONE and not self.ended:
            assert isinstance(future, Task)
            link, watch = future.link, watch_for(future.function.estimate, self.cores)
            left = until - time.monotonic()
            if link is None or left <= 0 or not self._claim(link):
                return
            try:
                ready = link.seen_within(watch) or link.poll.poll(left * 1000)
            finally:
                self.rearm.append(link)
                self.read(link if not link.closed else None)
            if not ready:
                return

    def _claim(self, link: Link) -> bool:
        if not self.lock.acquire(blocking=False):
            return False
        self.holder = threading.get_ident()
        try:
            if link.closed or link.driven or link.out or link.reader.partial:
                return False
            link.driven_at = time.monotonic()
            link.driven = True
            if link.armed:
                link.armed = False
                self.epoll.modify(link.bell, 0)
            return True
        finally:
            self.holder = 0
            self.lock.release()
            if self.inbox:
                self.pump()

    def read(self, link: Link | None) -> None:
        """Collect one worker's answers in this thread, and give it more."""
        if not self.shaken and self.lock.acquire(blocking=False):
            self.holder = threading.get_ident()
            try:
                now = time.monotonic()
                if link is not None and not link.closed:
                    self.collect(link, now)
                self.turn(now)
            except BaseException:
                self.shaken = True
                self.wake()
                raise
            finally:
                self.holder = 0
                self.lock.release()
                self.settle()
        if self.later or self.attention or self.closing:
            self.wake()
        if self.inbox or self.rearm:
            self.pump()

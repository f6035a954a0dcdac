"""Both ends of a worker's channel in one process: a real Link, and an Outbox on its other side."""

import itertools
import os
import pickle
import select
import time
from collections import deque

from millpond.pool.channel import shared_page as layout
from millpond.pool.channel.functions import Function
from millpond.pool.channel.shared_page import Page
from millpond.pool.options import PoolOptions, TaskOptions
from millpond.pool.process.worker_link import Link
from millpond.pool.task import Task
from millpond.pool.worker.result_writer import Outbox


class Nobody:
    """An owner that neither cancels nor drives."""

    options = PoolOptions(1, 1)

    def cancel(self, future):
        return False

    def drive(self, future, limit):
        return None


class TwoEnds:
    """A link and the worker's side of it. Nothing runs by itself: the test takes every step."""

    def __init__(self):
        self.link = Link(1, "test", capture=False, concurrency=1)
        ends = self.link.ends()
        self.page = Page(os.dup(ends.memory))
        self.sock = ends.sock
        self.outbox = Outbox(self.sock, self.page, ends.bell)
        self.numbers = itertools.count(1)
        self.function = Function(0, "f")
        self.answers: list = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.close()
        self.page.close()

    def move_to(self, position):
        """As if `position` bytes of answers had gone through the ring already."""
        self.page.words[layout.WRITTEN] = self.page.words[layout.CONSUMED] = position
        self.link.consumed = self.outbox._written = position
        self.outbox._room = position + layout.RING_BYTES

    def new_task(self):
        task = Task(next(self.numbers), Nobody(), TaskOptions(), time.monotonic_ns())
        task.function = self.function
        return task

    def expect(self):
        """A task on the parent's books, as if it had been sent; returns its number."""
        task = self.new_task()
        self.link.inflight[task.number] = task
        return task.number

    def collect(self):
        """What the parent finds now: (number, verdict, payload, buffers) of each answer, and the news."""
        answers: deque = deque()
        self.link.collect(answers)
        news, self.link.news = self.link.news, []
        found = [(task.number, verdict, payload, buffers) for task, verdict, payload, buffers in answers]
        self.answers += found
        return found, news

    def rung(self, timeout=0.0):
        """Has the parent a reason to look? The bell, or more of a frame that has begun to arrive."""
        sources: list = [self.link.bell, self.link.sock] if self.link.reader.partial else [self.link.bell]
        return bool(select.select(sources, [], [], timeout)[0])

    def collect_until(self, count):
        """Collect until `count` answers have come in all; waits to be rung for, never on the clock."""
        while len(self.answers) < count:
            assert self.rung(3.0), f"only {len(self.answers)} of {count} answers came"
            self.collect()
        return self.answers


def load(payload, buffers):
    return pickle.loads(payload, buffers=buffers)

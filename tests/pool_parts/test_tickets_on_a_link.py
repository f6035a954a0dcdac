"""The ticket protocol on real parts: a Link with its eventfd, socket and ring; the worker's steps are ours.

Same question as the model in `tests/rules/test_tickets.py`: sent, recalled, answered, or dead under it,
each task has exactly one end, and one that was given back never began.
"""

import os
from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from millpond.pool.channel import frames
from millpond.pool.worker.main import _split
from millpond.rules.pool.worker_death import toll
from tests.pool_parts.two_ends import TwoEnds, load

TASKS = 30


class OnALink(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.ends: dict[int, str] = {}
        self.both = TwoEnds()
        self.waiting = deque(self._task() for _ in range(TASKS))
        self._attach()

    def _task(self):
        task = self.both.new_task()
        task.body = frames.TASK.pack(task.number, 0, 0, 3, frames.INLINE) + b"xyz"
        task.estimate = 0.25
        return task

    def _attach(self):
        self.link = self.both.link
        self.both.sock.setblocking(False)
        self.reader = frames.FrameReader(self.both.sock)
        self.frames: deque[frames.Frame] = deque()
        self.read: deque[int] = deque()
        self.running: int | None = None

    # --- the parent ---------------------------------------------------------------------------------
    @precondition(lambda self: self.waiting and not self.link.recalling)
    @rule(count=st.integers(1, 5))
    def send(self, count):
        self.link.send_tasks([self.waiting.popleft() for _ in range(min(count, len(self.waiting)))])

    @rule()
    def collect(self):
        found, news = self.both.collect()
        for number, _, payload, buffers in found:
            assert load(payload, buffers) == ("answer of", number)
            self._end(number, "answered")
        if any(frame.kind == frames.RESET_DONE for frame in news):
            self.link.recalling = False

    @precondition(lambda self: self.link.inflight)
    @rule()
    def recall(self):
        self._given_back(self.link.recall())

    def _given_back(self, tasks):
        assert [task.number for task in tasks] == sorted(task.number for task in tasks)
        assert self.running not in [task.number for task in tasks]
        assert all(task.link is None for task in tasks)
        self.waiting.extendleft(reversed(tasks))

    # --- the worker ---------------------------------------------------------------------------------
    @rule(steps=st.integers(1, 8), ring=st.booleans())
    def work(self, steps, ring):
        """A few steps of the worker, each the next thing it can do; then perhaps the doorbell."""
        for _ in range(steps):
            if self.running is not None:
                self.both.outbox.answer(self.running, 5, ("answer of", self.running), True, 1)
                self.running = None
            elif self.read:
                self._begin()
            elif self.frames:
                self._open(self.frames.popleft())
            else:
                self._receive()
        if ring:
            self.both.outbox.flush()

    def _receive(self):
        try:
            self.frames.extend(self.reader.read())
        except BlockingIOError:
            return

    def _open(self, frame):
        if frame.kind == frames.RESET:
            self.both.outbox.send(frames.RESET_DONE, b"")
        else:
            self.read.extend(call[0] for call in _split(frame.body))

    def _begin(self):
        try:
            os.eventfd_read(self.link.tickets)
        except BlockingIOError:
            self.read.clear()
            return
        self.running = self.read.popleft()

    @rule()
    def die(self):
        self.both.sock.close()
        self.collect()
        held = list(self.link.inflight)
        split = toll(held, self.link.tickets_left())
        assert list(split.begun) == ([] if self.running is None else [self.running])
        self._given_back(self.link.take_back(len(split.unbegun)))
        for number in self.link.inflight:
            self._end(number, "crashed")
        numbers = self.both.numbers
        self.both.__exit__()
        self.both = TwoEnds()
        self.both.numbers = numbers
        self._attach()

    # --- what must hold -------------------------------------------------------------------------------
    def _end(self, number, how):
        assert number not in self.ends
        self.ends[number] = how

    @invariant()
    def every_task_is_in_one_place(self):
        waiting = [task.number for task in self.waiting]
        assert sorted([*self.ends, *waiting, *self.link.inflight]) == list(range(1, TASKS + 1))
        assert not self.link.stray

    @invariant()
    def the_books_agree(self):
        assert abs(self.link.load - 0.25 * len(self.link.inflight)) < 1e-9

    def teardown(self):
        self.die()
        self.both.__exit__()


TestTicketsOnALink = OnALink.TestCase
TestTicketsOnALink.settings = settings(deadline=None, max_examples=50, stateful_step_count=50)

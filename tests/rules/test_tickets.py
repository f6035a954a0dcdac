"""The ticket protocol as a model: whatever is recalled and whoever dies, each task has exactly one end.

The parent sends tasks in order, each with a ticket. A worker begins a task only by taking a ticket; the
parent recalls by taking tickets itself. Here the two sides are plain lists and a counter, the order of
their steps is hypothesis's, and who pays for a death is decided by `rules.blame`.
"""

from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from millpond.rules.pool.worker_death import toll

RESET = "reset"


class Tickets(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.waiting: deque[int] = deque(range(40))
        self.ends: dict[int, str] = {}
        self._new_worker()

    def _new_worker(self) -> None:
        self.held: list[int] = []  # the parent's books, in the order sent
        self.tickets = 0
        self.wire: deque = deque()  # frames under way: lists of tasks, or RESET
        self.read: deque[int] = deque()  # tasks of the frame the worker is at
        self.running: list[int] = []
        self.ring: list[int] = []  # answers the parent has not looked at
        self.confirmed = False
        self.recalling = False

    @initialize(slots=st.integers(1, 3))
    def choose(self, slots):
        self.slots = slots  # one for a process worker, several for an async one

    # --- the parent ---------------------------------------------------------------------------------
    @precondition(lambda self: self.waiting and not self.recalling)
    @rule(count=st.integers(1, 6))
    def send(self, count):
        batch = [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
        self.held += batch
        self.tickets += len(batch)
        self.wire.append(batch)

    @rule()
    def collect(self):
        for task in self.ring:
            self._end(task, "answered")
            self.held.remove(task)
        self.ring.clear()
        if self.confirmed:
            self.recalling = self.confirmed = False

    @precondition(lambda self: self.held)
    @rule()
    def recall(self):
        self._take_back(self.tickets)
        self.tickets = 0

    def _take_back(self, count):
        split = toll(self.held, count)
        assert not set(split.unbegun) & {*self.running, *self.ring}
        self.held = list(split.begun)
        self.waiting.extendleft(reversed(split.unbegun))
        if split.unbegun:
            self.recalling = True
            self.wire.append(RESET)

    # --- the worker ---------------------------------------------------------------------------------
    @rule(choices=st.lists(st.integers(0, 3), min_size=1, max_size=8))
    def work(self, choices):
        """A few steps of the worker, each the next thing it can do; 0 is to finish one early."""
        for choice in choices:
            if self.running and (choice == 0 or len(self.running) == self.slots):
                self.ring.append(self.running.pop(choice % len(self.running)))
            elif self.read:
                self._begin()
            elif self.wire:
                self._read_frame(self.wire.popleft())

    def _begin(self):
        if not self.tickets:
            self.read.clear()  # recalled: this task and all behind it belong to the parent again
            return
        self.tickets -= 1
        self.running.append(self.read.popleft())

    def _read_frame(self, frame):
        if frame is RESET:
            self.confirmed = True
        else:
            self.read.extend(frame)

    @rule()
    def die(self):
        running = self.running
        self.collect()
        split = toll(self.held, self.tickets)
        assert sorted(split.begun) == sorted(running)
        for task in split.begun:
            self._end(task, "crashed")
        self.waiting.extendleft(reversed(split.unbegun))
        self._new_worker()

    # --- what must hold -------------------------------------------------------------------------------
    def _end(self, task, how):
        assert task not in self.ends
        self.ends[task] = how

    @invariant()
    def every_task_is_in_one_place(self):
        assert sorted([*self.ends, *self.waiting, *self.held]) == list(range(40))

    @invariant()
    def what_runs_is_on_the_books(self):
        assert {*self.running, *self.ring} <= set(self.held)

    def teardown(self):
        self.die()
        assert sorted([*self.ends, *self.waiting]) == list(range(40))


TestTickets = Tickets.TestCase
TestTickets.settings = settings(deadline=None, max_examples=60, stateful_step_count=60)

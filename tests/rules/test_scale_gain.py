"""Growth that does not help is taken back; jobs that became longer by themselves are another matter."""

from __future__ import annotations

import math

from millpond.rules import gain
from millpond.rules.observation import Gain, Limits, Observation, TaskLoad


class Downstream:
    """Workers that all wait for something with so many places, told to the guard second by second."""

    def __init__(self, places, service=1.0, least=1):
        self.places = places
        self.least = least
        self.service = service
        self.now = 0.0
        self.completed = 0.0
        self.logs = 0.0
        self.squares = 0.0
        self.known = Gain()

    def run(self, workers, seconds):
        """Let as many work as are asked for and allowed; returns how many these were in the end."""
        allowed = workers
        for _ in range(seconds):
            cap = workers if self.known.cap is None else int(self.known.cap)
            allowed = max(self.least, min(workers, cap))
            length = self.service * max(1.0, allowed / self.places)
            done = allowed / length
            self.now += 1.0
            self.completed += done
            self.logs += done * math.log(length)
            self.squares += done * (math.log(length) ** 2 + 0.5)  # some spread, as real jobs have
            task = TaskLoad("t", 1.0, length, 500, round(self.completed), self.logs, self.squares)
            seen = Observation(Limits(self.least, 200), (task,), busy=allowed, measured_at=self.now)
            self.known = gain.learned(seen, seen.line(), self.known, self.now)
        return allowed


def test_growth_that_brings_nothing_is_taken_back():
    downstream = Downstream(places=20)
    downstream.run(18, 60)
    assert downstream.known.cap is None
    assert downstream.run(100, 300) <= 26


def test_a_minimum_above_what_the_next_trial_would_ask_for_does_not_undo_what_was_learned():
    downstream = Downstream(places=20, least=15)  # 60 % of the 21 that are left would be 13
    downstream.run(18, 60)
    downstream.run(100, 300)
    assert downstream.run(100, 3600) <= 26


def test_where_even_the_minimum_is_more_than_the_downstream_serves_it_stays_at_the_minimum():
    downstream = Downstream(places=10, least=15)
    downstream.run(15, 60)
    downstream.run(100, 300)
    assert downstream.known.before is None  # no trial is on that could never begin
    assert downstream.run(100, 3600) <= 20


def test_growth_that_helps_is_left_alone():
    downstream = Downstream(places=200)
    for workers in (5, 10, 20, 40, 80):
        assert downstream.run(workers, 60) == workers
    assert downstream.known.cap is None


def test_jobs_that_became_longer_by_themselves_get_their_workers():
    downstream = Downstream(places=1000)
    downstream.run(10, 60)
    downstream.service = 8.0
    downstream.run(80, 300)
    assert downstream.run(80, 60) == 80


def test_what_was_taken_back_is_tried_again_once_the_downstream_has_grown():
    downstream = Downstream(places=20)
    downstream.run(18, 60)
    downstream.run(100, 300)
    downstream.places = 1000
    assert downstream.run(100, 3600) == 100


def test_without_anything_waiting_nothing_is_learned():
    task = TaskLoad("t", completed=1000)
    seen = Observation(Limits(1, 10), (task,), busy=5, measured_at=1.0)
    assert gain.learned(seen, seen.line(), Gain(), 1.0) == Gain()

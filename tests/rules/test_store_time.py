"""The time of a store without a server: what the wall clock does, and what the store makes of it."""

from __future__ import annotations

import pytest

from millpond.job import MICROSECONDS
from millpond.rules.store.store_time import LIMIT, Mark, first_mark, marked, store_time

S = MICROSECONDS
HOUR = 3600 * S
WALL = 1_000_000 * S  # what the wall clock shows when the boot clock shows nothing


class Machine:
    """Two clocks, and the time that follows from them."""

    def __init__(self) -> None:
        self.boot, self.apart = 5 * S, WALL
        self.mark: Mark = first_mark("b", self.boot, self.wall)

    @property
    def wall(self) -> int:
        return self.boot + self.apart

    def look(self, passed: int = 0, step: int = 0) -> int:
        """The store's time after so long, and after the wall clock was set by so much."""
        self.boot += passed
        self.apart += step
        self.mark = marked(self.mark, self.boot, self.wall)
        return store_time(self.mark, self.boot, self.wall)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_while_nobody_sets_it_it_is_the_wall_clock(machine):
    mark = machine.mark
    assert [machine.look(10 * S) - machine.wall for _ in range(3)] == [0, 0, 0]
    assert machine.mark is mark


def test_set_forward_it_is_believed_at_once(machine):
    before = machine.look()
    assert machine.look(S, 2 * HOUR) == before + S + 2 * HOUR == machine.wall


def test_set_back_it_goes_on_at_half_its_pace_until_both_agree(machine):
    before = machine.look(S)
    assert machine.look(0, -2 * HOUR) == before
    assert machine.look(HOUR) == before + HOUR // 2
    assert machine.look(3 * HOUR) == before + 2 * HOUR == machine.wall
    assert machine.look(HOUR) == machine.wall


def test_forward_and_back_it_keeps_what_it_has_seen(machine):
    before = machine.look(0, 2 * HOUR)
    assert machine.look(10 * S, -2 * HOUR) == before + 10 * S
    assert machine.look(2 * S) == before + 11 * S


def test_back_and_forward_it_is_right_again(machine):
    before = machine.look()
    assert machine.look(0, -2 * HOUR) == before
    assert machine.look(20 * S) == before + 10 * S
    assert machine.look(0, 2 * HOUR) == before + 20 * S == machine.wall


def test_forward_while_it_is_slow_changes_nothing_before_the_wall_clock_is_ahead(machine):
    before = machine.look()
    machine.look(0, -2 * HOUR)
    assert machine.look(20 * S, HOUR) == before + 10 * S
    assert machine.look(20 * S) == before + 20 * S


def test_set_back_twice_it_is_still_slow_and_never_goes_back(machine):
    before = machine.look()
    assert machine.look(0, -HOUR) == before
    assert machine.look(10 * S, -HOUR) == before + 5 * S
    assert machine.look(10 * S) == before + 10 * S


def test_less_than_a_second_is_taken_as_it_comes(machine):
    machine.look()
    assert machine.look(S, -S // 2) == machine.wall


def test_one_that_was_wrong_by_far_is_believed(machine):
    machine.look()
    assert machine.look(S, -LIMIT - 2 * S) == machine.wall
    assert machine.look(S) == machine.wall


def test_it_never_goes_back_whatever_is_done_to_it_within_the_limit(machine):
    steps = [2, -2, -2, 2, 1, -1, -3, 3, 0, -2, -2, 4]
    seen = [machine.look(number * S, step * HOUR) for number, step in enumerate(steps)]
    assert seen == sorted(seen)

"""The toll of a dead worker: what it held is split in two, in order, and nothing is lost or charged twice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.rules.pool.worker_death import may_retry, toll

calm = settings(deadline=None)


@calm
@given(held=st.lists(st.integers(), unique=True), tickets=st.integers(-5, 50))
def test_a_toll_is_an_exact_partition_in_the_order_sent(held, tickets):
    split = toll(held, tickets)
    assert [*split.begun, *split.unbegun] == held
    assert len(split.unbegun) == min(max(tickets, 0), len(held))


@pytest.mark.parametrize(
    ("tickets", "begun", "unbegun"),
    [(0, (1, 2, 3), ()), (1, (1, 2), (3,)), (3, (), (1, 2, 3)), (9, (), (1, 2, 3)), (-1, (1, 2, 3), ())],
)
def test_the_last_tasks_are_the_ones_whose_tickets_are_left(tickets, begun, unbegun):
    assert toll((1, 2, 3), tickets) == (begun, unbegun)


def test_an_idle_worker_takes_nobody_with_it():
    assert toll([], 0) == ([], [])


@pytest.mark.parametrize(
    ("crashes", "retries", "expected"),
    [(1, 0, False), (1, 1, True), (2, 1, False), (2, 2, True), (3, 2, False)],
)
def test_a_task_is_retried_as_often_as_it_allows(crashes, retries, expected):
    assert may_retry(crashes, retries) is expected

"""Time limits: nothing is noticed late or early, however rarely one looks; the two ends are told apart."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.rules.pool.limits import Limit, due_at, judge, queue_limit

calm = settings(deadline=None)
NOW = 100.0

MIXED = [
    Limit(1, 80.0, 10.0, None),
    Limit(2, None, None, 99.0),
    Limit(3, None, 5.0, None),
    Limit(4, 99.0, 2.0, None),
]
VERDICTS = {
    "nothing held": ([], (), (), math.inf),
    "no limits": ([Limit(1, 50.0, None, None)], (), (), math.inf),
    "running within its timeout": ([Limit(1, 95.0, 10.0, None)], (), (), 105.0),
    "running past its timeout": ([Limit(1, 89.0, 10.0, None)], (1,), (), math.inf),
    "running exactly its timeout": ([Limit(1, 90.0, 10.0, None)], (1,), (), math.inf),
    "running past its deadline": ([Limit(1, 99.0, 10.0, 99.5)], (1,), (), math.inf),
    "the deadline comes before the timeout": ([Limit(1, 99.0, 10.0, 103.0)], (), (), 103.0),
    "the timeout comes before the deadline": ([Limit(1, 99.0, 2.0, 103.0)], (), (), 101.0),
    "not begun, may begin right now": ([Limit(1, None, 10.0, None)], (), (), 110.0),
    "not begun, past its deadline": ([Limit(1, None, 10.0, 99.0)], (), (1,), math.inf),
    "not begun, deadline to come": ([Limit(1, None, None, 101.0)], (), (), 101.0),
    "several at once": (
        MIXED,
        (1,),
        (2,),
        101.0,
    ),
}


@pytest.mark.parametrize(("limits", "overrun", "expired", "again"), VERDICTS.values(), ids=VERDICTS)
def test_a_verdict(limits, overrun, expired, again):
    assert judge(iter(limits), NOW) == (overrun, expired, again)


instants = st.floats(0, 1000)
durations = st.floats(1e-3, 100)


@calm
@given(
    st.lists(
        st.builds(Limit, st.integers(), st.none() | instants, st.none() | durations, st.none() | instants)
    )
)
def test_each_task_is_overrun_expired_or_looked_at_later(limits):
    verdict = judge(limits, NOW)
    due = [limit for limit in limits if due_at(limit, NOW) <= NOW]
    assert verdict.overrun == tuple(limit.task for limit in due if limit.started_at is not None)
    assert verdict.expired == tuple(limit.task for limit in due if limit.started_at is None)
    assert verdict.look_again_at > NOW


class Life:
    """One task of a simulated worker: when it begins and ends, and when it must be noticed."""

    def __init__(self, number, begin, length, timeout, deadline_at):
        self.number, self.timeout, self.deadline_at = number, timeout, deadline_at
        self.begin, self.end = begin, begin + length
        deadline = math.inf if deadline_at is None else deadline_at
        self.due = min(deadline, math.inf if timeout is None else begin + timeout)

    def limit(self, now):
        begun = self.begin if self.begin <= now else None
        return Limit(self.number, begun, self.timeout, self.deadline_at)


@st.composite
def lives(draw):
    """Tasks given to one worker at instant 1000. Some never begin, some never end."""
    held = []
    for number in range(draw(st.integers(1, 6))):
        begin = 1000.0 + draw(st.floats(0, 50) | st.just(math.inf))
        length = draw(st.floats(0, 200) | st.just(math.inf))
        timeout = draw(st.none() | st.floats(2, 100))
        deadline_at = draw(st.none() | st.floats(1000.001, 1100))
        held.append(Life(number, begin, length, timeout, deadline_at))
    return held


@settings(calm, max_examples=150)
@given(lives())
def test_looking_only_when_told_to_no_task_is_noticed_late_or_early(held):
    last = 1200.0  # by then everything that can be due is due
    expected = {life.number: life.due for life in held if life.due < life.end and life.due <= last}
    noticed: dict[int, float] = {}
    now = 1000.0
    while now <= last:
        held = [life for life in held if life.end > now and life.number not in noticed]
        verdict = judge([life.limit(now) for life in held], now)
        for number in verdict.overrun + verdict.expired:
            noticed[number] = now
        for life in held:
            if life.number in noticed:
                assert (life.number in verdict.overrun) == (life.begin <= now)
        assert verdict.look_again_at > now
        now = verdict.look_again_at
    assert noticed == expected


@pytest.mark.parametrize(
    ("age", "deadline", "expected"),
    [(None, None, None), (5.0, None, 15.0), (None, 7.0, 17.0), (5.0, 7.0, 15.0), (7.0, 5.0, 15.0)],
)
def test_a_waiting_task_is_rejected_at_the_sooner_of_its_limits(age, deadline, expected):
    assert queue_limit(10.0, age, deadline) == expected

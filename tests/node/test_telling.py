"""What is told about the size of a pool is what happened to it, and why; in shadow, what was recommended."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from millpond.api.snapshot import decision_document
from millpond.node.observability.events import PoolFlaps, ScaledDown, ScaledUp
from millpond.node.observability.wording import level_of
from millpond.node.scaling.decision_log import Telling, read_decisions, share_of
from millpond.node.state import NodeState
from millpond.pool_settings import PoolSettings
from millpond.rules.scaling.policies import Fixed, ScaleForWait
from millpond.rules.scaling.records import Limits, Memory, Observation, Policy, TaskLoad
from millpond.store.open import open_store


class Pool:
    """A pool of which a policy is told, and of whose decisions is told."""

    def __init__(self, policy: Policy, *, shadow: bool = False) -> None:
        self.policy = policy
        self.settings = PoolSettings("images", ("images",), 1, 10, shadow=shadow)
        self.state = NodeState(open_store("memory://"), lease=15.0)
        self.heard: list[Any] = []
        events: Any = SimpleNamespace(publish=self.heard.append)
        self.telling = Telling(self.state, events)
        self.now = 100.0

    def seen(self, waiting: int = 0, **more: Any) -> Any:
        """One second later: decide, and tell."""
        self.now += 1.0
        limits = Limits(self.settings.least, self.settings.most)
        remaining = (3.0,) * more.get("busy", 0)
        tasks = (TaskLoad("task", service=3.0, waiting=waiting),)
        observation = Observation(limits, tasks, remaining=remaining, measured_at=self.now, **more)
        decision, _ = self.policy.decide(observation, Memory(), self.now)
        self.telling.tell(self.settings, decision, self.now)
        return decision

    def last(self) -> tuple[int, int, str]:
        """Of what was written down."""
        self.telling.flush()
        (line,) = read_decisions(self.state.store, 1)
        return line["before"], line["after"], line["sentence"]


@pytest.fixture
def by_wait() -> Pool:
    return Pool(ScaleForWait(10.0))


def test_every_decision_that_is_written_down_has_its_fields(by_wait):
    by_wait.seen(busy=4)
    by_wait.seen(80, busy=4)
    by_wait.telling.flush()
    (line,) = read_decisions(by_wait.state.store, 1)
    fields = ("current", "target", "action", "queue_depth", "busy_workers")
    assert [line[name] for name in fields] == [4, 10, "grow", 80, 4]
    by_wait.seen(busy=4)
    by_wait.seen(busy=3)
    by_wait.telling.flush()
    (line,) = read_decisions(by_wait.state.store, 1)
    assert [line[name] for name in fields] == [4, 3, "shrink", 0, 3]


def test_decisions_of_an_older_version_are_still_read(by_wait):
    store = by_wait.state.store
    written: list[dict[str, Any]] = [
        {"before": 4, "after": 1},
        {"before": 2, "after": 2},
        {"sentence": "images"},
        {"before": []},
    ]
    for older in written:
        store.log("decisions", [msgspec.json.encode({"pool": "images", **older})], limit=0, keep=10)
    found = [(line["current"], line["target"], line["action"]) for line in read_decisions(store, 4)]
    assert found == [(4, 1, "shrink"), (2, 2, "stay"), (None, None, None), (None, None, None)]
    assert [decision_document(dict(line))["action"] for line in read_decisions(store, 2)] == [None, None]


def test_a_pool_that_flaps_is_told_of_once_a_minute(by_wait):
    by_wait.settings = by_wait.settings._replace(least=0)
    by_wait.seen(busy=0)
    for _ in range(60):
        by_wait.seen(1, busy=0, starting=1)
        by_wait.seen(busy=0)
    lines = [event for event in by_wait.heard if level_of(event) >= logging.INFO]
    assert lines == [
        ScaledUp("images", 0, 1, lines[0].sentence),
        PoolFlaps("images", 0, 1, 59, 1),
    ]


def test_workers_that_were_idle_are_said_to_have_been(by_wait):
    by_wait.seen(busy=1, idle=3)
    by_wait.seen(busy=1)
    assert by_wait.last() == (4, 1, "images 4 -> 1: idle for 0.05 s")
    assert by_wait.heard == [ScaledDown("images", 4, 1, "images 4 -> 1: idle for 0.05 s")]


def test_workers_that_memory_sent_away_are_not_said_to_have_been_idle(by_wait):
    by_wait.seen(80, busy=8, cap=5, cap_reason="memory")
    by_wait.seen(80, busy=6, cap=5, cap_reason="memory")  # one has yet to end its job
    assert by_wait.last() == (8, 6, "images 8 -> 6: capped by memory")
    by_wait.seen(80, busy=5, cap=5, cap_reason="memory")
    assert by_wait.last() == (6, 5, "images 6 -> 5: capped by memory")


def test_who_was_sent_away_by_the_last_decision_is_told_by_its_reason(by_wait):
    by_wait.seen(80, busy=5, idle=3, cap=5, cap_reason="memory")
    by_wait.seen(busy=5)  # nothing waits any more, and there is room again
    assert by_wait.last() == (8, 5, "images 8 -> 5: capped by memory")
    by_wait.seen(busy=4)
    assert by_wait.last() == (5, 4, "images 5 -> 4: idle for 0.05 s")


def test_a_cap_that_went_before_anybody_had_left_is_no_reason_for_those_who_leave_later(by_wait):
    by_wait.seen(80, busy=8, cap=5, cap_reason="memory")
    by_wait.seen(busy=8)
    by_wait.seen(busy=7)
    assert by_wait.last() == (8, 7, "images 8 -> 7: idle for 0.05 s")


def test_who_has_to_leave_though_nothing_waits_is_not_said_to_have_been_idle(by_wait):
    by_wait.seen(busy=1, idle=7, cap=5, cap_reason="memory")
    by_wait.seen(busy=1, idle=4, cap=5, cap_reason="memory")
    assert by_wait.last() == (8, 5, "images 8 -> 5: more than there may be")


def test_growth_says_what_it_is_for(by_wait):
    by_wait.seen(busy=4)
    by_wait.seen(80, busy=4, oldest=2.0)
    assert by_wait.last() == (4, 10, "images 4 -> 10: oldest wait 2.0 s of 10 s; at its maximum")
    assert [type(event) for event in by_wait.heard] == [ScaledUp]


def test_a_fixed_number_that_memory_caps_says_so():
    pool = Pool(Fixed(7))
    pool.seen(busy=3, cap=3, cap_reason="memory")
    assert pool.last() == (3, 3, "images 3: capped by memory")
    pool = Pool(Fixed(70))
    pool.seen(busy=10, cap=30, cap_reason="memory")
    assert pool.last() == (10, 10, "images 10: at its maximum")


def test_in_shadow_the_recommendation_is_told_and_not_what_the_pool_does():
    pool = Pool(Fixed(2), shadow=True)
    decision = pool.seen(9, busy=1)
    assert pool.last() == (1, 2, "images 1, recommended 2: a fixed number")
    pool.seen(9, busy=8)
    assert pool.last() == (1, 2, "images 1, recommended 2: a fixed number")  # the same: nothing is new
    pool.policy = Fixed(3)
    pool.seen(9, busy=8)
    assert pool.last() == (8, 3, "images 8, recommended 3: a fixed number")
    assert pool.heard == []
    share = share_of(pool.settings, decision, 1, 2)
    assert (share.wanted, share.sentence) == (2, "images 1, recommended 2: a fixed number")

"""A simulated node with a budget: the rules that a node runs say who begins, and a policy is told the cap."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.rules.resources import fit
from millpond.rules.resources.fit import Budget, Need
from millpond.rules.scaling.policies import Fixed, ScaleForWait, sentence
from millpond.rules.scaling.records import Limits
from millpond.simulate import needs, scenarios
from millpond.simulate.figures import bound, report
from millpond.simulate.records import Faults, Run, Setting, Usage, Workload
from millpond.simulate.room import Room
from millpond.simulate.run_times import parse
from millpond.simulate.simulation import simulate

GB = 1_000_000_000


def jobs(*rows: tuple[float, float, str], **more: Any) -> Workload:
    rows = tuple(sorted(rows, key=lambda row: row[0]))
    return Workload(
        "jobs",
        array("d", (at for at, _, _ in rows)),
        array("d", (seconds for _, seconds, _ in rows)),
        [task for _, _, task in rows],
        **more,
    )


def node(budget: Budget | None, least: int = 0, most: int = 20, **more: Any) -> Setting:
    return Setting(Limits(least, most, start_cost=0.02), 10.0, budget=budget, **more)


class Listening:
    """A law that is listened to."""

    def __init__(self, law: Any) -> None:
        self.law = law
        self.seen: list[Any] = []
        self.decisions: list[Any] = []

    def decide(self, observation: Any, memory: Any, now: float) -> Any:
        decision, memory = self.law.decide(observation, memory, now)
        self.seen.append(observation)
        self.decisions.append(decision)
        return decision, memory


def usage(run: Run) -> Usage:
    assert run.usage is not None
    return run.usage


def most_at_once(run: Run, seconds: float) -> int:
    """How many of the jobs, all of this length and there from the beginning, ran at the same time."""
    begun = sorted(run.waits)
    return max(sum(at <= other < at + seconds - 1e-9 for other in begun) for at in begun)


# --- who begins ----------------------------------------------------------------------------------------
def test_of_ten_jobs_of_2_gb_never_more_than_four_run_on_8_gb():
    ten = jobs(*[(0.0, 5.0, "large")] * 10, needs={"large": Need(memory=2 * GB)})
    run = simulate(ten, Fixed(10), node(Budget(8 * GB), least=10))
    assert most_at_once(run, 5.0) == 4
    assert sorted(Counter(round(wait) for wait in run.waits).items()) == [(0, 4), (5, 4), (10, 2)]
    assert usage(run).peak == {"memory": 8 * GB}
    assert usage(run).binding == "memory"
    assert usage(run).waited == {"memory": pytest.approx(6 * 5.0 + 2 * 5.0)}


def test_tokens_and_cores_are_given_to_no_more_than_there_are():
    both = jobs(*[(0.0, 4.0, "job")] * 6, needs={"job": Need(cpu=1.0, tokens={"gpu": 1.0})})
    on_gpus = simulate(both, Fixed(6), node(Budget(GB, cpu=4.0, tokens={"gpu": 2.0}), least=6))
    assert most_at_once(on_gpus, 4.0) == 2
    on_cores = simulate(both, Fixed(6), node(Budget(GB, cpu=3.0, tokens={"gpu": 6.0}), least=6))
    assert most_at_once(on_cores, 4.0) == 3
    assert (usage(on_gpus).binding, usage(on_cores).binding) == ("gpu", "cpu")


def test_for_want_of_cores_alone_the_pool_does_not_stand_still():
    run = simulate(
        jobs(*[(0.0, 4.0, "job")] * 2, needs={"job": Need(cpu=8.0)}), Fixed(2), node(Budget(GB, cpu=4.0))
    )
    assert most_at_once(run, 4.0) == 1
    assert len(run.waits) == 2


def test_a_job_that_needs_all_of_it_begins_while_small_ones_keep_coming(monkeypatch):
    small = [(at * 0.8, 5.0, "small") for at in range(750)]  # for ten minutes there are always some
    need = {"small": Need(memory=GB), "big": Need(memory=8 * GB)}
    crowd = jobs(*small, (20.25, 5.0, "big"), needs=need)
    setting = node(Budget(8 * GB), least=10)
    assert max(simulate(crowd, Fixed(10), setting).waits) < 30.0
    monkeypatch.setattr(fit, "reservation", lambda *_: None)  # it is the node's own rule that makes room
    assert max(simulate(crowd, Fixed(10), setting).waits) > 500.0


def test_small_ones_that_are_done_in_time_pass_the_big_one():
    known = [(0.0, 20.0, "long"), *[(at, 1.0, "quick") for at in (21.0, 23.0, 25.0)]]  # how long they take
    late = [(30.0, 20.0, "long"), (40.0, 5.0, "big"), *[(41.0, 1.0, "quick")] * 3]
    need = {"long": Need(memory=4 * GB), "big": Need(memory=8 * GB), "quick": Need(memory=GB)}
    run = simulate(jobs(*known, *late, needs=need), Fixed(8), node(Budget(8 * GB), least=8))
    *others, big = sorted(run.waits)
    assert max(others) == pytest.approx(0.0)
    assert big == pytest.approx(10.0)  # until the long one has ended


def test_jobs_that_need_nothing_pass_those_that_wait_for_room():
    mixed = jobs(*[(0.0, 30.0, "large")] * 3, *[(1.0, 1.0, "mail")] * 5, needs={"large": Need(memory=8 * GB)})
    run = simulate(mixed, Fixed(6), node(Budget(8 * GB), least=6))
    assert sorted(round(wait) for wait in run.waits) == [0] * 6 + [30, 60]


def test_jobs_of_lost_workers_give_back_what_they_held_and_begin_anew():
    two = jobs(*[(0.0, 10.0, "large")] * 3, needs={"large": Need(memory=4 * GB)})
    setting = node(Budget(8 * GB), least=3, faults=Faults(losses=((5.0, 1.0),)))
    run = simulate(two, Fixed(3), setting)
    assert run.lost_seconds == pytest.approx(10.0)
    assert len(run.waits) == 5
    assert usage(run).peak == {"memory": 8 * GB}


NEEDS = {"a": Need(0.7, 3 * GB), "b": Need(0.1, GB, {"gpu": 1.0}), "c": Need(memory=8 * GB), "d": Need()}
some_jobs = st.lists(st.tuples(st.floats(0, 60), st.floats(0.001, 20), st.sampled_from("abcd")), min_size=1)


@settings(max_examples=40, deadline=None)
@given(some_jobs, st.integers(0, 3), st.floats(0.5, 20))
def test_whatever_comes_every_job_runs_and_no_more_is_given_than_there_is(rows, least, wait):
    setting = node(Budget(8 * GB, cpu=1.0, tokens={"gpu": 1.0}), least=least, most=6)
    run = simulate(jobs(*rows, needs=NEEDS), ScaleForWait(wait), setting)
    assert len(run.waits) == len(rows)
    assert usage(run).peak.get("memory", 0) <= 8 * GB
    assert usage(run).peak.get("gpu", 0.0) <= 1.0
    assert usage(run).peak.get("cpu", 0.0) <= 1.0 + 1e-9
    assert sum(usage(run).waited.values()) <= sum(run.waits) + 1e-6


@settings(max_examples=20, deadline=None)
@given(some_jobs)
def test_a_task_alone_in_line_is_answered_as_the_rule_would(rows):
    setting = node(Budget(8 * GB, cpu=1.0, tokens={"gpu": 1.0}), least=4, most=6)
    workload = jobs(*rows, needs=NEEDS)
    short = simulate(workload, ScaleForWait(2.0), setting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Room, "_alone", Room._asked)
        assert simulate(workload, ScaleForWait(2.0), setting) == short


# --- what a policy is told -----------------------------------------------------------------------------
def test_workers_are_wanted_for_no_more_jobs_than_there_is_room_for_and_the_decision_says_why():
    ten = jobs(*[(1.0, 5.0, "large")] * 10, needs={"large": Need(memory=2 * GB)})
    law = Listening(ScaleForWait(1.0))
    run = simulate(ten, law, node(Budget(8 * GB)))
    assert run.most_workers == 4
    assert max(seen.cap or 0 for seen in law.seen) == 4
    told = {sentence("images", decision) for decision in law.decisions}
    assert any("capped by memory" in line for line in told), told


def test_jobs_that_wait_for_room_attract_nobody_beside_a_task_that_needs_nothing():
    large = [(1.0, 50.0, "large")] * 30
    mixed = jobs(*large, *[(2.0 + at, 1.0, "mail") for at in range(40)], needs={"large": Need(memory=4 * GB)})
    law = Listening(ScaleForWait(1.0))
    run = simulate(mixed, law, node(Budget(8 * GB), most=30))
    assert all(seen.cap is None for seen in law.seen)
    assert run.most_workers <= 4  # two large ones have room, and mail comes once a second


def test_with_plenty_of_everything_nothing_changes():
    scenario = scenarios.find("S5")
    workload = scenario.workload(parse("exp:3s"))
    setting = scenario.setting(10.0, 0.02)
    without = simulate(workload, ScaleForWait(10.0), setting)
    needy = workload._replace(needs={"job": Need(1.0, GB, {"gpu": 1.0})})
    assert simulate(needy, ScaleForWait(10.0), setting) == without  # without a budget nobody asks
    rich = setting._replace(budget=Budget(1000 * GB, cpu=1000.0, tokens={"gpu": 1000.0}))
    found = simulate(needy, ScaleForWait(10.0), rich)
    assert found._replace(usage=None) == without
    assert usage(found).binding is None


# --- jobs that lie, and jobs that never fit ------------------------------------------------------------
def test_a_task_that_uses_more_than_it_says_is_learned():
    liars = jobs(*[(at * 6.0, 5.0, "liar") for at in range(2)], *[(20.0, 5.0, "liar")] * 8)
    liars = liars._replace(needs={"liar": Need(memory=GB)}, peaks={"liar": 3 * GB})
    run = simulate(liars, Fixed(8), node(Budget(8 * GB), least=8))
    assert sum(wait < 1.0 for wait in run.waits) == 4  # two alone, and two of 3.5 GB of the eight
    assert max(run.waits) == pytest.approx(15.0)


def test_what_can_never_fit_is_told_at_once():
    vast = jobs((0.0, 1.0, "vast"), needs={"vast": Need(memory=9 * GB)})
    with pytest.raises(OptionError, match=r"'vast' need 9 GB of memory and the budget has 8 GB"):
        simulate(vast, Fixed(1), node(Budget(8 * GB)))
    odd = jobs((0.0, 1.0, "odd"), needs={"odd": Need(tokens={"gpu": 1.0})})
    with pytest.raises(OptionError, match=r"need 1 'gpu' and the budget has 0"):
        simulate(odd, Fixed(1), node(Budget(8 * GB)))


# --- as people write it --------------------------------------------------------------------------------
def test_a_budget_and_needs_are_read():
    assert needs.budget("memory=8GB, cpu=4,gpu=2") == Budget(8 * GB, cpu=4.0, tokens={"gpu": 2.0})
    two = jobs((0.0, 1.0, "images"), (0.0, 1.0, "mail"))
    found = needs.rationed(two, ["cpu=0.5", "images:memory=2GB,cpu=1,gpu=1"], ["images:3GB"])
    assert found.needs == {"images": Need(1.0, 2 * GB, {"gpu": 1.0}), "mail": Need(cpu=0.5)}
    assert found.peaks == {"images": 3 * GB}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "such as images:memory=2GB"),
        ("images", "such as"),
        ("images:memory", "such as"),
        ("memory=1GB,memory=2GB", "such as"),
        ("images:memory=2G", "512MB"),
        ("images:cpu=0", "above zero"),
        ("images:cpu=x", "above zero"),
        ("images:cpu=inf", "above zero"),
        ("imgs:cpu=1", "did you mean 'images'"),
    ],
)
def test_a_need_that_is_none_is_refused_with_what_would_do(text, told):
    with pytest.raises(OptionError, match=told):
        needs.rationed(jobs((0.0, 1.0, "images")), [text], [])


def test_a_workload_that_tells_no_tasks_apart_needs_the_same_for_all():
    plain = Workload("day", array("d", [0.0]), array("d", [1.0]))
    assert needs.rationed(plain, ["memory=1GB"], []).needs == {"job": Need(memory=GB)}
    with pytest.raises(OptionError, match="does not tell tasks apart"):
        needs.rationed(plain, ["images:memory=1GB"], [])


def test_a_report_tells_what_was_used_and_waited_for():
    ten = jobs(*[(0.0, 5.0, "large")] * 10, needs={"large": Need(memory=2 * GB)})
    setting = node(needs.budget("memory=8GB"), least=4)
    run = simulate(ten, Fixed(4), setting)
    found = report("fixed:4", run, setting, bound(ten, 0.02)).document()["resources"]
    assert found == {
        "budget": {"memory": 8 * GB},
        "peak": {"memory": 8 * GB},
        "waited": {"memory": 40.0},
        "binding": "memory",
    }
    plain = setting._replace(budget=None)
    assert "resources" not in report("x", simulate(ten, Fixed(4), plain), plain, bound(ten, 0.02)).document()

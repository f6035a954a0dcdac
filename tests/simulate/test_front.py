"""Comparing laws at the same wait: the front, the setting that is looked for, and the benchmark's verdict."""

from __future__ import annotations

from array import array
from math import isclose, log

import pytest

from bench.scale.points import bare
from bench.scale.verdicts import Saved, saved, worst
from millpond.rules.scaling.records import Limits
from millpond.simulate.compare import (
    MOST_TRIED,
    OURS,
    Best,
    best,
    cheapest,
    compared,
    family,
    first,
    following,
    hours_at,
    measured,
    other,
)
from millpond.simulate.figures import Bound, bound
from millpond.simulate.other_autoscalers import KNOBS
from millpond.simulate.records import Setting, Workload

SETTING = Setting(Limits(1, 10))


def point(policy, p95, hours):
    """A report of which only these matter."""
    nothing = measured(other("keda", 5.0), Workload("none", array("d"), array("d")), SETTING, Bound(0.0, 0.0))
    return nothing._replace(policy=policy, p95_wait=p95, worker_hours=hours)


# --- the front -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("points", "wait", "hours"),
    [
        ([], 5, None),
        ([(6, 100)], 5, None),  # nobody keeps it
        ([(5, 100)], 5, 100),  # just kept
        ([(1, 120), (4, 110)], 5, 110),  # all keep it: the cheapest
        ([(4, 110), (1, 105)], 5, 105),  # that need not be the one that waits longest
        ([(2, 120), (6, 100)], 5, 105),  # three quarters of the way
        ([(6, 100), (9, 50), (2, 120)], 5, 105),  # in any order, to the nearest beyond
        ([(2, 100), (6, 120)], 5, 100),  # a dearer one beyond makes nothing dearer
        ([(2, 130), (2, 120), (6, 100)], 5, 105),  # of two alike, from the cheaper
        ([(2, 120), (6, 110), (6, 100)], 5, 105),  # and to the cheaper
    ],
)
def test_the_front_at_a_wait_is_the_cheapest_point_or_the_line_to_the_next(points, wait, hours):
    assert hours_at(points, wait) == (None if hours is None else pytest.approx(hours))


def test_the_cheapest_setting_is_one_that_keeps_the_wait():
    points = [point("keda 1", 1.0, 9.0), point("keda 2", 4.0, 7.0), point("keda 3", 6.0, 5.0)]
    assert cheapest(points, 5.0) is points[1]
    assert cheapest(points, 0.5) is None


# --- finding the setting -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "kept", "setting"),
    [
        ("keda", {1: True, 2: True, 4: True}, 16),  # all keep it: further
        ("keda", {1: False, 2: False}, 0.25),  # none does: the other way
        ("keda", {2: True, 8: False}, 4),  # between two: in the middle
        ("keda", {1: False, 2: True, 8: False, 3: True}, 4.9),  # beyond the loosest that keeps it
        ("keda", {2: True, 2.05: False}, None),  # near enough
        ("keda", {9000: True}, 10_000),  # not beyond the end,
        ("keda", {10_000: True}, None),  # where it ends
        ("keda", {0.1: False}, None),
        ("keda", dict.fromkeys(range(1, MOST_TRIED + 1), True), None),  # enough
        ("celery", {1: True}, None),  # its looser end is the lower one
        ("celery", {1: False}, 4),
        ("celery", {1: False, 4: True}, 2),
        ("celery", {4: False, 16: False}, 30),
        ("celery", {30: False}, None),
        ("hpa", {0.9: True}, None),
    ],
)
def test_the_next_setting_is_tried_where_the_wait_is_just_kept(name, kept, setting):
    assert following(KNOBS[name], kept) == (None if setting is None else pytest.approx(setting))


def test_the_first_settings_grow_with_the_wait_and_with_the_jobs_it_has_room_for():
    assert first(KNOBS["latency"], 60.0, 3.0) == [15.0, 30.0, 60.0]
    assert first(KNOBS["keda"], 9.0, 3.0) == [1.0, 2.0, 4.0]
    assert first(KNOBS["keda"], 9.0, 0.0)[-1] == 9000.0  # jobs that take no time
    assert first(KNOBS["latency"], 1e6, 3.0) == [3600.0]  # its end, once
    assert first(KNOBS["celery"], 60.0, 3.0) == [1]


@pytest.mark.parametrize("threshold", [0.02, 0.7, 3.0, 40.0, 900.0])
def test_the_search_closes_in_on_the_setting_that_just_keeps_the_wait(threshold):
    for name in ("keda", "latency", "knative"):
        knob = KNOBS[name]
        tried: dict[float, bool] = {}
        todo = first(knob, 10.0, 3.0)
        while todo:
            tried |= {setting: setting <= threshold for setting in todo}
            found = following(knob, tried)
            todo = [] if found is None else [found]
        assert len(tried) <= MOST_TRIED
        kept = [setting for setting, keeps in tried.items() if keeps]
        if threshold >= knob.strict:
            assert max(kept) <= threshold
            assert min(set(tried) - set(kept), default=knob.loose) / max(kept) < 4.0
        else:
            assert not kept
            assert min(tried) == knob.strict


def test_every_law_is_compared_at_its_best_for_the_wait_that_is_asked():
    """A law whose p95 is a fixed part of its knob, and which is the cheaper the longer it lets wait."""
    ran: list[str] = []

    def run(chosen):
        ran.extend(candidate.name for candidate in chosen)
        return [
            point(
                one.name, one.knob * (1.0 if one.family in ("latency", OURS) else 8.0), 100 / (1 + one.knob)
            )
            for one in chosen
        ]

    ours, rest = compared(run, 60.0, 3.0)[:3], compared(run, 60.0, 3.0)[3:]
    assert [found.report.policy for found in ours] == ["wait 30", "wait 60", "wait 120"]
    assert [found.hours is None for found in ours] == [False, False, True]
    by_law = {family(found.report.policy): found for found in rest}
    assert isclose(by_law["latency"].report.p95_wait, 60.0)
    assert 7.0 < by_law["keda"].report.p95_wait / 8.0 <= 7.5
    assert by_law["keda"].hours == pytest.approx(100 / 8.5, rel=0.001)
    assert {name: found.is_edge for name, found in by_law.items()} == {
        "keda": False,
        "hpa": True,
        "celery": True,
        "latency": False,
        "knative": False,
    }
    assert all(sum(family(name) == law for name in ran) <= 2 * MOST_TRIED for law in KNOBS)


def test_a_law_that_cannot_keep_the_wait_is_shown_where_it_comes_nearest():
    tried = {1.0: point("latency 1", 8.0, 5.0), 2.0: point("latency 2", 9.0, 4.0)}
    assert best(KNOBS["latency"], tried, 5.0) == Best(tried[1.0], None)
    document = best(KNOBS["latency"], tried, 8.5).document()
    assert (document["policy"], document["hours_at_wait"], document["is_edge"]) == ("latency 1", 4.5, False)


def test_no_setting_of_a_real_law_that_was_left_out_is_much_cheaper():
    arrivals = array("d", (0.7 * n + (n % 5) * 0.3 for n in range(1500)))
    services = array("d", (-3.0 * log((n * 7919 % 1000 + 1) / 1001) for n in range(1500)))
    workload = Workload("steady", array("d", sorted(arrivals)), services)
    setting = Setting(Limits(1, 64), max_wait=60.0)
    limit = bound(workload, 0.02)

    def run(chosen):
        return [measured(candidate, workload, setting, limit) for candidate in chosen]

    found = {family(row.report.policy): row for row in compared(run, 60.0, 3.0)[3:]}
    for name, knobs in {"keda": (5, 10, 15, 20, 25), "latency": (5, 15, 30, 45)}.items():
        left_out = run([other(name, knob) for knob in knobs])
        cheaper, hours = cheapest(left_out, 60.0), found[name].hours
        assert cheaper is not None
        assert hours is not None
        assert found[name].report.p95_wait <= 60.0
        assert hours <= 1.02 * cheaper.worker_hours


# --- the benchmark's verdict ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        (90.0, {"keda": 120.0, "celery": 100.0}, "yes"),  # ten per cent fewer than the best
        (91.0, {"keda": 120.0, "celery": 100.0}, "**no**"),  # a law could have saved 20 %
        (81.0, {"celery": 85.0}, "no law can"),  # the work alone is 80
        (None, {"celery": 100.0}, "**no**"),  # not kept,
        (None, {"celery": 81.0}, "**no**"),  # even where no law could have saved enough
        (None, {}, "**no**"),
        (200.0, {}, "yes"),  # nobody else keeps it at all
        (80.0, {"celery": 80.0}, "no law can"),  # nothing is left to be saved
    ],
)
def test_the_verdict_on_what_was_saved(mine, theirs, verdict):
    assert Saved(80.0, mine, theirs).verdict(10.0) == verdict


def test_what_is_saved_is_told_from_the_fronts_at_the_same_wait():
    others = {"keda": [(2.0, 120.0), (6.0, 100.0)], "latency": [(9.0, 50.0)]}
    found = saved(80.0, [(1.0, 99.0), (5.0, 84.0)], others, 5.0)
    assert found == Saved(80.0, 84.0, {"keda": 105.0})
    assert found.fewer == pytest.approx(20.0)
    assert found.possible == pytest.approx(100 * 25 / 105)


def test_of_several_days_the_worst_verdict_counts():
    assert worst(["yes", "no law can"]) == "no law can"
    assert worst(["no law can", "**no**", "yes"]) == "**no**"
    assert worst(["yes"]) == "yes"


def test_points_are_kept_until_their_code_says_something_else():
    code = 'def f(x):\n    """Doubled."""\n    return 2 * x\n'
    assert bare(code) == bare("def f(x):  # twice\n\n    return 2*x")
    assert bare(code) != bare(code.replace("2", "3"))

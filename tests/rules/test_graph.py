"""Dependencies of recurring tasks: four modes, what to do while one does not hold, and circles refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.job import MICROSECONDS
from millpond.rules.recurring.dependencies import Asker, Dependency, Other, check, find_circle, judge

calm = settings(deadline=None)
S = MICROSECONDS
NOW = 10_000 * S
MODES = ["not_running", "success_since", "same_tick", "fresh"]
ASKER = Asker("report", NOW - S, started_at=NOW - 100 * S, wait_until=NOW + 60 * S)
AT_THE_END = ASKER._replace(wait_until=NOW)

IDLE = Other()
RUNNING = Other(running=1, succeeded_at=NOW - 5 * S)
SUCCEEDED = Other(succeeded_at=NOW - 5 * S, tick="succeeded")
STALE = Other(succeeded_at=NOW - 5000 * S, tick="pending")


def decide(mode, other, on_missing="wait", asker=ASKER, fresh_for=60.0):
    return judge(asker, [(Dependency("fetch", mode, fresh_for, on_missing), other)], NOW)


# --- when a dependency holds ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mode", "other", "decision"),
    [
        ("not_running", IDLE, "run"),
        ("not_running", STALE, "run"),
        ("not_running", RUNNING, "wait"),
        ("success_since", SUCCEEDED, "run"),
        ("success_since", IDLE, "wait"),
        ("success_since", STALE, "wait"),
        ("success_since", RUNNING, "wait"),  # never while it runs, however fresh its last success
        ("same_tick", SUCCEEDED, "run"),
        ("same_tick", STALE, "wait"),
        ("same_tick", Other(tick="absent"), "wait"),
        ("fresh", SUCCEEDED, "run"),
        ("fresh", STALE, "wait"),
        ("fresh", IDLE, "wait"),
        ("fresh", RUNNING, "run"),
    ],
)
def test_when_each_mode_lets_a_tick_run(mode, other, decision):
    assert decide(mode, other).decision == decision


def test_a_task_that_never_began_takes_any_success():
    assert decide("success_since", STALE, asker=ASKER._replace(started_at=None)).decision == "run"


def test_one_success_is_good_for_one_tick():
    succeeded_at = NOW - 50 * S
    began = ASKER._replace(started_at=NOW - 40 * S)
    assert decide("success_since", Other(succeeded_at=succeeded_at)).decision == "run"
    assert decide("success_since", Other(succeeded_at=succeeded_at), asker=began).decision == "wait"


def test_freshness_ends_when_its_time_is_over():
    assert decide("fresh", Other(succeeded_at=NOW - 60 * S)).decision == "run"
    assert decide("fresh", Other(succeeded_at=NOW - 60 * S - 1)).decision == "wait"


# --- when it does not -----------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_what_to_do_while_it_does_not_hold_is_the_users_choice(mode):
    missing = Other(running=1)
    assert decide(mode, missing, "wait").decision == "wait"
    assert decide(mode, missing, "skip").decision == "skip"
    assert decide(mode, missing, "run").decision == "run"


@pytest.mark.parametrize("mode", MODES)
def test_a_wait_ends_at_its_deadline_with_a_skip(mode):
    verdict = decide(mode, Other(running=1), asker=AT_THE_END)
    assert verdict.decision == "skip"
    assert verdict.reason.startswith("it waited as long as it may, but 'fetch'")


@pytest.mark.parametrize("mode", ["success_since", "same_tick", "fresh"])
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ({"disabled": True}, "'fetch' is disabled, and "),
        ({"broken": True}, "the breaker of 'fetch' is open, and "),
        ({"retired": True}, "'fetch' is no longer in the code, and "),
    ],
)
def test_waiting_for_a_task_that_will_not_run_is_a_skip_that_says_so(mode, trouble, reason):
    verdict = decide(mode, Other(**trouble))
    assert (verdict.decision, verdict.on) == ("skip", "fetch")
    assert verdict.reason.startswith(reason)
    assert decide(mode, Other(**trouble), "run").decision == "run"


@pytest.mark.parametrize("trouble", [Other(disabled=True), Other(broken=True), Other(retired=True)])
def test_a_task_that_will_not_run_is_not_running(trouble):
    assert decide("not_running", trouble).decision == "run"
    assert decide("not_running", trouble._replace(running=1)).decision == "wait"


@pytest.mark.parametrize("mode", ["success_since", "same_tick", "fresh"])
def test_a_success_counts_although_the_task_was_disabled_since(mode):
    assert decide(mode, SUCCEEDED._replace(disabled=True)).decision == "run"


@pytest.mark.parametrize(("fate", "words"), [("failed", "has failed"), ("skipped", "was skipped")])
def test_the_same_tick_that_failed_is_not_waited_for(fate, words):
    verdict = decide("same_tick", Other(tick=fate))
    assert verdict.decision == "skip"
    assert f"that tick of 'fetch' {words}" in verdict.reason


# --- several --------------------------------------------------------------------------------------------
def test_all_dependencies_must_hold():
    fetch, clean = Dependency("fetch"), Dependency("clean", "not_running")
    assert judge(ASKER, [(fetch, SUCCEEDED), (clean, IDLE)], NOW).decision == "run"
    waiting = judge(ASKER, [(fetch, SUCCEEDED), (clean, RUNNING)], NOW)
    assert (waiting.decision, waiting.on) == ("wait", "clean")
    assert judge(ASKER, [], NOW).decision == "run"


def test_a_skip_is_not_put_off_by_a_wait():
    both = [(Dependency("fetch"), STALE), (Dependency("clean"), Other(disabled=True))]
    verdict = judge(ASKER, both, NOW)
    assert (verdict.decision, verdict.on) == ("skip", "clean")


others = st.builds(
    Other,
    st.integers(0, 2),
    st.one_of(st.none(), st.integers(0, NOW)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["succeeded", "pending", "failed", "skipped", "absent"]),
)
dependencies = st.builds(
    Dependency,
    st.sampled_from("abc"),
    st.sampled_from(MODES),
    st.floats(0, 1e6),
    st.sampled_from(["wait", "skip"]),
)


@calm
@given(many=st.lists(st.tuples(dependencies, others), max_size=5))
def test_nothing_waits_for_ever_and_nothing_stops_without_a_reason(many):
    assert judge(AT_THE_END, many, NOW).decision in {"run", "skip"}
    verdict = judge(ASKER, many, NOW)
    assert verdict.decision == "run" or (verdict.reason and verdict.on)


# --- registration ---------------------------------------------------------------------------------------
def on(*names):
    return [Dependency(name) for name in names]


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(OptionError, match=r"'report' depends on 'fetsh', .* did you mean 'fetch'"):
        check({"report": on("fetsh")}, {"fetch", "report"})


def test_a_circle_is_refused_with_its_path():
    graph = {"a": on("b"), "b": on("c", "d"), "c": on("a"), "d": []}
    with pytest.raises(OptionError, match="go in a circle") as refused:
        check(graph, set("abcd"))
    assert any(
        path in str(refused.value) for path in ("'a' -> 'b' -> 'c'", "'b' -> 'c' -> 'a'", "'c' -> 'a' -> 'b'")
    )


def test_a_task_that_depends_on_itself_is_a_circle():
    with pytest.raises(OptionError, match="circle: 'a' -> 'a'"):
        check({"a": on("a")}, {"a"})


def test_the_same_tick_needs_a_cadence_on_both_sides():
    graph = {"report": [Dependency("upload", "same_tick")]}
    for timeless in ({"upload"}, {"report"}):
        with pytest.raises(OptionError, match="only tasks with every= or cron= share instants"):
            check(graph, {"report", "upload"}, timeless)
    check(graph, {"report", "upload"})


def test_a_continuous_task_cannot_be_waited_for():
    with pytest.raises(OptionError, match="'feed', which is continuous"):
        check({"report": on("feed")}, {"report", "feed"}, {"feed"}, {"feed"})


def test_a_diamond_is_no_circle():
    check({"a": on("b", "c"), "b": on("d"), "c": on("d"), "d": []}, set("abcd"))


def test_a_long_chain_is_no_trouble():
    chain = {str(number): [str(number + 1)] for number in range(50_000)}
    assert find_circle(chain) == []
    circle = find_circle({**chain, "50000": ["49990"]})
    assert set(circle) == {str(number) for number in range(49_990, 50_001)}


@calm
@given(edges=st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3)))
def test_a_circle_is_found_exactly_when_there_is_one(edges):
    circle = find_circle(edges)
    reached = {name: set(edges.get(name, ())) for name in "abcdef"}
    for via, start in itertools.product("abcdef", repeat=2):
        if via in reached[start]:
            reached[start] |= reached[via]
    assert bool(circle) == any(name in reached[name] for name in "abcdef")
    assert all(later in edges[earlier] for earlier, later in itertools.pairwise(circle))

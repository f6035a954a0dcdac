"""Tasks that exclude one another: slots for safety, ageing and keeping one's place for fairness."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.job import MICROSECONDS, Slot
from millpond.rules.recurring.exclusion import (
    AGEING,
    ALL_TICKS,
    HIGHEST,
    Held,
    Waiting,
    capacities_of,
    level,
    listed,
    pairs_of,
    release,
    slots_of,
)

calm = settings(deadline=None)
S = MICROSECONDS
KNOWN = {"compact", "fetch", "process", "mail"}
PAIRS = pairs_of({"compact": ["fetch", "process"]}, KNOWN)
TWO = dict.fromkeys(("a", "b", "c"), (Slot("dock", 2),))
NOW = 10_000 * S


def waiting(name, priority=1, waited=0):
    return Waiting(name, priority, NOW - round(waited * S))


def names(ticks):
    return [tick.name for tick in ticks]


# --- who excludes whom ----------------------------------------------------------------------------------
def test_blocking_is_mutual_whoever_said_it():
    assert pairs_of({"a": ["b"]}, {"a", "b"}) == pairs_of({"b": ["a"]}, {"a", "b"})
    assert pairs_of({"a": ["b"], "b": ["a"]}, {"a", "b"}) == {("a", "b")}


def test_an_unknown_name_and_oneself_are_refused():
    with pytest.raises(OptionError, match=r"'compact' blocks 'fetsh', .*did you mean 'fetch'"):
        pairs_of({"compact": ["fetsh"]}, KNOWN)
    with pytest.raises(OptionError, match="'fetch' blocks itself: overlap="):
        pairs_of({"fetch": ["fetch"]}, KNOWN)


def test_two_tasks_that_exclude_one_another_share_a_slot_and_others_do_not():
    slots = {name: set(slots_of(name, PAIRS)) for name in KNOWN}
    assert slots["compact"] & slots["fetch"] == {Slot("blocks:compact|fetch", 1)}
    assert slots["compact"] & slots["process"] == {Slot("blocks:compact|process", 1)}
    assert not slots["fetch"] & slots["process"]
    assert slots["mail"] == {Slot("recurring:mail", 1)}


@pytest.mark.parametrize(
    ("overlap", "most", "slots"),
    [
        ("skip", None, (Slot("recurring:mail", 1),)),
        ("queue", 5, (Slot("recurring:mail", 1),)),
        ("allow", 3, (Slot("recurring:mail", 3),)),
        ("allow", None, ()),
    ],
)
def test_ticks_of_one_task_are_kept_apart_by_a_slot_of_its_own(overlap, most, slots):
    assert slots_of("mail", PAIRS, overlap, most) == slots


def test_a_named_slot_is_held_with_its_capacity():
    assert slots_of("mail", PAIRS, "allow", None, [Slot("smtp", 3)]) == (Slot("slot:smtp", 3),)
    assert slots_of("mail", PAIRS, shared=[Slot("smtp", 3)]) == (
        Slot("recurring:mail", 1),
        Slot("slot:smtp", 3),
    )


def test_a_slot_has_one_capacity_and_both_who_disagree_are_named():
    assert capacities_of({"a": (Slot("x", 2),), "b": (Slot("x", 2), Slot("y"))}) == {"x": 2, "y": 1}
    with pytest.raises(OptionError, match=r"slot 'x' has a capacity of 2 in 'a' and of 3 in 'b'"):
        capacities_of({"a": (Slot("x", 2),), "b": (Slot("x", 3),)})


# --- whose turn it is -----------------------------------------------------------------------------------
def test_ticks_that_do_not_conflict_go_together():
    released = release([waiting("fetch"), waiting("process"), waiting("mail")], [], PAIRS, NOW)
    assert set(names(released.start)) == {"fetch", "process", "mail"}


def test_of_two_that_conflict_the_higher_priority_goes_first():
    released = release([waiting("compact"), waiting("fetch", priority=2)], [], PAIRS, NOW)
    assert names(released.start) == ["fetch"]
    assert released.held == (Held(waiting("compact"), ("fetch",)),)


def test_of_two_alike_the_one_that_waited_longer_goes_first():
    assert names(release([waiting("fetch"), waiting("compact", waited=1)], [], PAIRS, NOW).start) == [
        "compact"
    ]


def test_a_tick_waits_for_what_runs():
    released = release([waiting("compact")], ["process"], PAIRS, NOW)
    assert released.start == ()
    assert released.held[0].behind == ("process",)
    assert released.held[0].reason == "'process' must not run beside it"


def test_who_is_passed_over_keeps_its_place():
    """Compact needs both free. While process runs it cannot start, but fetch may not slip in before it."""
    released = release([waiting("compact", waited=2), waiting("fetch")], ["process"], PAIRS, NOW)
    assert released.start == ()
    assert [(held.tick.name, held.behind) for held in released.held] == [
        ("compact", ("process",)),
        ("fetch", ("compact",)),
    ]


def test_every_minute_of_waiting_is_worth_a_level_of_priority():
    assert level(waiting("a", priority=1, waited=AGEING - 1), NOW) == 1
    assert level(waiting("a", priority=1, waited=AGEING), NOW) == 2
    assert level(waiting("a", priority=1, waited=-5), NOW) == 1, "a clock that went back takes nothing away"
    aged = waiting("compact", priority=0, waited=HIGHEST * AGEING)
    assert names(release([waiting("fetch", priority=HIGHEST), aged], [], PAIRS, NOW).start) == ["compact"]


def test_as_many_go_as_a_named_slot_has_room_for():
    released = release([waiting("a"), waiting("b"), waiting("c")], {}, frozenset(), NOW, TWO)
    assert names(released.start) == ["a", "b"]
    assert released.held == (Held(waiting("c"), ("a", "b"), Slot("dock", 2)),)
    assert released.held[0].reason == "slot 'dock' has no room, 2 of 2 held by 'a', 'b'"


def test_every_tick_that_was_let_go_takes_a_place_in_its_slot():
    released = release([waiting("a"), waiting("b")], {"a": 1, "c": 1, "mail": 7}, frozenset(), NOW, TWO)
    assert released.start == ()
    assert [held.behind for held in released.held] == [("a", "c"), ("a", "c")]


def test_a_tick_that_must_wait_for_another_reason_keeps_its_place_in_the_slot():
    """`a` waits for `fetch`; the place it will need is not given to `b`, which came later."""
    pairs = pairs_of({"a": ["fetch"]}, {"a", "fetch"})
    ticks = [waiting("a", waited=2), waiting("b", waited=1), waiting("c")]
    released = release(ticks, {"fetch": 1}, pairs, NOW, TWO)
    assert names(released.start) == ["b"]
    assert [(held.tick.name, held.slot) for held in released.held] == [("a", None), ("c", Slot("dock", 2))]


def test_many_names_are_cut_short():
    assert listed(["a", "b", "a"]) == "'a', 'b'"
    assert listed("abcdef") == "'a', 'b', 'c' and 3 more"


task_names = st.sampled_from(sorted(KNOWN))
ticks_of = st.builds(waiting, task_names, st.integers(0, 9), st.integers(0, 1000))


@calm
@given(ticks=st.lists(ticks_of, max_size=12), occupied=st.sets(task_names))
def test_no_two_that_conflict_are_let_go_together_and_nobody_is_forgotten(ticks, occupied):
    released = release(ticks, occupied, PAIRS, NOW)
    away = [*names(released.start), *occupied]
    for one, other in PAIRS:
        assert not (one in names(released.start) and other in away)
        assert not (other in names(released.start) and one in away)
    assert sorted([*released.start, *(held.tick for held in released.held)]) == sorted(ticks)
    assert ticks == [] or occupied or released.start, "with nothing in the way, somebody goes"


@calm
@given(runs=st.lists(st.integers(1, 50), min_size=10, max_size=10), priority=st.integers(0, 9))
def test_nobody_starves_beyond_the_stated_bound(runs, priority):
    """Two tasks of the highest priority come again as soon as they end; the third must get through."""
    bound = (HIGHEST - priority) * AGEING + 50 + 1  # ageing, then the longest run that was let go before
    running: dict[str, int] = {}
    lengths = iter(runs * 200)
    for second in range(int(bound) + 2):
        now = NOW + second * S
        running = {name: until for name, until in running.items() if until > second}
        busy = [Waiting(name, HIGHEST, now) for name in ("fetch", "process") if name not in running]
        released = release([Waiting("compact", priority, NOW), *busy], running, PAIRS, now)
        if "compact" in names(released.start):
            assert second <= bound
            return
        running |= {tick.name: second + next(lengths) for tick in released.start}
    pytest.fail(f"it waited longer than {bound} s")


@calm
@given(runs=st.lists(st.integers(1, 50), min_size=10, max_size=10), priority=st.integers(0, 9))
def test_nobody_starves_at_a_named_slot_beyond_the_same_bound(runs, priority):
    """Three of the highest priority want the two places again as soon as they end."""
    shared = {**TWO, "late": (Slot("dock", 2),)}
    bound = (HIGHEST - priority) * AGEING + 50 + 1
    running: dict[str, int] = {}
    lengths = iter(runs * 400)
    for second in range(int(bound) + 2):
        now = NOW + second * S
        running = {name: until for name, until in running.items() if until > second}
        busy = [Waiting(name, HIGHEST, now) for name in TWO if name not in running]
        occupied = dict.fromkeys(running, 1)
        released = release([Waiting("late", priority, NOW), *busy], occupied, frozenset(), now, shared)
        assert len(running) + len(released.start) <= 2
        if "late" in names(released.start):
            return
        running |= {tick.name: second + next(lengths) for tick in released.start}
    pytest.fail(f"it waited longer than {bound} s")


@calm
@given(runs=st.lists(st.integers(1, 50), min_size=10, max_size=10), priority=st.integers(0, 9))
def test_nobody_starves_below_max_concurrent_beyond_the_same_bound(runs, priority):
    """Three of the highest priority fill the two places; whoever runs is said, and not who was let go."""
    places = Slot(ALL_TICKS, 2)
    shared = dict.fromkeys(("a", "b", "c", "late"), (places,))
    bound = (HIGHEST - priority) * AGEING + 50 + 1
    running: dict[str, int] = {}
    lengths = iter(runs * 400)
    for second in range(int(bound) + 2):
        now = NOW + second * S
        running = {name: until for name, until in running.items() if until > second}
        busy = [Waiting(name, HIGHEST, now) for name in "abc" if name not in running]
        held = {ALL_TICKS: list(running)}
        asking = [Waiting("late", priority, NOW), *busy]
        released = release(asking, {}, frozenset(), now, shared, holders=held)
        assert len(running) + len(released.start) <= 2
        if "late" in names(released.start):
            return
        running |= {tick.name: second + next(lengths) for tick in released.start}
    pytest.fail(f"it waited longer than {bound} s")


def test_a_full_max_concurrent_names_those_that_run():
    places = Slot(ALL_TICKS, 1)
    shared = {"a": (places,), "late": (places,)}
    released = release([waiting("late")], {}, frozenset(), NOW, shared, holders={ALL_TICKS: ["a"]})
    assert [held.reason for held in released.held] == ["max_concurrent is 1, and 'a' runs"]
    released = release([waiting("late")], {"a": 5}, frozenset(), NOW, shared, holders={ALL_TICKS: []})
    assert names(released.start) == ["late"], "what was let go and does not run has no place"

"""Triggers: a burst makes one tick that gets every payload, and a stream cannot put it off for ever."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.job import MICROSECONDS
from millpond.rules.recurring.triggers import Pending, TriggerRule, coalesce, due_at

calm = settings(deadline=None)
S = MICROSECONDS
RULE = TriggerRule(debounce=2.0)


def batches(payloads, rule=RULE):
    """What becomes of these, each with its time."""
    found: list[Pending] = []
    for time, payload in payloads:
        found[-1:] = coalesce(found[-1] if found else None, "user-1", payload, rule, time)
    return found


def gather(times, rule=RULE):
    (pending,) = batches([(time, str(number).encode()) for number, time in enumerate(times)], rule)
    return pending


def test_without_a_debounce_a_trigger_is_due_at_once():
    assert due_at(gather([5 * S], TriggerRule()), TriggerRule()) == 5 * S


def test_a_burst_is_one_tick_after_a_quiet_time_with_every_payload():
    pending = gather([0, S, 2 * S])
    assert due_at(pending, RULE) == 4 * S
    assert [bytes(payload) for payload in pending.payloads] == [b"0", b"1", b"2"]


def test_a_steady_stream_does_not_put_the_tick_off_for_ever():
    assert due_at(gather(range(0, 100 * S, S)), RULE) == 20 * S
    short = TriggerRule(debounce=2.0, longest=3.0)
    assert due_at(gather(range(0, 100 * S, S), short), short) == 3 * S


def test_a_trigger_without_a_payload_only_says_that_something_happened():
    (pending,) = coalesce(gather([0]), "user-1", None, RULE, S)
    assert len(pending.payloads) == 1
    assert (pending.last_at, pending.triggers) == (S, 2)


def test_payloads_beyond_the_limit_are_another_tick_and_none_is_lost():
    rule = TriggerRule(debounce=2.0, most_payloads=3)
    found = batches([(number * S, str(number).encode()) for number in range(8)], rule)
    assert [[bytes(payload) for payload in one.payloads] for one in found] == [
        [b"0", b"1", b"2"],
        [b"3", b"4", b"5"],
        [b"6", b"7"],
    ]
    assert [one.triggers for one in found] == [3, 3, 2]
    assert [due_at(one, rule) // S for one in found] == [2, 5, 9], "a full one has nothing to wait for"


def test_payloads_are_bounded_in_bytes_so_that_one_job_can_carry_them():
    found = batches([(0, b"1" * 300_000)] * 50)
    assert [len(one.payloads) for one in found] == [2] * 25
    (*_, large) = coalesce(found[-1], "user-1", b"2" * 1_040_000, RULE, 0)
    assert [bytes(payload)[:1] for payload in large.payloads] == [b"2"], "one always has room"


@calm
@given(times=st.lists(st.integers(0, 100 * S), min_size=1, max_size=30))
def test_what_is_gathered_survives_json_and_is_due_between_its_bounds(times):
    pending = gather(times)
    again = msgspec.json.decode(msgspec.json.encode(pending), type=Pending)
    assert [bytes(payload) for payload in again.payloads] == [bytes(payload) for payload in pending.payloads]
    assert due_at(again, RULE) == due_at(pending, RULE)
    assert times[0] < due_at(pending, RULE) <= times[0] + 20 * S

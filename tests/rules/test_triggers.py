"""Triggers: a burst makes one tick that gets every payload, and a stream cannot put it off for ever."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.job import MICROSECONDS
from millpond.rules.triggers import Pending, TriggerRule, coalesce, due_at

calm = settings(deadline=None)
S = MICROSECONDS
RULE = TriggerRule(debounce=2.0)


def gather(times, rule=RULE):
    pending = None
    for number, time in enumerate(times):
        pending = coalesce(pending, "user-1", str(number).encode(), rule, time)
    assert pending is not None
    return pending


def test_without_a_debounce_a_trigger_is_due_at_once():
    assert due_at(gather([5 * S], TriggerRule()), TriggerRule()) == 5 * S


def test_a_burst_is_one_tick_after_a_quiet_time_with_every_payload():
    pending = gather([0, S, 2 * S])
    assert due_at(pending, RULE) == 4 * S
    assert [bytes(payload) for payload in pending.payloads] == [b"0", b"1", b"2"]


def test_a_steady_stream_does_not_put_the_tick_off_for_ever():
    assert due_at(gather(range(0, 1000 * S, S)), RULE) == 20 * S
    short = TriggerRule(debounce=2.0, longest=3.0)
    assert due_at(gather(range(0, 1000 * S, S), short), short) == 3 * S


def test_a_trigger_without_a_payload_only_says_that_something_happened():
    pending = coalesce(gather([0]), "user-1", None, RULE, S)
    assert len(pending.payloads) == 1
    assert pending.last_at == S


def test_payloads_beyond_the_limit_are_counted_and_the_newest_kept():
    rule = TriggerRule(most_payloads=3)
    pending = gather(range(10), rule)
    assert [bytes(payload) for payload in pending.payloads] == [b"7", b"8", b"9"]
    assert pending.dropped == 7


def test_payloads_are_bounded_in_bytes_so_that_one_job_can_carry_them():
    pending = None
    for _ in range(50):
        pending = coalesce(pending, "user-1", b"1" * 300_000, RULE, 0)
    assert pending is not None
    assert (len(pending.payloads), pending.dropped) == (3, 47)
    large = coalesce(pending, "user-1", b"2" * 1_040_000, RULE, 0)
    assert [bytes(payload)[:1] for payload in large.payloads] == [b"2"], "the newest always stays"


@calm
@given(times=st.lists(st.integers(0, 100 * S), min_size=1, max_size=30))
def test_what_is_gathered_survives_json_and_is_due_between_its_bounds(times):
    pending = gather(times)
    again = msgspec.json.decode(msgspec.json.encode(pending), type=Pending)
    assert [bytes(payload) for payload in again.payloads] == [bytes(payload) for payload in pending.payloads]
    assert due_at(again, RULE) == due_at(pending, RULE)
    assert times[0] < due_at(pending, RULE) <= times[0] + 20 * S

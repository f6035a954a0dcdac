"""Alerts about the same thing are folded."""

from __future__ import annotations

from millpond.rules.node.alert_folding import Told, decide, due, is_over


def test_the_first_alert_goes_out_at_once():
    assert decide(None, 5.0) == (Told(5.0), (True, 0))


def test_those_that_follow_soon_are_held_back_and_counted():
    told, decision = decide(Told(5.0), 6.0)
    assert not decision.is_sent
    told, decision = decide(told, 64.9)
    assert not decision.is_sent
    assert told == Told(5.0, 2)


def test_the_next_one_after_the_quiet_time_tells_how_many_were_held_back():
    assert decide(Told(5.0, 2), 65.0) == (Told(65.0), (True, 2))


def test_what_was_held_back_is_due_when_the_quiet_time_is_over():
    assert not due(Told(5.0, 1), 64.0)
    assert due(Told(5.0, 1), 65.0)
    assert not due(Told(5.0), 65.0)


def test_a_subject_is_forgotten_when_nothing_more_is_to_be_told():
    assert is_over(Told(5.0), 65.0)
    assert not is_over(Told(5.0), 64.0)
    assert not is_over(Told(5.0, 1), 65.0)

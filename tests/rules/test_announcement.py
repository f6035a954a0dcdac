"""How often a process announces that there are jobs."""

from __future__ import annotations

import pytest

from millpond.rules.store.announcement import GAP, LONGEST, SHARE, Announced, announced, may_announce_at

NOW = 100.0


def after(*took: float) -> Announced:
    """Announcements that took so long; the last ended now."""
    last = Announced()
    for seconds in took:
        last = announced(last, NOW, seconds)
    return last


def test_the_first_is_made_at_once():
    assert may_announce_at(Announced(), None) <= 0.0


def test_a_queue_is_announced_once_in_its_gap():
    assert may_announce_at(after(0.0001), NOW) == NOW + GAP


def test_another_queue_follows_soon_where_the_server_is_quick():
    assert may_announce_at(after(0.0002), None) == pytest.approx(NOW + 0.0002 * SHARE)


def test_on_a_busy_server_announcements_keep_to_their_share_of_the_time():
    took = 0.004
    assert may_announce_at(after(*[took] * 10), NOW) == pytest.approx(NOW + SHARE * took)


def test_after_a_pause_the_next_job_is_announced_at_once_however_long_they_take():
    assert may_announce_at(after(60.0), NOW) == NOW + LONGEST


def test_one_that_took_long_is_soon_forgotten():
    quick = [0.0005] * 20
    assert may_announce_at(after(*quick, 0.02, *quick), None) < NOW + 2 * SHARE * 0.0005

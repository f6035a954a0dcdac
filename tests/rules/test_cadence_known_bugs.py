"""What schedulers get wrong about clocks and time zones: one test for each cause, named after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from millpond.job import MICROSECONDS
from millpond.rules.recurring.cadence import between, count, cron, every, next_after, spread

HOUR = 3600 * MICROSECONDS
BERLIN = "Europe/Berlin"  # 2026: on 29 March from 02:00 to 03:00, on 25 October from 03:00 to 02:00


def at(text: str, zone: str = "UTC", fold: int = 0) -> int:
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return (local - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def walls(found: list[int], zone: str) -> list[str]:
    return [
        datetime.fromtimestamp(one / MICROSECONDS, ZoneInfo(zone)).strftime("%d %H:%M%z") for one in found
    ]


def day(expression: str, date: str, zone: str, **policies: str) -> list[str]:
    """What fires from midnight to midnight, as the wall shows it."""
    begin = at(date, zone)
    midnight = datetime.fromisoformat(date).replace(hour=0) + timedelta(days=1)
    return walls(between(cron(expression, zone, **policies), begin - 1, at(str(midnight), zone) - 1), zone)


# --- daylight saving time -------------------------------------------------------------------------------
def test_endless_loop_at_the_fold():
    """Stepping from the second 02:59 led back to the first 02:00, for ever."""
    instant, seen = at("2026-10-24", BERLIN), []
    for _ in range(4 * 24 * 3):
        following = next_after(cron("*/15 * * * *", BERLIN), instant)
        assert following is not None
        assert following == instant + HOUR // 4
        seen.append(instant := following)
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("fold", ["first", "second", "both"])
def test_stall_at_the_fold(fold):
    instant = at("2026-10-24 12:00")
    cadence = cron("*/20 2 * * *", BERLIN, fold=fold)
    for _ in range(20):
        following = next_after(cadence, instant)
        assert following is not None
        assert instant < following <= instant + 26 * HOUR
        instant = following


def test_day_skipped_because_its_hour_did_not_exist():
    assert day("30 2 * * *", "2026-03-29", BERLIN) == ["29 03:00+0200"]


def test_day_skipped_because_midnight_did_not_exist():
    assert day("0 0 * * *", "2024-04-26 01:00", "Africa/Cairo") == ["26 01:00+0300"]
    assert day("0 0 * * *", "2022-09-11 01:00", "America/Santiago") == ["11 01:00-0300"]


def test_the_day_after_the_gap_is_at_the_usual_hour_again():
    assert day("30 2 * * *", "2026-03-30", BERLIN) == ["30 02:30+0200"]


def test_hour_lost_at_the_fold():
    fired = day("0 * * * *", "2026-10-25", BERLIN)
    assert len(fired) == 25
    assert fired[1:5] == ["25 01:00+0200", "25 02:00+0200", "25 02:00+0100", "25 03:00+0100"]


def test_hour_too_many_at_the_gap():
    fired = day("0 * * * *", "2026-03-29", BERLIN)
    assert len(fired) == 23
    assert fired[1:3] == ["29 01:00+0100", "29 03:00+0200"]


def test_all_hours_written_as_a_range_lost_one_at_the_fold():
    assert len(day("0 0-23 * * *", "2026-10-25", BERLIN)) == 25


def test_an_hour_late_when_the_offset_of_the_start_was_kept():
    """The offset of the day on which the scheduler was started was used for good."""
    started_in_winter = at("2026-01-15", BERLIN)
    fires = between(cron("0 9 1 * *", BERLIN), started_in_winter, at("2027-01-01", BERLIN))
    assert {wall[3:8] for wall in walls(fires, BERLIN)} == {"09:00"}
    assert len(fires) == 11


def test_ran_twice_at_the_fold():
    assert day("30 2 * * *", "2026-10-25", BERLIN) == ["25 02:30+0200"]


def test_dead_on_a_wall_time_that_does_not_exist():
    inside = at("2026-03-29 01:00") - 1
    assert next_after(cron("15 2 29 3 *", BERLIN), inside) == at("2026-03-29 01:00")
    assert next_after(cron("15 2 29 3 *", BERLIN), inside + 1) == at("2027-03-29 02:15", BERLIN)


def test_first_call_inside_the_fold():
    """Started between the two showings, one scheduler fired at once again and another a day later."""
    first, second = at("2026-10-25 02:45", BERLIN), at("2026-10-25 02:15", BERLIN, fold=1)
    assert next_after(cron("30 2 * * *", BERLIN), first) == at("2026-10-26 02:30", BERLIN)
    assert next_after(cron("30 2 * * *", BERLIN), second) == at("2026-10-26 02:30", BERLIN)
    again = at("2026-10-25 02:30", BERLIN, fold=1)
    assert next_after(cron("30 2 * * *", BERLIN, fold="second"), first) == again
    assert next_after(cron("30 2 * * *", BERLIN, fold="both"), second) == again


def test_several_times_in_one_gap_ran_together():
    assert day("0,20,40 2 * * *", "2026-03-29", BERLIN) == ["29 03:00+0200"]


def test_the_end_of_the_gap_was_also_a_time_of_its_own():
    assert day("0 2,3 * * *", "2026-03-29", BERLIN) == ["29 03:00+0200"]
    assert count(cron("0 2,3 * * *", BERLIN), at("2026-03-29", BERLIN), at("2026-03-30", BERLIN) - 1) == 1


@pytest.mark.parametrize(
    ("fold", "fires"),
    [
        ("first", ["25 02:30+0200"]),
        ("second", ["25 02:30+0100"]),
        ("both", ["25 02:30+0200", "25 02:30+0100"]),
    ],
)
def test_no_choice_at_the_fold(fold, fires):
    assert day("30 2 * * *", "2026-10-25", BERLIN, fold=fold) == fires


def test_no_choice_at_the_gap():
    assert day("30 2 * * *", "2026-03-29", BERLIN, gap="skip") == []


def test_clocks_that_move_by_half_an_hour():
    """A library steps by whole hours and loses the half hour from 02:00 on after the fold."""
    zone = "Australia/Lord_Howe"  # 5 April 2026: at 02:00 back to 01:30
    fired = day("0,30 1,2 * * *", "2026-04-05", zone, fold="both")
    assert fired == ["05 01:00+1100", "05 01:30+1100", "05 01:30+1030", "05 02:00+1030", "05 02:30+1030"]
    assert day("*/30 */2 * * *", "2026-04-05", zone)[:4] == [
        "05 00:00+1100",
        "05 00:30+1100",
        "05 02:00+1030",
        "05 02:30+1030",
    ]


def test_a_whole_day_that_did_not_exist():
    """Samoa went from 29 to 31 December 2011: what was due on the 30th runs when the 31st begins."""
    fires = between(cron("0 9 * * *", "Pacific/Apia"), at("2011-12-29"), at("2011-12-31"))
    assert walls(fires, "Pacific/Apia") == ["29 09:00-1000", "31 00:00+1400", "31 09:00+1400"]


def test_a_zone_that_gave_up_its_summer_time():
    assert day("30 2 * * *", "2024-04-07", "America/Mexico_City") == ["07 02:30-0600"]


# --- drift and delays -----------------------------------------------------------------------------------
def test_drift_by_counting_from_now():
    """Every run that began 0.3 s late made all later ones 0.3 s later."""
    cadence, instant = every("10s"), at("2026-01-01")
    for _ in range(1000):
        began = instant + 300_000
        following = next_after(cadence, instant)
        assert following is not None
        assert following > began
        instant = following
    assert instant == at("2026-01-01") + 10_000 * MICROSECONDS


def test_random_delay_drawn_anew_at_each_start():
    """A timer that drew its delay at boot ran twice when the machine was restarted in between, or never."""
    assert len({spread("backup", 3600) for _start in range(100)}) == 1


def test_a_third_of_a_second_does_not_add_up_to_an_error():
    cadence = every(1 / 3)
    fires = between(cadence, at("2026-01-01"), at("2026-01-01") + HOUR, 20_000)
    assert {later - earlier for earlier, later in pairwise(fires)} == {333_333}

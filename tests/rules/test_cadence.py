"""Cadences: intervals that never drift, and cron expressions with what people write in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.job import MICROSECONDS
from millpond.rules.recurring.cadence import (
    Cadence,
    Cron,
    Every,
    between,
    count,
    cron,
    describe,
    every,
    latest,
    next_after,
    period_at,
    recent,
    spread,
)
from millpond.rules.recurring.cron import NICKNAMES

calm = settings(deadline=None)
EXPRESSIONS = [
    "*/7 * * * *",
    "30 2 * * *",
    "0 */5 * * *",
    "15,45 1-3 * * MON-FRI",
    "0 0 29 2 *",
    "*/20 0 0 1 * *",
]
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kathmandu",
]
instants = st.integers(at_year := 1_500_000_000 * MICROSECONDS, at_year + 320_000_000 * MICROSECONDS)
crons = st.builds(
    cron,
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.sampled_from(["end", "skip"]),
    st.sampled_from(["first", "second", "both"]),
)
intervals = st.builds(every, st.sampled_from([0.1, 1, 7, 60, "90m", "1d", 1 / 3]), anchor=instants)


def at(text: str) -> int:
    """An instant from its time in UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * MICROSECONDS


def shown(found: list[int], form: str = "%a %d %H:%M") -> list[str]:
    return [datetime.fromtimestamp(instant / MICROSECONDS, UTC).strftime(form) for instant in found]


# --- intervals ------------------------------------------------------------------------------------------
def test_an_interval_is_counted_from_1970_so_a_day_is_midnight_and_an_hour_the_full_hour():
    assert next_after(every("1d"), at("2026-05-04 13:07:11")) == at("2026-05-05 00:00")
    assert next_after(every("1h"), at("2026-05-04 13:07:11")) == at("2026-05-04 14:00")


@calm
@given(cadence=intervals, start=instants, ticks=st.integers(1, 10**6))
def test_an_interval_never_drifts_however_many_ticks_lie_between(cadence: Every, start, ticks):
    first = next_after(cadence, start)
    assert first is not None
    far = first + (ticks - 1) * cadence.step
    assert next_after(cadence, far - 1) == far
    assert (far - cadence.anchor) % cadence.step == 0
    assert count(cadence, start, far) == ticks


@calm
@given(cadence=intervals, start=instants, late=st.integers(0, 10**9))
def test_being_late_does_not_move_the_next_instant(cadence, start, late):
    first = next_after(cadence, start)
    assert first is not None
    assert next_after(cadence, first) == first + cadence.step, (
        "it follows from the instant, not from the delay"
    )
    assert latest(cadence, first + late % cadence.step) == first


@pytest.mark.parametrize(
    "period", [0, 0.05, -1, "0s", float("inf"), float("nan"), "yearly", None, True, "200000d"]
)
def test_an_interval_that_makes_no_sense_is_refused(period):
    with pytest.raises(OptionError, match="every must be"):
        every(period)


def test_an_interval_is_a_number_a_timedelta_or_text():
    assert every(60) == every(timedelta(minutes=1)) == every("1m") == Every(60.0)


# --- expressions ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "fires"),
    [
        ("0 12 * * *", ["Sun 01 12:00", "Mon 02 12:00", "Tue 03 12:00"]),
        ("*/20 9 * * MON", ["Mon 02 09:00", "Mon 02 09:20", "Mon 02 09:40"]),
        ("0 9 * * mon,fri", ["Mon 02 09:00", "Fri 06 09:00", "Mon 09 09:00"]),
        ("30 8-10/2 * * 1-5", ["Mon 02 08:30", "Mon 02 10:30", "Tue 03 08:30"]),
        ("0 0 L * *", ["Tue 31 00:00", "Thu 30 00:00", "Sun 31 00:00"]),
        ("0 0 LW * *", ["Tue 31 00:00", "Thu 30 00:00", "Fri 29 00:00"]),
        ("0 6 * * MON#2", ["Mon 09 06:00", "Mon 13 06:00", "Mon 11 06:00"]),
        ("0 6 * * 5L", ["Fri 27 06:00", "Fri 24 06:00", "Fri 29 06:00"]),
        ("0 0 * * 7", ["Sun 08 00:00", "Sun 15 00:00", "Sun 22 00:00"]),
        ("0 0 13 * FRI", ["Fri 06 00:00", "Fri 13 00:00", "Fri 20 00:00"]),  # day or weekday, as in cron
        ("0 0 10/10 * *", ["Tue 10 00:00", "Fri 20 00:00", "Mon 30 00:00"]),
        ("0 0 1 feb-jun/2 *", ["Wed 01 00:00", "Mon 01 00:00", "Mon 01 00:00"]),
        ("@hourly", ["Sun 01 01:00", "Sun 01 02:00", "Sun 01 03:00"]),
        ("@daily", ["Mon 02 00:00", "Tue 03 00:00", "Wed 04 00:00"]),
        ("@Weekly", ["Sun 08 00:00", "Sun 15 00:00", "Sun 22 00:00"]),
        ("@monthly", ["Wed 01 00:00", "Fri 01 00:00", "Mon 01 00:00"]),
        ("@yearly", ["Fri 01 00:00", "Sat 01 00:00", "Mon 01 00:00"]),
    ],
)
def test_what_people_write(expression, fires):
    start = at("2026-03-01 00:00")
    assert shown(between(cron(expression), start, start + 10**16, 3)) == fires


def test_a_step_through_a_range_of_one_is_that_one():
    assert cron("5-5/2 3-3/3 * * *").expression == "5 3 * * *"
    assert cron("0 0 * * mon-MON/2").expression == "0 0 * * mon"
    assert cron("5-15/5 0 * * *").expression == "5-15/5 0 * * *"


def test_six_fields_have_seconds_first():
    start = at("2026-03-01 00:00")
    found = between(cron("*/20 59 23 * * *"), start, start + 10**12, 4)
    assert shown(found, "%d %H:%M:%S") == ["01 23:59:00", "01 23:59:20", "01 23:59:40", "02 23:59:00"]


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("61 * * * *", "minute field '61'.*0-59"),
        ("* 25 * * *", "hour field '25'.*0-23"),
        ("0 0 32 * *", "day-of-month field '32'"),
        ("0 0 30 2 *", "day-of-month field '30'.*a day that its months have"),
        ("0 0 * 13 *", "month field '13'.*JAN-DEC"),
        ("0 0 * * 8", "day-of-week field '8'"),
        ("0 0 * * FRI-SUN", "FRI-SUN is written FRI-7"),
        ("0 0 ? * 1", r"write \* for \?"),
        ("H 3 * * *", "jitter="),
        ("*/0 * * * *", "minute field"),
        ("99 0 0 * * *", "second field '99'"),
        ("* * *", "has 3 fields; it takes five"),
        ("0 0 1 1 * * 2027", "has 7 fields"),
        ("", "has 0 fields"),
        ("@dayly", "did you mean '@daily'"),
        ("@reboot", "mode='continuous'"),
        ("5" * 201, "must be an expression"),
        ("1" * 190 + " * * * *", "minute field"),
        (None, "must be an expression such as"),
        (300, "must be an expression such as"),
    ],
)
def test_a_bad_expression_says_what_is_wrong_and_what_would_do(expression, complaint):
    with pytest.raises(OptionError, match=complaint):
        cron(expression)


@pytest.mark.parametrize(
    ("zone", "complaint"),
    [
        ("Europe/Pari", "did you mean 'Europe/Paris'"),
        ("paris", "did you mean 'Europe/Paris'"),
        ("europe/Paris ", "did you mean 'Europe/Paris'"),
        ("Mars/Olympus", "not in the time zone database"),
        ("Europe", "not in the time zone database"),
        ("../../etc/passwd", "they are named like 'Europe/Paris'"),
        ("/etc/localtime", "not in the time zone database"),
        ("a\0b", "not in the time zone database"),
        ("localtime", "another zone on every machine"),
        ("", "must be the name of a zone"),
        (None, "must be the name of a zone"),
    ],
)
def test_a_bad_time_zone_says_what_is_wrong(zone, complaint):
    with pytest.raises(OptionError, match=complaint):
        cron("0 3 * * *", zone)


def test_a_bad_policy_names_the_good_ones():
    with pytest.raises(OptionError, match="gap must be one of 'end', 'skip'"):
        cron("0 3 * * *", gap="shift")
    with pytest.raises(OptionError, match=r"fold must be one of .*did you mean 'second'"):
        cron("0 3 * * *", fold="seconds")


def test_an_expression_that_never_fires_again_has_no_next_instant():
    assert next_after(cron("0 0 29 2 *"), at("9989-01-01 00:00")) is None
    assert period_at(cron("0 0 29 2 *"), at("9989-01-01 00:00")) == float("inf")


def test_every_nickname_is_a_good_expression():
    assert {name: cron(name).expression for name in NICKNAMES} == NICKNAMES


# --- asking in different ways ---------------------------------------------------------------------------
@calm
@given(cadence=st.one_of(crons, intervals), start=instants, length=st.integers(0, 40 * 86_400 * MICROSECONDS))
def test_all_questions_have_answers_that_agree(cadence, start, length):
    if isinstance(cadence, Every):
        length = min(length, 1000 * cadence.step)
    until = start + length
    found = between(cadence, start, until, 10_000)
    assert found == sorted(set(found))
    assert all(start < instant <= until for instant in found)
    assert count(cadence, start, until) == len(found)
    assert recent(cadence, start, until, 5) == found[-5:]
    following = next_after(cadence, start)
    assert following is not None
    assert found[:1] == [following] if following <= until else found == []
    if found:
        assert latest(cadence, until) == found[-1]
        second = next_after(cadence, found[0])
        assert second is not None
        assert period_at(cadence, found[0]) == (second - found[0]) / MICROSECONDS


def test_only_as_many_as_asked_for_are_listed():
    assert len(between(every(1), 0, 10**15)) == 1000
    assert len(between(cron("* * * * *"), 0, 10**15)) == 1000
    assert recent(cron("* * * * *"), 0, 10**15, 0) == []


def test_looking_back_over_decades_finds_the_last_instant():
    assert latest(cron("0 0 29 2 *"), at("2027-06-01 00:00")) == at("2024-02-29 00:00")
    assert latest(cron("0 0 29 2 *"), at("2024-02-29 00:00")) == at("2024-02-29 00:00")


@calm
@given(cadence=st.one_of(crons, intervals))
def test_a_cadence_survives_json(cadence):
    assert msgspec.json.decode(msgspec.json.encode(cadence), type=Cadence) == cadence


def test_a_cadence_is_described_in_a_few_words():
    assert describe(every("90s")) == "every 90 s"
    assert describe(cron("@daily", "Europe/Paris")) == "cron '0 0 * * *' in Europe/Paris"
    assert Cron("0 0 * * *").timezone == "UTC"


# --- jitter ---------------------------------------------------------------------------------------------
@calm
@given(name=st.text(), jitter=st.floats(0, 86_400))
def test_the_spread_of_a_task_lies_in_its_window_and_never_changes(name, jitter):
    assert spread(name, jitter) == spread(name, jitter)
    assert 0 <= spread(name, jitter) <= jitter * MICROSECONDS


def test_tasks_are_spread_over_the_whole_window():
    tenths = [spread(f"task-{number}", 10.0) // MICROSECONDS for number in range(1000)]
    assert min(tenths.count(tenth) for tenth in range(10)) > 60
    assert spread("anything", 0.0) == 0

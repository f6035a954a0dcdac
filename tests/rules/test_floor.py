"""When a look at a line may leave out what stands before its floor."""

from __future__ import annotations

from millpond.rules.store.floor import IN_A_ROW, LONGEST, SLOW, Looks, begins_at_floor, is_slow, looked

QUICK = 0.002


def after(*times: float, at_floor: bool = False) -> Looks:
    """Looks that took so long, one each second."""
    looks = looked(Looks(), 0.0, QUICK, at_floor=False)
    for number, took in enumerate(times, 1):
        looks = looked(looks, float(number), took, at_floor=at_floor)
    return looks


def test_looks_begin_at_the_beginning_while_they_are_quick():
    assert not begins_at_floor(Looks(), 0.0)
    assert not begins_at_floor(after(*[QUICK] * 100), 100.0)


def test_one_slow_look_is_chance():
    assert not is_slow(after(*[1.0] * (IN_A_ROW - 1)))
    assert not is_slow(after(*[1.0] * (IN_A_ROW - 1), QUICK, 1.0))


def test_a_server_far_away_is_not_slow():
    looks = Looks()
    for number in range(20):
        looks = looked(looks, float(number), 0.1 + number % 2 * SLOW / 2, at_floor=False)
    assert not is_slow(looks)


def test_after_slow_looks_in_a_row_a_tenth_of_the_time_goes_into_looks_from_the_beginning():
    looks = after(*[0.1] * IN_A_ROW)
    assert begins_at_floor(looks, looks.at + 0.9)
    assert not begins_at_floor(looks, looks.at + 1.1)


def test_a_job_before_the_floor_is_missed_for_a_bounded_time():
    looks = after(*[2.0] * IN_A_ROW)
    assert begins_at_floor(looks, looks.at + LONGEST - 0.1)
    assert not begins_at_floor(looks, looks.at + LONGEST + 0.1)


def test_looks_at_the_floor_say_nothing_about_the_beginning():
    looks = after(*[0.1] * IN_A_ROW)
    assert looked(looks, looks.at + 1, QUICK, at_floor=True).at == looks.at
    assert is_slow(looked(looks, looks.at + 1, QUICK, at_floor=True))


def test_one_quick_look_from_the_beginning_ends_it():
    looks = after(*[0.1] * IN_A_ROW)
    assert not is_slow(looked(looks, looks.at + 1, QUICK, at_floor=False))

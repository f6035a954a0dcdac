"""Durations and sizes: what is accepted, what is refused, and that the refusal helps."""

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.units import seconds, size_in_bytes

calm = settings(deadline=None)  # a loaded machine is not a failure

DURATIONS = {
    0: 0.0,
    30: 30.0,
    2.5: 2.5,
    Fraction(1, 4): 0.25,
    timedelta(minutes=5): 300.0,
    timedelta(microseconds=1): 1e-6,
    timedelta(0): 0.0,
    "0s": 0.0,
    "20": 20.0,
    "0.5": 0.5,
    "1.5s": 1.5,
    "0.1s": 0.1,
    "500ms": 0.5,
    "5m": 300.0,
    "2h": 7200.0,
    "1d": 86_400.0,
    "1h30m": 5400.0,
    "1.5h": 5400.0,
    "90m": 5400.0,
    "1h 30m": 5400.0,
    " 5 m ": 300.0,
    "1m500ms": 60.5,
    "1d2h3m4s5ms": 93_784.005,
}

SIZES = {
    0: 0,
    4096: 4096,
    "4096": 4096,
    "7B": 7,
    "100kB": 100_000,
    "100KB": 100_000,
    "512MB": 512_000_000,
    "512mb": 512_000_000,
    "512 MB": 512_000_000,
    " 1GB ": 10**9,
    "2TB": 2 * 10**12,
    "1PB": 10**15,
    "1KiB": 1024,
    "64MiB": 64 * 2**20,
    "1.5GiB": 3 * 2**29,
    "1TiB": 2**40,
    "1PiB": 2**50,
    "0.1kB": 100,
    "1.0009kB": 1000,
}

NEITHER: list[object] = [
    None, True, False, b"5m", [5], {}, type, "", " ", "-1", "x", "5 5", "1,5s", "1e3", "nan", "inf", "٣",
]  # fmt: skip
NOT_DURATIONS = [
    *NEITHER, -1, -0.001, float("nan"), float("inf"), float("-inf"), 10**400, timedelta(seconds=-1), 1j,
    "-5s", "+5s", "s", ".5s", "5.s", "1_000s", "٣s", "5x", "5M", "5S", "5min", "512MB",
    "1h30", "30m1h", "1h1h", "5m\n5", "9" * 400, "9" * 400 + "s",
]  # fmt: skip
NOT_SIZES = [
    *NEITHER, -1, 1.0, float("nan"), timedelta(1),
    "-5MB", "+5MB", "MB", ".5MB", "5.MB", "5.5", "1.5.5MB", "1_000kB", "٣MB", "5XB", "5iB", "512M", "512k",
    "5m", "9" * 400, "9" * 400 + "MB",
]  # fmt: skip


@pytest.mark.parametrize(("written", "meant"), DURATIONS.items(), ids=repr)
def test_a_duration_is_understood_however_it_is_written(written, meant):
    assert seconds(written, name="timeout") == meant


@pytest.mark.parametrize(("written", "meant"), SIZES.items(), ids=repr)
def test_a_size_is_understood_however_it_is_written(written, meant):
    assert size_in_bytes(written, name="max_memory") == meant


@pytest.mark.parametrize("junk", NOT_DURATIONS, ids=repr)
def test_what_is_not_a_duration_is_refused_by_name_and_with_an_example(junk):
    with pytest.raises(OptionError, match=r"^idle_timeout must be a duration .*'5m'.*, not "):
        seconds(junk, name="idle_timeout")


@pytest.mark.parametrize("junk", NOT_SIZES, ids=repr)
def test_what_is_not_a_size_is_refused_by_name_and_with_an_example(junk):
    with pytest.raises(OptionError, match=r"^max_memory must be a size .*'512MB'.*, not "):
        size_in_bytes(junk, name="max_memory")


def test_the_refusal_is_a_value_error_and_shows_what_was_written():
    with pytest.raises(ValueError, match=r"not '5 parsecs'$"):
        seconds("5 parsecs", name="timeout")


def test_the_refusal_of_a_huge_text_stays_short():
    with pytest.raises(OptionError) as refusal:
        size_in_bytes("x" * 1_000_000, name="max_memory")
    assert len(str(refusal.value)) < 200


numbers_of_seconds = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
durations = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650))


@calm
@given(numbers_of_seconds)
def test_a_number_of_seconds_is_itself(number):
    assert seconds(number, name="timeout") == number


@calm
@given(durations)
def test_a_timedelta_spelled_out_in_units_means_the_same(duration):
    minutes, rest = divmod(duration, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    spelled = f"{hours}h{minutes}m{rest.seconds}s{rest.microseconds / 1000:.3f}ms"
    assert seconds(spelled, name="timeout") == seconds(duration, name="timeout")


@calm
@given(st.integers(0, 10**12), st.sampled_from(["d", "h", "m", "s", "ms"]))
def test_spaces_never_change_a_duration(number, unit):
    tight, loose = f"{number}{unit}", f"  {number}  {unit} "
    assert seconds(tight, name="timeout") == seconds(loose, name="timeout")


@calm
@given(st.integers(0, 10**15), st.sampled_from(["kB", "MB", "GB", "TB", "PB"]))
def test_a_whole_size_is_exact_in_decimal_and_larger_in_binary(number, unit):
    factor = 1000 ** (1 + "kMGTP".index(unit[0]))
    decimal = size_in_bytes(f"{number}{unit}", name="max_memory")
    binary = size_in_bytes(f"{number}{unit[0]}iB", name="max_memory")
    assert decimal == number * factor
    assert binary >= decimal


@calm
@given(st.text() | st.from_regex(r"[0-9.]+ ?[a-zA-Z]{0,3}", fullmatch=True))
def test_any_text_is_either_understood_or_refused(text):
    for convert in (seconds, size_in_bytes):
        try:
            result = convert(text, name="option")
        except OptionError:
            continue
        assert 0 <= result < float("inf")

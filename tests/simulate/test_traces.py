"""Traces: what a file says is simulated, all of it and nothing else; or it is refused with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from millpond.errors import OptionError
from millpond.simulate import traces
from millpond.simulate.run_times import parse

EXP = parse("exp:3s")


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text)
    return path


# --- counts --------------------------------------------------------------------------------------------
def test_a_trace_of_counts_has_exactly_that_many_jobs_in_each_minute(tmp_path):
    found = traces.read(written(tmp_path, "# a comment\nminute,count\n10,3\n12,2\n"), EXP)
    assert [int(at // 60) for at in found.arrivals] == [0, 0, 0, 2, 2]
    assert traces.read(written(tmp_path, "second,count\n0,5\n"), EXP).arrivals[-1] < 1.0


def test_a_trace_of_counts_can_be_scaled(tmp_path):
    path = written(tmp_path, "minute,count\n" + "".join(f"{n},100\n" for n in range(60)))
    assert 11_000 < len(traces.read(path, EXP, scale=2.0).arrivals) < 13_000


def test_parts_of_jobs_add_up_to_whole_ones_where_they_are(tmp_path):
    path = written(tmp_path, "second,count\n" + "".join(f"{n},0.4\n" for n in range(100)))
    found = traces.read(path, EXP).arrivals
    assert len(found) == 40
    assert len([at for at in found if at < 50]) == 20


def test_several_rows_of_the_same_minute_are_added(tmp_path):
    assert len(traces.read(written(tmp_path, "minute,count\n3,1\n3,2\n2,1\n"), EXP).arrivals) == 4


def test_steps_may_begin_before_zero(tmp_path):
    found = traces.read(written(tmp_path, "minute,count\n-2,1\n0,1\n"), EXP)
    assert [int(at // 60) for at in found.arrivals] == [0, 2]


# --- jobs ----------------------------------------------------------------------------------------------
def test_a_trace_of_jobs_keeps_their_order_tasks_and_times(tmp_path):
    found = traces.read(written(tmp_path, "task,arrival,service\nb,7.5,2\na,5,1\n"), None)
    assert list(found.arrivals) == [0.0, 2.5]
    assert list(found.services) == [1.0, 2.0]
    assert list(found.tasks) == ["a", "b"]


def test_jobs_of_the_same_moment_stay_in_the_order_of_the_file(tmp_path):
    found = traces.read(written(tmp_path, "arrival,service,task\n1,9,z\n1,2,a\n0,1,b\n"), None)
    assert list(found.services) == [1.0, 9.0, 2.0]
    assert list(found.tasks) == ["b", "z", "a"]


def test_a_trace_of_timestamps_takes_run_times_from_a_distribution(tmp_path):
    text = "TIMESTAMP,tokens\n2023-11-16 18:17:03.9799600,4808\n2023-11-16 18:17:05.9799600,10\n"
    found = traces.read(written(tmp_path, text), parse("fixed:4s"))
    assert list(found.arrivals) == pytest.approx([0.0, 2.0])
    assert list(found.services) == [4.0, 4.0]


def test_the_zone_of_a_timestamp_counts_and_none_is_utc(tmp_path):
    text = (
        "arrival\n2026-03-29T01:30:00.123456+01:00\n2026-03-29T03:30:00.123456+02:00\n2026-03-29T02:30:00\n"
        "2026-03-29T02:30:30Z\n"
    )
    found = traces.read(written(tmp_path, text), parse("fixed:4s"))
    assert list(found.arrivals) == pytest.approx([0.0, 3600.0, 7199.876544, 7229.876544])


def test_eight_digits_are_seconds_and_no_date(tmp_path):
    text = "arrival,service\n12341130,1\n12341135.5,1\n"
    assert list(traces.read(written(tmp_path, text), None).arrivals) == [0.0, 5.5]


def test_blank_lines_and_comments_are_no_rows(tmp_path):
    text = "# made by hand\n\narrival,service\n1,2\n\n# half time\n , \n3,2\n\n"
    assert list(traces.read(written(tmp_path, text), None).arrivals) == [0.0, 2.0]


# --- refused -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no rows"),
        ("minute,count\n\n", "no rows"),
        ("a,b\n1,2\n", "second,count"),
        ("minute,count\n1,x\n", "line 2 .* its count"),
        ("minute,count\n1\n", "line 2 .* has no count as value 2"),
        ("minute,count\n1,5\n1,-4\n", "line 3 .* negative count"),
        ("minute,count\n1,0\n2,0\n", "no jobs: its counts add up to 0"),
        ("second,count\n1,0.2\n2,0.2\n", "no jobs: its counts add up to 0.4"),
        ("minute,count\n1,5\n99999999,1\n", "line 3 .* days after the first arrival"),
        ("minute,count\n1,30000000\n", "more than 20000000 jobs"),
        ("arrival,service\nsoon,1\n", "line 2 .* such as 2026-03-01T12:00:00"),
        ("arrival,service\nnan,1\n", "line 2 .* has no time"),
        ("arrival,service\n1,2\n\n# a comment\n3,-2\n", "line 5 .* negative service time"),
        ("arrival,service\n1,2\n3\n", "line 3 .* has no service time as value 2"),
        ("arrival,service\n1,1e12\n", "line 2 .* give seconds"),
        ("arrival,service,task\n1,2,a\n3,4\n", "line 3 .* has no task as value 3"),
        ("arrival,service,task\n1,2,a\n3,4, \n", "line 3 .* has no task as value 3"),
        ("arrival,service\n5,1\n1700000000,1\n", "line 3 .* 19,676 days after the first arrival"),
    ],
)
def test_a_trace_that_cannot_be_read_says_why_and_where(tmp_path, text, told):
    path = written(tmp_path, text)
    with pytest.raises(OptionError, match=told) as refused:
        traces.read(path, None if "service" in text else EXP)
    assert str(path) in str(refused.value)


def test_a_trace_without_run_times_asks_for_a_distribution(tmp_path):
    for text in ("arrival\n1\n", "minute,count\n1,2\n"):
        with pytest.raises(OptionError, match="--service exp:3s"):
            traces.read(written(tmp_path, text), None)


def test_only_counts_can_be_scaled(tmp_path):
    with pytest.raises(OptionError, match="leave --scale out"):
        traces.read(written(tmp_path, "arrival,service\n1,2\n"), None, scale=5.0)
    with pytest.raises(OptionError, match="--scale 1e-09 leaves none"):
        traces.read(written(tmp_path, "minute,count\n1,2\n"), EXP, scale=1e-9)


def test_a_trace_that_is_not_there_says_so(tmp_path):
    with pytest.raises(OptionError, match="cannot read the trace"):
        traces.read(tmp_path / "none.csv", EXP)

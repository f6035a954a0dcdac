"""Charts of a simulation: in a terminal, and as a picture."""

from __future__ import annotations

import struct

import pytest

from millpond.errors import OptionError
from millpond.simulate import chart
from millpond.simulate.records import Minute


def minutes(count):
    return [Minute(n, 60 + n % 7, 4.0 + n % 3, n % 5, n % 2, 0.5 * (n % 9)) for n in range(count)]


# --- in a terminal -------------------------------------------------------------------------------------
def test_a_chart_is_as_high_as_its_highest_value():
    title, *rows, axis = chart.lines("jobs", [0.0, 1.5, 3.0], "a minute")
    assert title == "jobs, a minute"
    assert [row[10:] for row in rows] == ["  █", "  █", "  █", " ██", " ██", " ██"]
    assert rows[0].split() == ["3", "│", "█"]
    assert axis.endswith("└───")


def test_a_peak_does_not_vanish_in_a_chart_that_is_narrower_than_the_day():
    values = [1.0] * 1440
    values[777] = 90.0
    rows = chart.lines("waits", values)[1:-1]
    assert all(len(row) <= chart.WIDTH + 10 for row in rows)
    assert [row.count("█") for row in rows] == [1] * len(rows)


def test_nothing_has_a_chart_too():
    assert len(chart.lines("jobs", [])) == len(chart.lines("jobs", [0.0])) == chart.HEIGHT + 2


# --- a picture -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 90])
def test_a_picture_is_drawn(tmp_path, count):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'millpond[charts]'")
    path = tmp_path / "out.png"
    chart.draw(path, minutes(count), 10.0, "S1: wait")
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (1500, 1050)
    assert b"IEND" in data[-12:]
    assert len(data) > 10_000  # a page without axes is smaller


@pytest.mark.parametrize("name", ["none/out.png", "out.chart"])
def test_a_picture_that_cannot_be_written_says_so(tmp_path, name):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'millpond[charts]'")
    with pytest.raises(OptionError, match="cannot write the picture"):
        chart.draw(tmp_path / name, minutes(3), 10.0, "S1: wait")

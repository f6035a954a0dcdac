"""What is drawn, as values: numbers in few characters, order, widths."""

from __future__ import annotations

import pytest

from millpond.tui import cells
from millpond.tui.tables import Column, Row, ordered, widths


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.04, "0.0s"),
        (9.96, "10.0s"),
        (12, "12s"),
        (90, "1.5m"),
        (7200, "2.0h"),
        (86_400 * 400, "400d"),
        (None, "-"),
    ],
)
def test_durations_are_brief(seconds, said):
    assert cells.brief(seconds) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (220.5, "220.5"),
        (99_999, "99999"),
        (123_456, "123k"),
        (2_500_000, "2.5M"),
        (None, "-"),
        (float("nan"), "-"),
    ],
)
def test_counts_are_brief(number, said):
    assert cells.count(number).text == said


@pytest.mark.parametrize(("number", "said"), [(512, "512"), (1536, "1.5k"), (200 << 20, "200M"), ("x", "-")])
def test_sizes_are_brief(number, said):
    assert cells.size(number).text == said


def test_text_is_escaped_and_cut():
    assert cells.text("a\x1b[2J\u202eb").text == r"a\x1b[2J\u202eb"
    assert len(cells.text("x" * 10_000).text) == cells.LONGEST
    assert cells.text(None).text == ""


def test_a_moment_that_cannot_be_read_is_unknown():
    assert cells.since("rubbish", "2026-11-16T06:00:00Z").text == "-"
    assert cells.since("2026-11-16T05:59:00Z", "2026-11-16T06:00:00.5Z").text == "1.0m"


def _row(*values):
    found = tuple(cells.count(v) if isinstance(v, int) or v is None else cells.text(v) for v in values)
    return Row(str(values[0]), found, {})


def test_numbers_are_sorted_as_numbers_and_unknown_ones_are_the_least():
    rows = [_row("a", 9), _row("b", 100), _row("c", None), _row("d", 20)]
    assert [row.key for row in ordered(rows, 1, falling=True)] == ["b", "d", "a", "c"]
    assert [row.key for row in ordered(rows, 1, falling=False)] == ["c", "a", "d", "b"]


def test_rows_are_chosen_by_any_of_their_cells():
    rows = [_row("Mail", 1), _row("images", 12)]
    assert [row.key for row in ordered(rows, 0, falling=False, wanted="mAIL")] == ["Mail"]
    assert [row.key for row in ordered(rows, 0, falling=False, wanted="12")] == ["images"]


def test_the_tail_gives_way_first_and_then_the_name():
    columns = [Column("name", "name"), Column("number", "number"), Column("text", "tail")]
    rows = [_row("n" * 30, 1, "t" * 50)]
    assert widths(columns, rows, 200) == [30, 7, 50]
    assert widths(columns, rows, 70) == [30, 7, 31]
    assert widths(columns, rows, 40) == [19, 7, 12]
    assert widths(columns, rows, 10) == [8, 7, 12]


def test_wide_characters_take_two_places():
    assert widths([Column("a", "name")], [_row("漢字漢字")], 80) == [8]

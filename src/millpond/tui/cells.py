"""Cells of tables: text that is safe to show, and a value to sort by.

What a job, a node or a server wrote goes through `text`, which shows control characters as escapes. Numbers,
durations and sizes are told in few characters.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, NamedTuple

from millpond.cli.output import safe

LONGEST = 300  # characters of a cell
UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k"))
WARN, BAD, GOOD, QUIET = "magenta", "bold red", "green", "dim"  # legible on light and on dark


class Cell(NamedTuple):
    """What is shown, what it is sorted by, and how it looks. A colour never says what the text does not."""

    text: str
    order: float | str
    style: str = ""


def text(value: object, style: str = "") -> Cell:
    """Text of whatever origin."""
    said = "" if value is None else safe(value, LONGEST)
    return Cell(said, said.casefold(), style)


def count(number: Any, style: str = "") -> Cell:
    """A number of things; of very many, about how many."""
    if not _is_number(number):
        return Cell("-", -math.inf, QUIET)
    return Cell(_many(number), float(number), style if number else QUIET)


def _many(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e5, "k")):
        if number >= size:
            return f"{number / (1e3 if unit == 'k' else size):.{0 if unit == 'k' else 1}f}{unit}"
    return f"{number:g}" if number == int(number) else f"{number:.1f}"


def span(seconds: Any, style: str = "") -> Cell:
    """A duration."""
    if not _is_number(seconds):
        return Cell("-", -math.inf, QUIET)
    return Cell(brief(seconds), float(seconds), style)


def brief(seconds: float | None) -> str:
    """A duration in at most five characters."""
    if seconds is None:
        return "-"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if abs(seconds) >= size:
            return f"{seconds / size:.{0 if abs(seconds) >= 100 * size else 1}f}{unit}"
    return f"{seconds:.0f}s" if abs(seconds) >= 10 else f"{seconds:.1f}s"


def size(number: Any) -> Cell:
    """A number of bytes."""
    if not _is_number(number):
        return Cell("-", -math.inf, QUIET)
    for unit_size, unit in UNITS:
        if number >= unit_size:
            return Cell(f"{number / unit_size:.{1 if number < 10 * unit_size else 0}f}{unit}", float(number))
    return Cell(f"{number:.0f}", float(number))


def share(part: Any) -> Cell:
    """A part of one core, in percent."""
    if not _is_number(part):
        return Cell("-", -math.inf, QUIET)
    return Cell(f"{100 * part:.0f}%", float(part))


def clock(moment: object) -> Cell:
    """The time of day of an instant, in UTC."""
    said = text(moment)
    return Cell(said.text[11:19], said.text)


def since(moment: object, now: object) -> Cell:
    """How long ago an instant was, or how long until it is."""
    at, current = _instant(moment), _instant(now)
    if at is None or current is None:
        return Cell("-", -math.inf, QUIET)
    return Cell(brief(abs(current - at)), abs(current - at))


def _instant(moment: object) -> float | None:
    try:
        return datetime.fromisoformat(str(moment)).timestamp() if moment else None
    except (ValueError, OverflowError):
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

"""Answers: one JSON document for programs, tables for people.

Job data is hostile text. In JSON everything beyond printable ASCII is escaped; for people control and
formatting characters are shown as escapes, and nothing is ever read as markup.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from millpond.options import iso_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

CELL = 60  # the most characters of job data in a cell
LEAST = 10  # what the last column of a list keeps in a narrow terminal
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, formatting (also right-to-left tricks), surrogates


def safe(text: object, most: int | None = None, *, lines: bool = False) -> str:
    """Text that cannot steer a terminal; cut after `most` characters. `lines` keeps line breaks."""
    said = str(text)
    if most is not None and len(said) > most:
        said = said[: most - 1] + "…"
    if said.isascii() and said.isprintable():
        return said
    return "".join(_safe_character(character, lines=lines) for character in said)


def _safe_character(character: str, *, lines: bool) -> str:
    if lines and character in "\n\t":
        return character
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


instant = iso_text  # as programs have it; for people there is `moment`


def moment(microseconds: int | None) -> str:
    """An instant for people: UTC, to the second."""
    text = instant(microseconds)
    return "" if text is None else text[:19].replace("T", " ")


def span(seconds: float | None) -> str:
    """A duration for people."""
    if seconds is None:
        return ""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{round(seconds / size, 1):g} {unit}"
    return f"{seconds:.1f} s"


def rate(per_second: float) -> str:
    """A rate as people say it: in the first unit that makes it at least one, with two decimals at most."""
    said = [(per_second * size, unit) for size, unit in ((1, "s"), (60, "m"), (3600, "h"), (86_400, "d"))]
    for number, unit in said:
        if round(number, 6) >= 1 and abs(number - round(number, 2)) < 1e-6 * number:
            return f"{round(number, 2):.12g}/{unit}"
    return f"{said[-1][0]:.6g}/d"


def print_document(document: Any) -> None:
    """One JSON document on stdout."""
    text = json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False)
    click.echo(text.replace("\x7f", "\\u007f"))


def print_for_people(*parts: RenderableType) -> None:
    """Tables and text on stdout. In a pipe nothing is wrapped or coloured; on a terminal ids stay whole."""
    from rich.console import Console

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    console = Console(highlight=False, markup=False, emoji=False)
    needed = [getattr(part, "min_width", None) or 0 for part in parts]
    console.width = max(console.width, *needed) if console.is_terminal else 1000
    for part in parts:
        _fit(part, console.width)
    with console.capture() as printed:
        console.print(*parts, sep="\n")
    lines = printed.get().split("\n")
    click.echo("\n".join(lines if console.is_terminal else map(str.rstrip, lines)), nl=False)


def _fit(part: RenderableType, width: int) -> None:
    """Let the last column of a list give way; left to itself rich takes from all, some down to nothing."""
    least = getattr(part, "min_width", None)
    if least is not None:
        last = part.columns[-1]  # type: ignore[union-attr]
        last.max_width = last.min_width + max(0, width - least)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, most: int | None = CELL) -> Table:
    """A list: a line for each row, a cell cut after `most`; where room is short the last column gives way."""
    from rich import box
    from rich.table import Table

    cells = [[words(value, most) for value in row] for row in rows]
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    widths = [
        max(len(name), *(row[place].cell_len for row in cells)) if cells else len(name)
        for place, name in enumerate(columns)
    ]
    widths[-1] = min(widths[-1], max(LEAST, len(columns[-1])))
    for place, name in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[place], int | float) for row in rows)
        made.add_column(
            name,
            justify="right" if numbers else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=widths[place],
        )
    for row in cells:
        made.add_row(*row)
    made.min_width = sum(widths) + 3 * (len(columns) - 1)
    return made


def facts(rows: Iterable[Sequence[object]]) -> Table:
    """A page of named values, each shown whole."""
    from rich.table import Table

    listed = [[words(value) for value in row] for row in rows]
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for place in range(max(map(len, listed), default=0)):
        last = all(place == len(row) - 1 for row in listed)
        made.add_column(no_wrap=not last, overflow="fold")
    for row in listed:
        made.add_row(*row)
    return made


def words(value: object, most: int | None = None, *, lines: bool = False) -> Text:
    """A value as plain text: never markup, never control characters."""
    from rich.text import Text

    return Text("" if value is None else safe(value, most, lines=lines))


def number_of(number: int, what: str = "job", *, more: bool = False) -> str:
    """Such as "1 job", "2 jobs", "1000 or more jobs"."""
    return f"{number}{' or more' if more else ''} {what}{'' if number == 1 and not more else 's'}"

"""When recurring tasks are due, as a picture: a row for each task, a column for each part of the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from millpond.cli.output import instant, words
from millpond.job import MICROSECONDS, Instant

if TYPE_CHECKING:
    from rich.console import RenderableType

COLUMNS = 72
SHADES = " ·∘○●"  # none, one, a few, many, very many
MOST = 200_000  # fires looked at


def calendar_document(fires: Iterable[tuple[Instant, str]], now: Instant, hours: int) -> dict[str, Any]:
    """How often each task is due in each part of the time, and when first."""
    part = hours * 3600 * MICROSECONDS / COLUMNS
    counts: dict[str, Counter[int]] = {}
    first: dict[str, Instant] = {}
    whole = True
    for number, (at, name) in enumerate(fires):
        if number >= MOST:
            whole = False
            break
        counts.setdefault(name, Counter())[min(COLUMNS - 1, int((at - now) / part))] += 1
        first.setdefault(name, at)
    return {
        "from": instant(now),
        "hours": hours,
        "complete": whole,
        "columns": COLUMNS,
        "tasks": [
            {
                "name": name,
                "fires": sum(found.values()),
                "first": instant(first[name]),
                "columns": [found[column] for column in range(COLUMNS)],
            }
            for name, found in sorted(counts.items(), key=lambda item: first[item[0]])
        ],
    }


def picture(document: dict[str, Any]) -> list[RenderableType]:
    """For a terminal."""
    tasks = document["tasks"]
    if not tasks:
        return [words("no task is due in that time")]
    width = min(40, max(len(task["name"]) for task in tasks))
    begin = int(document["from"][11:13]) * 60 + int(document["from"][14:16])
    lines = [" " * (width + 2) + _scale(begin, document["hours"])]
    for task in tasks:
        drawn = "".join(_shade(number) for number in task["columns"])
        lines.append(f"{task['name'][-width:]:<{width}} │{drawn}│ {task['fires']}")
    lines.append(" " * (width + 2) + "hours of UTC; · once, ∘ up to 5, ○ up to 30, ● more often")
    if not document["complete"]:
        lines.append(f"only the first {MOST:,} fires are drawn")
    return [words(line) for line in lines]


def _shade(number: int) -> str:
    return SHADES[(number > 0) + (number > 1) + (number > 5) + (number > 30)]


def _scale(begin: int, hours: int) -> str:
    """The hours along the top, every eighth part of the time."""
    step = COLUMNS // 8
    minutes = [begin + hours * 60 * part // 8 for part in range(8)]
    return "".join(f"{f'{minute // 60 % 24:02d}:{minute % 60:02d}':<{step}}" for minute in minutes)

"""One snapshot without a screen: tables for people, or one document for programs. Needs no extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.cli.output import table, words
from millpond.tui.snapshot import View
from millpond.tui.summary import alert_lines, totals_line
from millpond.tui.tables import TABS, ordered

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST = 50  # rows of one table
ALWAYS = ("queues", "nodes")  # shown also when there are none


def document(view: View) -> dict[str, Any]:
    """Everything, as the overview of the HTTP API and the lists behind it."""
    return {
        **view.overview,
        "nodes": view.nodes,
        "workers": view.workers,
        "dead": view.dead,
        "recurring_tasks": view.recurring,
        "events": view.events,
    }


def page(view: View) -> list[RenderableType]:
    """Every table that has rows, under what all of them come to."""
    parts: list[RenderableType] = [words(totals_line(view)), *(words(line) for line in alert_lines(view))]
    for tab in TABS:
        rows = ordered(tab.rows(view), tab.sort, falling=tab.falling)
        if not rows and tab.name not in ALWAYS:
            continue
        parts += [words(""), words(tab.title.upper())]
        if not rows:
            parts.append(words(tab.empty))
            continue
        shown = [[cell.text for cell in row.cells] for row in rows[:MOST]]
        parts.append(table([column.title for column in tab.columns], shown))
        if len(rows) > MOST:
            parts.append(words(f"and {len(rows) - MOST} more"))
    return parts

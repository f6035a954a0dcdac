"""The lines above the tables: what everything comes to, what is wrong, since when the store is away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from millpond.cli.output import safe
from millpond.tui.cells import brief, count
from millpond.tui.poller import Sight
from millpond.tui.snapshot import View


def store_line(sight: Sight, now: float) -> tuple[str, bool]:
    """Where the store is and whether it answers; False while it does not."""
    if sight.trouble is not None:
        at = datetime.fromtimestamp(sight.trouble.since, UTC).strftime("%H:%M:%S")
        lasts = brief(max(0.0, now - sight.trouble.since))
        return f"store away since {at} UTC ({lasts}): {safe(sight.trouble.cause, 200)}", False
    if sight.view is None:
        return "looking ...", True
    found = sight.view.overview
    return f"{found['at'][11:19]} UTC  {safe(found['store']['url'], 200)}", True


def totals_line(view: View) -> str:
    """Everything in a line."""
    totals = view.overview["totals"]
    said = [
        f"{count(totals['queued']).text} queued",
        f"{count(totals['running']).text} running",
        f"{count(totals['per_minute']).text}/min",
        f"p95 wait {brief(totals['wait_p95'])}",
        f"{totals['busy']}/{totals['workers']} workers busy",
        f"{totals['nodes']} node{'' if totals['nodes'] == 1 else 's'}",
        f"{count(totals['dead']).text} dead",
    ]
    return ", ".join(said)


def alert_lines(view: View) -> Iterator[str]:
    """What somebody should look at, the worst first."""
    for alert in view.overview["alerts"]:
        mark = "!!" if alert["level"] == "error" else "! "
        yield f"{mark} {safe(alert['text'], 300)}"

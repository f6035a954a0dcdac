"""Reads a trace: a CSV of arrivals per second or minute, or one row for each job.

What the columns are is told by their names. A trace without service times takes them from a distribution.
Nothing is guessed and nothing is dropped: what cannot be read is refused, with its line and what would do.
"""

from __future__ import annotations

import csv
import math
import random
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from millpond.errors import OptionError
from millpond.simulate import arrivals
from millpond.simulate.records import Workload
from millpond.simulate.run_times import Service

STEPS = {"second": 1.0, "minute": 60.0}
MOMENTS = ("arrival", "enqueued_at", "timestamp", "time")
DURATIONS = ("service", "seconds", "duration", "run")
MOST_JOBS = 20_000_000
DAY = 86_400.0
MOST_DAYS = 366  # from the first arrival to the last: beyond that it is rather a number read as a time
EXPLAINED = (
    "a trace has the columns second,count or minute,count, or one row for each job with arrival "
    "(seconds, or a timestamp) and if known service (seconds) and task"
)


class _Row(NamedTuple):
    """One line of a trace."""

    path: Path
    line: int
    cells: Sequence[str]

    def refused(self, told: str) -> OptionError:
        """What is wrong with this line."""
        return OptionError(f"line {self.line} of the trace {self.path} {told}: {list(self.cells)!r:.80}")

    def text(self, column: int, name: str) -> str:
        found = self.cells[column].strip() if column < len(self.cells) else ""
        if not found:
            raise self.refused(f"has no {name} as value {column + 1}; give one, or leave the line out")
        return found

    def number(self, column: int, name: str) -> float:
        text = self.text(column, name)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.refused(f"has no number as value {column + 1}, its {name}")
        return value

    def amount(self, column: int, name: str) -> float:
        """A number of zero or more."""
        value = self.number(column, name)
        if value < 0:
            raise self.refused(f"has a negative {name} as value {column + 1}; it must be zero or more")
        return value

    def moment(self, column: int) -> float:
        """Seconds. A number is one, also if its digits could be those of a date; a time without a zone is
        UTC, so that no machine reads another."""
        text = self.text(column, "arrival")
        try:
            value = float(text)
        except ValueError:
            try:
                at = datetime.fromisoformat(text)
                value = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
            except (ValueError, OverflowError):
                value = math.nan
        if not math.isfinite(value):
            raise self.refused(
                f"has no time as value {column + 1}; give seconds, or a timestamp such as 2026-03-01T12:00:00"
            )
        return value


def read(path: Path, service: Service | None, seed: int = 1, scale: float = 1.0) -> Workload:
    """The workload in a file; `scale` multiplies its counts."""
    names, rows = _rows(path)
    chance = random.Random(seed)
    step = next((name for name in STEPS if name in names), None)
    if step is not None and "count" in names:
        if service is None:
            raise OptionError(f"the trace {path} has only counts: say how long jobs take: --service exp:3s")
        counts = _counts(rows, names.index(step), names.index("count"), step)
        moments = _moments(path, counts, STEPS[step], scale, chance)
        return Workload(path.name, moments, service.draw(len(moments), chance))
    if scale != 1.0:
        raise OptionError(
            f"--scale multiplies counts, and the trace {path} has a row for each job: leave --scale out, "
            "or give the trace as second,count"
        )
    return _by_job(path, names, rows, service, chance)


def _rows(path: Path) -> tuple[list[str], list[_Row]]:
    """The names of the columns, and the lines that hold something: blank ones and comments do not."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader("\n" if line.startswith("#") else line for line in file)
            rows = [_Row(path, reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise OptionError(f"cannot read the trace {path}: {error}") from error
    if len(rows) < 2:
        raise OptionError(f"the trace {path} has no rows: {EXPLAINED}")
    return [name.strip().lower() for name in rows[0].cells], rows[1:]


# --- arrivals by the second or minute ----------------------------------------------------------------------
def _counts(rows: Sequence[_Row], when: int, count: int, name: str) -> list[float]:
    """Jobs in each step, from the first that is named to the last."""
    counts: dict[int, float] = {}
    lines: dict[int, _Row] = {}
    for row in rows:
        step = math.floor(row.number(when, name))
        counts[step] = counts.get(step, 0.0) + row.amount(count, "count")
        lines[step] = row
    first, last = min(counts), max(counts)
    _check_span((last - first) * STEPS[name], lines[last])
    return [counts.get(step, 0.0) for step in range(first, last + 1)]


def _check_span(seconds: float, last: _Row) -> None:
    if seconds > MOST_DAYS * DAY:
        raise last.refused(
            f"is {seconds / DAY:,.0f} days after the first arrival, and a trace may span {MOST_DAYS}; "
            "correct its time, or take a part of the trace"
        )


def _moments(
    path: Path, counts: Sequence[float], step: float, scale: float, chance: random.Random
) -> array[float]:
    if sum(counts) * scale > MOST_JOBS:
        raise OptionError(f"the trace {path} has more than {MOST_JOBS} jobs: make --scale smaller")
    if scale == 1.0:
        moments = arrivals.by_counts(_whole(counts), chance, step)
    else:
        moments = arrivals.by_rate([count * scale for count in counts], chance, step)
    if not moments:
        raise OptionError(
            f"the trace {path} has no jobs: its counts add up to {sum(counts):g}"
            + (f", and --scale {scale:g} leaves none" if scale != 1.0 else "")
        )
    return moments


def _whole(counts: Sequence[float]) -> list[int]:
    """Whole jobs in each step. Parts of jobs add up over the steps, so that none is lost."""
    whole, before, total = [], 0, 0.0
    for count in counts:
        total += count
        whole.append(round(total) - before)
        before = round(total)
    return whole


# --- one row for each job ----------------------------------------------------------------------------------
def _by_job(
    path: Path, names: Sequence[str], rows: Sequence[_Row], service: Service | None, chance: random.Random
) -> Workload:
    moment = next((names.index(name) for name in MOMENTS if name in names), None)
    if moment is None:
        raise OptionError(f"the trace {path} has the columns {', '.join(names)}: {EXPLAINED}")
    length = next((names.index(name) for name in DURATIONS if name in names), None)
    task = names.index("task") if "task" in names else None
    moments = [row.moment(moment) for row in rows]
    order = sorted(
        range(len(rows)), key=moments.__getitem__
    )  # of two at the same moment, as they stand there
    first, last = moments[order[0]], moments[order[-1]]
    _check_span(last - first, rows[order[-1]])
    if service is not None:
        services = service.draw(len(rows), chance)
    elif length is not None:
        services = array("d", (_length(rows[index], length) for index in order))
    else:
        raise OptionError(f"the trace {path} tells no service times: add --service exp:3s or the like")
    return Workload(
        path.name,
        array("d", (moments[index] - first for index in order)),
        services,
        [rows[index].text(task, "task") for index in order] if task is not None else (),
    )


def _length(row: _Row, column: int) -> float:
    seconds = row.amount(column, "service time")
    if seconds > MOST_DAYS * DAY:
        raise row.refused(
            f"has a job of {seconds / DAY:,.0f} days, and {MOST_DAYS} are the most; give seconds"
        )
    return seconds

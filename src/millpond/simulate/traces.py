"""Reads a trace: a CSV of arrivals per second or minute, or one row for each job.

What the columns are is told by their names. A trace without service times takes them from a distribution.
Nothing is guessed: a file that could be read in two ways is refused with what would do.
"""

from __future__ import annotations

import csv
import math
import random
from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from millpond.errors import OptionError
from millpond.simulate import arrivals
from millpond.simulate.records import Workload
from millpond.simulate.services import Service

STEPS = {"second": 1.0, "minute": 60.0}
MOMENTS = ("arrival", "enqueued_at", "timestamp", "time")
DURATIONS = ("service", "seconds", "duration", "run")
MOST_JOBS = 20_000_000
EXPLAINED = (
    "a trace has the columns second,count or minute,count, or one row for each job with arrival "
    "(seconds, or a timestamp) and if known service (seconds) and task"
)


def read(path: Path, service: Service | None, seed: int = 1, scale: float = 1.0) -> Workload:
    """The workload in a file; `scale` multiplies its counts."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(line for line in file if not line.startswith("#")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise OptionError(f"cannot read the trace {path}: {error}") from error
    if len(rows) < 2:
        raise OptionError(f"the trace {path} has no rows: {EXPLAINED}")
    names = [name.strip().lower() for name in rows[0]]
    chance = random.Random(seed)
    step = next((name for name in STEPS if name in names), None)
    if step is not None and "count" in names:
        if service is None:
            raise OptionError(f"the trace {path} has only counts: say how long jobs take: --service exp:3s")
        counts = _counts(path, rows[1:], names.index(step), names.index("count"))
        moments = _moments(path, counts, STEPS[step], scale, chance)
        return Workload(path.name, moments, service.draw(len(moments), chance))
    return _by_job(path, names, rows[1:], service, chance)


def _counts(path: Path, rows: Sequence[Sequence[str]], when: int, count: int) -> list[float]:
    """Jobs in each step, from the first that is named to the last."""
    counts: dict[int, float] = {}
    for number, row in enumerate(rows, start=2):
        step = int(_number(path, number, row, when))
        counts[step] = counts.get(step, 0.0) + _number(path, number, row, count)
    first, last = min(counts), max(counts)
    if min(counts.values()) < 0 or last - first > MOST_JOBS:
        raise OptionError(f"the trace {path} has negative counts, or spans more than {MOST_JOBS} steps")
    return [counts.get(step, 0.0) for step in range(first, last + 1)]


def _moments(
    path: Path, counts: Sequence[float], step: float, scale: float, chance: random.Random
) -> array[float]:
    if sum(counts) * scale > MOST_JOBS:
        raise OptionError(f"the trace {path} has more than {MOST_JOBS} jobs: make --scale smaller")
    if scale == 1.0:
        return arrivals.by_counts([round(count) for count in counts], chance, step)
    return arrivals.by_rate([count * scale for count in counts], chance, step)


def _by_job(
    path: Path,
    names: Sequence[str],
    rows: Iterable[Sequence[str]],
    service: Service | None,
    chance: random.Random,
) -> Workload:
    moment = next((names.index(name) for name in MOMENTS if name in names), None)
    if moment is None:
        raise OptionError(f"the trace {path} has the columns {', '.join(names)}: {EXPLAINED}")
    length = next((names.index(name) for name in DURATIONS if name in names), None)
    task = names.index("task") if "task" in names else None
    if length is None and service is None:
        raise OptionError(f"the trace {path} tells no service times: add --service exp:3s or the like")
    jobs = []
    for number, row in enumerate(rows, start=2):
        at = _moment(path, number, row, moment)
        seconds = -1.0 if length is None or service is not None else _number(path, number, row, length)
        jobs.append((at, seconds, row[task] if task is not None else ""))
    jobs.sort()
    drawn = service.draw(len(jobs), chance) if service is not None else None
    first = jobs[0][0]
    return Workload(
        path.name,
        array("d", (at - first for at, _, _ in jobs)),
        drawn or array("d", (max(0.0, seconds) for _, seconds, _ in jobs)),
        [name for _, _, name in jobs] if task is not None else (),
    )


def _number(path: Path, line: int, row: Sequence[str], column: int) -> float:
    try:
        value = float(row[column])
    except (ValueError, IndexError):
        value = math.nan
    if not math.isfinite(value):
        raise OptionError(f"line {line} of the trace {path} has no number as value {column + 1}: {row!r:.80}")
    return value


def _moment(path: Path, line: int, row: Sequence[str], column: int) -> float:
    try:
        return datetime.fromisoformat(row[column].strip()[:26]).timestamp()
    except (ValueError, IndexError, OverflowError):
        return _number(path, line, row, column)

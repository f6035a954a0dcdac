"""When simulated jobs arrive: from a rate that changes by the minute, from counts, or in batches."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence
from importlib import resources

MINUTE = 60.0
DAY = 1440  # minutes


def by_rate(per_minute: Sequence[float], chance: random.Random, step: float = MINUTE) -> array[float]:
    """Independent arrivals whose expected number in each step is given (a Poisson process)."""
    arrivals = array("d")
    spent, target = 0.0, chance.expovariate(1.0)
    for index, expected in enumerate(per_minute):
        while target < spent + expected:
            arrivals.append((index + (target - spent) / expected) * step)
            target += chance.expovariate(1.0)
        spent += expected
    return arrivals


def by_counts(counts: Sequence[int], chance: random.Random, step: float) -> array[float]:
    """Exactly so many in each step, anywhere within it."""
    arrivals = array("d")
    for index, count in enumerate(counts):
        arrivals.extend(sorted((index + chance.random()) * step for _ in range(count)))
    return arrivals


def in_batches(per_minute: Sequence[float], mean: float, chance: random.Random) -> array[float]:
    """Batches of geometric size: many at the same moment, then none."""
    arrivals = array("d")
    for moment in by_rate([expected / mean for expected in per_minute], chance):
        size = 1 + int(math.log(1.0 - chance.random()) / math.log(1.0 - 1.0 / mean))
        arrivals.extend([moment] * size)
    return arrivals


def scaled(shape: Sequence[float], total: float) -> list[float]:
    """The same shape with this many jobs in all."""
    whole = sum(shape)
    return [value * total / whole for value in shape]


def office_day() -> list[float]:
    """Four jobs in ten between 10:00 and 14:00, one in ten between 22:00 and 6:00."""
    return [_hourly(minute // 60) for minute in range(DAY)]


def _hourly(hour: int) -> float:
    if 10 <= hour < 14:
        return 0.4 / 240
    return 0.1 / 480 if hour >= 22 or hour < 6 else 0.5 / 720


def match_day(chance: random.Random) -> list[float]:
    """Three matches on a quiet day: flash crowds of a minute, the highest 21 times the mean of the day."""
    shape = [1.0 + 0.6 * math.sin((minute - 540) / DAY * math.tau) for minute in range(DAY)]
    for kick_off in (870, 1050, 1260):
        for minute in range(kick_off - 30, kick_off + 125):
            shape[minute] += 1.5
        moments = [kick_off, kick_off + 46, kick_off + 62, kick_off + 108]
        moments += [kick_off + chance.randrange(5, 105) for _ in range(4)]
        for moment in moments:
            height = chance.uniform(8.0, 30.0)
            for after in range(4):
                shape[moment + after] += height * 0.25**after
    mean = sum(shape) / DAY
    shape[1260] = 21.0 * (mean * DAY - shape[1260]) / (DAY - 21.0)  # of a mean that includes it
    return shape


def nasa_day() -> list[float]:
    """A real day, minute by minute: see the head of the file."""
    text = resources.files("millpond.simulate").joinpath("data/nasa95_day.csv").read_text(encoding="utf-8")
    rows = [line.split(",") for line in text.splitlines() if line and line[0].isdigit()]
    return [float(count) for _, count in rows]

"""What a task really needs, from what its jobs were seen to use.

A histogram whose old entries fade: half as heavy after a day. The request is its 95th percentile and a bit
more. A task that ran out of memory asks for more at once, for a while, however few were seen. What was
learned can be written down and read back, by a clock of another process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

HALF_LIFE = 86_400.0
RATIO = 1.1  # each bucket ends so many times higher than the one before
MARGIN = 1.15
MEMORY_SHARE, CPU_SHARE, RUN_SHARE = 0.95, 0.90, 0.95
RAISED_FOR = 3600.0
FORGOTTEN = 1e-3  # a bucket lighter than this is dropped
MOST_PLACES, HEAVIEST = 500, 1e6  # what may be read back: anybody may have written it


class Seen(NamedTuple):
    """A fading histogram: weights by bucket, as heavy as they were `at` that instant."""

    weights: Mapping[int, float] = {}
    at: float = 0.0


def see(seen: Seen, value: float, now: float, weight: float = 1.0) -> Seen:
    """One more measurement."""
    weights = dict(aged(seen, now).weights)
    place = bucket(value)
    weights[place] = weights.get(place, 0.0) + weight
    return Seen(weights, now)


def percentile(seen: Seen, share: float) -> float | None:
    """The upper bound of the bucket in which the percentile lies; None if nothing was seen."""
    place = _place(seen, share)
    return None if place is None else upper(place)


def at_least(seen: Seen, share: float) -> float:
    """The lower bound of that bucket: what the percentile certainly is; 0 if nothing was seen."""
    return upper((_place(seen, share) or 1) - 1)


def _place(seen: Seen, share: float) -> int | None:
    wanted = share * sum(seen.weights.values())
    total = 0.0
    for place in sorted(seen.weights):
        total += seen.weights[place]
        if total >= wanted - 1e-9:
            return place
    return None


def aged(seen: Seen, now: float) -> Seen:
    """As heavy as it is at this instant; what has faded away is dropped."""
    faded = 0.5 ** (max(0.0, now - seen.at) / HALF_LIFE) if seen.weights else 1.0
    return Seen({place: old * faded for place, old in seen.weights.items() if old * faded > FORGOTTEN}, now)


def bucket(value: float) -> int:
    """The bucket of a number; all below a thousandth share the first."""
    return 0 if value <= 1e-3 else max(0, math.ceil(math.log(value / 1e-3) / math.log(RATIO) - 1e-9))


def upper(place: int) -> float:
    """The largest number in a bucket."""
    return 0.0 if place == 0 else 1e-3 * RATIO**place


class Learned(NamedTuple):
    """What is known of one task."""

    memory: Seen = Seen()  # peak of resident memory, in MB
    cpu: Seen = Seen()  # cores
    run: Seen = Seen()  # seconds
    raised: int = 0  # bytes it asks for at least, after it ran out of memory
    raised_until: float = 0.0

    def memory_request(self, now: float) -> int:
        """Bytes to set aside for the next job of this task."""
        found = percentile(self.memory, MEMORY_SHARE) or 0.0
        return max(int(found * 1e6 * MARGIN), self.raised if now < self.raised_until else 0)

    def memory_for(self, declared: int, now: float) -> int:
        """Bytes to set aside for a job that declares so many: these, unless jobs of its task hold more.

        Against a declaration counts only what was certainly held. The margin and the width of a bucket are
        for tasks that declare nothing: with them a task that declares 500 MB and holds 470 would count as
        539 MB, and only one of its jobs would run in a budget of 1 GB.
        """
        raised = self.raised if now < self.raised_until else 0
        if max(raised, int(at_least(self.memory, MEMORY_SHARE) * 1e6)) <= declared:
            return declared
        return max(declared, self.memory_request(now))

    def cpu_for(self, declared: float) -> float:
        """The same in cores."""
        return declared if at_least(self.cpu, CPU_SHARE) <= declared else max(declared, self.cpu_request())

    def cpu_request(self) -> float:
        """Cores to set aside, in tenths."""
        found = percentile(self.cpu, CPU_SHARE) or 0.0
        return math.ceil(found * 10 - 1e-6) / 10

    def longest(self) -> float | None:
        """How long nearly all of its jobs take."""
        return percentile(self.run, RUN_SHARE)

    def after(self, now: float, *, memory: int, cpu: float | None) -> Learned:
        """A job has ended that held so many bytes at its peak and used so many cores."""
        cpus = self.cpu if cpu is None else see(self.cpu, cpu, now)
        return self._replace(memory=see(self.memory, memory / 1e6, now), cpu=cpus)

    def after_run(self, now: float, run: float) -> Learned:
        """A job has ended well after so many seconds."""
        return self._replace(run=see(self.run, run, now))

    def after_shortage(self, now: float, *, had: int, used: int, double: bool) -> Learned:
        """Memory ran out under a job that was given `had` bytes and was last seen with `used`. If it used
        less, other programs had the rest, and it needs no more than before."""
        wanted = max(int(used * MARGIN) if used > had else 0, 2 * had if double else 0, self.raised)
        seen = see(self.memory, used / 1e6, now) if used else self.memory
        return self._replace(memory=seen, raised=wanted, raised_until=now + RAISED_FOR)

    # --- kept over a restart ------------------------------------------------------------------------------
    def to_value(self, now: float) -> dict[str, Any]:
        """For JSON, as it is at this instant."""
        seen = {name: aged(getattr(self, name), now).weights for name in HISTOGRAMS}
        value: dict[str, Any] = {
            name: [[place, round(weight, 3)] for place, weight in weights.items()]
            for name, weights in seen.items()
            if weights
        }
        if now < self.raised_until:
            value["raised"] = [self.raised, round(self.raised_until - now, 1)]
        return value

    @classmethod
    def from_value(cls, value: Any, now: float, elapsed: float) -> Learned:
        """Read it back so many seconds later; whatever does not look like it is left out."""
        found = value if isinstance(value, dict) else {}
        memory, cpu, run = (aged(_seen(found.get(name), now - elapsed), now) for name in HISTOGRAMS)
        raised: Any = found.get("raised")
        if not _is_pair(raised) or raised[1] <= elapsed:
            return cls(memory, cpu, run)
        left = min(raised[1] - elapsed, RAISED_FOR)
        return cls(memory, cpu, run, raised=int(raised[0]), raised_until=now + left)


HISTOGRAMS = ("memory", "cpu", "run")


def _seen(rows: Any, at: float) -> Seen:
    pairs = [row for row in rows if _is_pair(row)] if isinstance(rows, list) else []
    return Seen(
        {int(place): float(min(weight, HEAVIEST)) for place, weight in pairs if place < MOST_PLACES}, at
    )


def _is_pair(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 2
        and all(isinstance(n, int | float) and not isinstance(n, bool) and 0 <= n < math.inf for n in row)
    )

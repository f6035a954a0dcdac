"""Counts what happens in a simulation: waits, workers, minutes. Never influences it."""

from __future__ import annotations

from array import array

from millpond.rules.scaling.records import Decision
from millpond.simulate.records import Minute, Run, Workload


class Tally:
    """The books of one run."""

    def __init__(self, max_wait: float) -> None:
        self.max_wait = max_wait
        self.waits = array("d")
        self.begun = array("d")  # when each of these began
        self.lost_seconds = 0.0
        self.starts = 0
        self._alive = 0
        self._since = 0.0
        self._worker_seconds = 0.0
        self._reversals = 0
        self._direction = 0
        self._most = 0
        self._decisions = self._held = self._shrunk = 0
        self._minutes: dict[int, list[float]] = {}  # arrivals, worker seconds, begun, late, worst

    def _minute(self, at: float) -> list[float]:
        number = int(at // 60)
        found = self._minutes.get(number)
        if found is None:
            found = self._minutes[number] = [0.0, 0.0, 0.0, 0.0, 0.0]
        return found

    def decision(self, decision: Decision) -> None:
        """The policy has spoken."""
        self._decisions += 1
        self._held += decision.binding == "hold"

    def workers(self, at: float, change: int) -> None:
        """There are more or fewer workers from now on."""
        self._spend(at)
        self._alive += change
        self._most = max(self._most, self._alive)

    def started(self, at: float, count: int) -> None:
        """Workers were started."""
        self.starts += count
        self._turn(1)
        self.workers(at, count)

    def left(self, at: float, is_out: bool) -> None:
        """A worker is gone."""
        self._shrunk += is_out
        self._turn(-1)
        self.workers(at, -1)

    def _turn(self, direction: int) -> None:
        self._reversals += self._direction not in (0, direction)
        self._direction = direction

    def _spend(self, until: float) -> None:
        """Charge the workers there were up to now, minute by minute."""
        at, alive = self._since, self._alive
        while at < until:
            step = min(until, (at // 60 + 1) * 60)
            seconds = alive * (step - at)
            self._minute(at)[1] += seconds
            self._worker_seconds += seconds
            at = step
        self._since = max(self._since, until)

    def _count_jobs(self, arrivals: array[float]) -> None:
        """What arrived and began in each minute."""
        for at in arrivals:
            self._minute(at)[0] += 1
        for at, wait in zip(self.begun, self.waits, strict=True):
            minute = self._minute(at)
            minute[2] += 1
            minute[3] += wait > self.max_wait
            minute[4] = max(minute[4], wait)

    def finished(self, workload: Workload, at: float) -> Run:
        """Close the books: every job has ended."""
        self._spend(at)
        self._count_jobs(workload.arrivals)
        minutes, in_line = [], 0.0
        for number in range(max(self._minutes, default=-1) + 1):
            arrivals, seconds, begun, late, worst = self._minutes.get(number, [0.0] * 5)
            in_line += arrivals - begun
            minutes.append(Minute(number, int(arrivals), seconds / 60, int(in_line), int(late), worst))
        return Run(
            workload=workload.name,
            waits=self.waits,
            worker_seconds=self._worker_seconds,
            busy_seconds=workload.work,
            starts=self.starts,
            reversals=self._reversals,
            most_workers=self._most,
            lost_seconds=self.lost_seconds,
            last_end=at,
            minutes=tuple(minutes),
            decisions=self._decisions,
            held=self._held,
            shrunk_in_outage=self._shrunk,
        )

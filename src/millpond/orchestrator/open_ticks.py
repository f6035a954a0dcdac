"""The ticks whose jobs have not ended: which to look at now, and what the store says about them.

A long run is looked at less often the longer it lasts, unless somebody waits for its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from millpond.job import MICROSECONDS, Instant, Job, JobState
from millpond.orchestrator.tick_ids import tick_id
from millpond.store.protocol import Store

SOONEST = round(0.1 * MICROSECONDS)  # between two looks at a job
LATEST = 2 * MICROSECONDS
PART = 10  # of its age passes until a job is looked at again
MOST = 500  # jobs in one look
MOMENT = 5 * MICROSECONDS  # from letting a tick go to a node's claim, unless something is in its way


class Tick(NamedTuple):
    """A tick by its two names."""

    name: str
    at: Instant


class Watch:
    """Every tick of this planner that has not ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._look_at: dict[Tick, Instant] = {}
        self._of: dict[str, set[Instant]] = {}
        self._begun: set[Tick] = set()
        self._claimed: set[Tick] = set()  # by a node, when last looked at
        self._since: dict[Tick, Instant] = {}

    def __len__(self) -> int:
        return len(self._look_at)

    def __contains__(self, tick: Tick) -> bool:
        return tick in self._look_at

    def add(self, name: str, instants: Iterable[Instant], now: Instant) -> None:
        """Watch these from now on."""
        for at in instants:
            self._look_at.setdefault(Tick(name, at), now)
            self._since.setdefault(Tick(name, at), now)
            self._of.setdefault(name, set()).add(at)

    def drop(self, tick: Tick) -> None:
        """It has ended."""
        self._look_at.pop(tick, None)
        self._since.pop(tick, None)
        self._begun.discard(tick)
        self._claimed.discard(tick)
        others = self._of.get(tick.name, set())
        others.discard(tick.at)
        if not others:
            self._of.pop(tick.name, None)

    def forget(self, name: str) -> None:
        """Watch none of this task."""
        for at in list(self._of.get(name, ())):
            self.drop(Tick(name, at))

    def names(self) -> Collection[str]:
        """The tasks with a tick that has not ended."""
        return self._of.keys()

    def unfinished(self, name: str) -> int:
        """Ticks of a task that were let go and have not ended."""
        return len(self._of.get(name, ()))

    def running(self, name: str) -> int:
        """Ticks of a task that have begun."""
        return sum(Tick(name, at) in self._begun for at in self._of.get(name, ()))

    def waiting(self, name: str) -> int:
        """Ticks of a task that are in line."""
        return self.unfinished(name) - self.running(name)

    def placed(self, name: str, now: Instant) -> int:
        """Ticks of a task that run, or will in a moment."""
        ticks = (Tick(name, at) for at in self._of.get(name, ()))
        return sum(tick in self._claimed or now - self._since[tick] <= MOMENT for tick in ticks)

    def look(self, now: Instant, wanted: Collection[str] = ()) -> list[tuple[Tick, Job | None]]:
        """The jobs of the ticks that are due for a look, and of all the wanted tasks."""
        chosen = [Tick(name, at) for name in wanted for at in self._of.get(name, ())]
        taken = set(chosen)
        for tick, at in self._look_at.items():
            if len(chosen) >= MOST:
                break
            if at <= now and tick not in taken:
                chosen.append(tick)
        found = self._store.get([tick_id(*tick) for tick in chosen]) if chosen else []
        for tick, job in zip(chosen, found, strict=True):
            self._note(tick, job, now)
        return list(zip(chosen, found, strict=True))

    def _note(self, tick: Tick, job: Job | None, now: Instant) -> None:
        age = 0 if job is None else now - job.created_at
        self._look_at[tick] = now + min(LATEST, max(SOONEST, age // PART))
        if job is not None and job.started_at is not None:
            self._begun.add(tick)
        if job is not None and job.state is JobState.RUNNING:
            self._claimed.add(tick)
        else:
            self._claimed.discard(tick)

    def hurry(self) -> None:
        """Look at all of them the next time."""
        self._look_at = dict.fromkeys(self._look_at, 0)

    def next_look(self) -> Instant | None:
        """When to look again."""
        return min(self._look_at.values(), default=None)

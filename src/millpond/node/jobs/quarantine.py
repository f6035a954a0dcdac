"""Ends that the store has not taken though it took others: they wait here, each with its own back-off.

They stay part of what the node holds until the store has taken them or given their jobs to others. When each
is tried again is decided in `rules/jobs/quarantine.py`; nothing here talks to the store. The claim loop
changes it, other threads may look.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Collection, Iterable, Sequence

from millpond.errors import StoreError
from millpond.job import Settlement
from millpond.rules.jobs import quarantine as rules
from millpond.rules.jobs.reconcile import Claim
from millpond.rules.jobs.settle_size import MOST, cut

logger = logging.getLogger("millpond")
MOST_TOLD = 10  # in the node's report and in its record
LOCKED = "another transaction has locked what it must change"


class Isolated:
    """One end that waits by itself."""

    __slots__ = ("error", "is_deferred", "pause", "said", "since", "size", "tried_at", "tries", "warned_at")

    def __init__(self, said: Settlement, size: int, now: float) -> None:
        self.said, self.size, self.since = said, size, now
        self.tries = 0
        self.warned_at = -math.inf
        self.note("", now, 0.0, is_deferred=False)

    def note(self, error: str, now: float, took: float, *, is_deferred: bool) -> None:
        """It was tried in vain."""
        self.tries += bool(error)
        self.error, self.is_deferred, self.tried_at = error, is_deferred, now
        self.pause = rules.pause(max(1, self.tries), took, random.random(), is_deferred=is_deferred)

    def due_at(self, *, hurry: bool) -> float:
        """When it is tried again."""
        return rules.due_at(self.tried_at, self.pause, hurry=hurry)

    def trouble(self) -> str:
        """Why it is here; empty if that is not worth a word."""
        if not rules.is_worth_telling(self.tried_at - self.since, is_deferred=self.is_deferred):
            return ""
        times = "once" if self.tries == 1 else f"{self.tries} times"
        return f"its end cannot be recorded: {self.error}; tried {times}"


class Quarantine:
    """All of them, by claim."""

    def __init__(self) -> None:
        self._kept: dict[Claim, Isolated] = {}
        self.size = 0  # bytes

    def __len__(self) -> int:
        return len(self._kept)

    def claims(self) -> set[Claim]:
        """What waits here."""
        return set(self._kept)

    def add(
        self, said: Settlement, size: int, error: StoreError | None, now: float, took: float = 0.0
    ) -> None:
        """The store has not taken it: it failed alone, or a lock keeps it out (no error)."""
        kept = self._kept[said.id, said.token] = Isolated(said, size, now)
        self.size += size
        self._note(kept, error, now, took)

    def tried(self, said: Iterable[Settlement], error: StoreError | None, now: float, took: float) -> None:
        """The same after another try."""
        for one in said:
            kept = self._kept.get((one.id, one.token))
            if kept is not None:
                self._note(kept, error, now, took)

    def _note(self, kept: Isolated, error: StoreError | None, now: float, took: float) -> None:
        words = LOCKED if error is None else str(error) or type(error).__name__
        kept.note(words, now, took, is_deferred=error is None)
        trouble = kept.trouble()
        if trouble and now - kept.warned_at >= rules.QUIET:
            kept.warned_at = now
            logger.warning("Job %s: %s; it is tried again, the others go on", kept.said.id, trouble)

    def due(self, now: float, *, hurry: bool) -> list[Settlement]:
        """What is sent now: one that failed goes by itself, those that a lock keeps out go all together."""
        ready = [kept for kept in self._kept.values() if kept.due_at(hurry=hurry) <= now]
        if not ready:
            return []
        first = min(ready, key=lambda kept: kept.due_at(hurry=hurry))
        if not first.is_deferred:
            return [first.said]
        deferred = [kept for kept in self._kept.values() if kept.is_deferred]
        return [kept.said for kept in deferred[: cut((kept.size for kept in deferred), MOST)]]

    def next_at(self, *, hurry: bool) -> float:
        """When the next one is due."""
        return min((kept.due_at(hurry=hurry) for kept in self._kept.values()), default=math.inf)

    def remove(self, said: Iterable[Settlement]) -> None:
        """The store has taken these, or does not want them any more."""
        for one in said:
            kept = self._kept.pop((one.id, one.token), None)
            if kept is not None:
                self.size -= kept.size

    def keep_only(self, still: Collection[Claim]) -> None:
        """The store believes that the node still has these; the others it has taken, or given to others."""
        self.remove([kept.said for claim, kept in self._kept.items() if claim not in still])

    def drop_all(self) -> int:
        """The store gave all jobs to others; returns how many ends are not wanted any more."""
        dropped = len(self._kept)
        self._kept, self.size = {}, 0
        return dropped

    def told(self) -> dict[str, str]:
        """Why the first few are here, by job."""
        found: dict[str, str] = {}
        for kept in list(self._kept.values()):
            if len(found) < MOST_TOLD and (trouble := kept.trouble()):
                found[kept.said.id] = trouble
        return found


def split(
    said: Sequence[Settlement], deferred: Sequence[str]
) -> tuple[Sequence[Settlement], Sequence[Settlement]]:
    """Those that the store has answered for good, and those that it wants to be sent again."""
    if not deferred:
        return said, ()
    later = set(deferred)
    return [one for one in said if one.id not in later], [one for one in said if one.id in later]

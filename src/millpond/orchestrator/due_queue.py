"""When to look at which task next: a heap of instants in which only the last word about a task counts."""

from __future__ import annotations

import heapq

from millpond.job import Instant


class Agenda:
    """The tasks that will be due."""

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, str]] = []
        self._at: dict[str, Instant] = {}  # what of the heap still holds

    def clear(self) -> None:
        """Nothing is due any more."""
        self._heap.clear()
        self._at.clear()

    def put(self, name: str, at: Instant) -> None:
        """Look at this task then, and not before."""
        self._at[name] = at
        heapq.heappush(self._heap, (at, name))

    def take(self, now: Instant, most: int) -> list[str]:
        """The tasks that are due, the longest waiting first; each must be put in again."""
        names: list[str] = []
        while self._heap and self._heap[0][0] <= now and len(names) < most:
            at, name = heapq.heappop(self._heap)
            if self._at.get(name) == at:
                del self._at[name]
                names.append(name)
        return names

    def next(self) -> Instant | None:
        """When something is due, at the earliest."""
        return self._heap[0][0] if self._heap else None

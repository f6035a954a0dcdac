"""A simulated pool whose jobs share a budget of memory, cores and tokens.

The same pool as without one; but which of the waiting jobs may begin is said by the budget, a place that
becomes free asks it again, and a policy is told how many workers can have work at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from millpond.simulate.engine import NEVER, Held, Simulation
from millpond.simulate.records import Law, Run, Setting, Workload
from millpond.simulate.room import Room


class Rationed(Simulation):
    """A pool with a budget. Its line is the one in `room`; that of the pool itself stays empty."""

    def __init__(self, workload: Workload, law: Law, setting: Setting) -> None:
        super().__init__(workload, law, setting)
        assert setting.budget is not None
        self.room = Room(setting.budget, workload)

    def run(self) -> Run:
        """Until every job has ended."""
        return super().run()._replace(usage=self.room.usage())

    def _is_over(self) -> bool:
        return super()._is_over() and not self.room.size

    # --- jobs -----------------------------------------------------------------------------------------
    def _line_up(self, held: Held) -> None:
        self.room.add(held, self.now)
        self._serve()
        if self.room.startable(self.now) and (self.eager_at is NEVER or self.eager_at > self.now):
            self.eager_at = max(self.now, self.decided_at + self.eager)

    def _serve(self) -> None:
        """Those who are idle take what may begin; asked after every change, for the books too."""
        while (tasks := self.room.startable(self.now)) and self.idle:
            self.idle.pop()
            self._begin(self.room.begin(tasks[0], self.numbers + 1, self.now))

    def _end(self, number: int) -> None:
        if number in self.running:
            self.room.end(number, self.now - self.running[number][0], self.now)
        super()._end(number)

    def _free(self) -> None:
        super()._free()
        self._serve()

    def _put_back(self, number: int, held: Held) -> None:
        self.room.put_back(number, held, self.now)

    # --- what a policy is told ------------------------------------------------------------------------
    def _in_line(self) -> tuple[int, Mapping[str, int], float]:
        """Those who wait for resources do not wait for workers. Where a cap says so they are told all the
        same: it bounds what is wanted for them, and is the reason that a decision gives. A node sees them
        likewise: in the store's line, unless it has a place free and nothing to claim for it."""
        room = self.room
        if self.idle or self._cap()[0] is None:
            waiting = room.with_room(self.now)
        else:
            waiting = {task: len(line) for task, line in room.lines.items()}
        since = min((room.lines[task][0][1][0] for task in waiting), default=self.now)
        return sum(waiting.values()), waiting, since

    def _cap(self) -> tuple[int | None, str]:
        return self.room.cap(len(self.running), self.limits.most, self.now)

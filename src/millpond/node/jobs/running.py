"""What an exchange carries about jobs that run: which have begun, and how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from millpond.store.protocol import Progress, Started

if TYPE_CHECKING:
    from millpond.node.jobs.claimed_job import JobTask
    from millpond.node.state import NodeState

WATCH = 0.1  # seconds between two looks at which jobs have begun
BEGUN_FOR = 0.05  # seconds after which the store learns that a job has begun; shorter ones just end


class Running:
    """Looks at the pools' running jobs, in the turns of the claim loop."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.look_at = 0.0  # the next look is due

    def begun(self, now: float) -> tuple[list[Started], list[JobTask]]:
        """Jobs that have begun and of which the store does not know it."""
        if now < self.look_at:
            return [], []
        self.look_at = now + WATCH
        tasks = []
        for pool in self._state.pools.values():
            begun = pool.begun() if pool.held else []
            pool.look(begun, now)
            for task, since in begun:
                task.begun_at = since
                if not task.told and not task.disowned and now - since >= BEGUN_FOR:
                    tasks.append(task)
        return [Started(task.job.id, task.job.token) for task in tasks], tasks

    def progress(self) -> list[Progress]:
        """What running jobs have noted since the last exchange."""
        said = []
        for pool in self._state.pools.values():
            if pool.notes:
                notes, pool.notes = pool.notes, {}
                for (job_id, token), data in list(notes.items()):  # the pool may just be adding one
                    task = pool.held.get(job_id)
                    if task is not None and task.job.token == token and not task.disowned:
                        said.append(Progress(job_id, token, data))
        return said

    def keep(self, said: Sequence[Progress]) -> None:
        """Say it again next time, unless the job has told more meanwhile."""
        for pool in self._state.pools.values():
            for one in said:
                if one.id in pool.held:
                    pool.notes.setdefault((one.id, one.token), one.data)

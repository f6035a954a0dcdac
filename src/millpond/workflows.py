"""Chains and groups: jobs that wait for each other, stored in one step, all or none.

They are nothing but `depends_on`: a step begins when those before it have completed; if one of those ends
dead or cancelled, what waits for it is cancelled. Results are not passed along.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from millpond.errors import OptionError
from millpond.handle import JobHandle
from millpond.job import NewJob
from millpond.task import Call
from millpond.units import shown

Step = "Call[Any] | Chain | Group"


class Planned(NamedTuple):
    """Jobs in the order of their steps, with the calls they come from, and those that are waited for."""

    jobs: list[tuple[NewJob, Call[Any]]]
    ends: tuple[str, ...]


class Batch:
    """Steps that are enqueued together."""

    def __init__(self, steps: tuple[Any, ...]) -> None:
        if not steps:
            raise OptionError(
                f"{type(self).__name__.lower()}() needs at least one step, such as task.bind(1)"
            )
        for step in steps:
            if not isinstance(step, Call | Batch):
                raise OptionError(f"a step is task.bind(...), a chain or a group, not {shown(step)}")
        self.steps = steps
        calls = list(self.calls())
        if any(call.task.app is not calls[0].task.app for call in calls):
            raise OptionError("the steps are tasks of different apps: one store cannot wait for another")
        if any(call.options.get("transaction") is not calls[0].options.get("transaction") for call in calls):
            raise OptionError("give every step the same transaction: they are stored in one step")

    def calls(self) -> Iterator[Call[Any]]:
        """Every call, in order."""
        for step in self.steps:
            if isinstance(step, Call):
                yield step
            else:
                yield from step.calls()

    def plan(self, after: tuple[str, ...]) -> Planned:
        """The jobs of the steps, to be run after these."""
        raise NotImplementedError

    def enqueue(self) -> list[JobHandle[Any]]:
        """Store all jobs; returns their handles in the order of the steps."""
        jobs, calls, app, transaction = self._prepared()
        return _handles(app, app.store_jobs(jobs, transaction), calls)

    async def aenqueue(self) -> list[JobHandle[Any]]:
        """The same for async code."""
        jobs, calls, app, transaction = self._prepared()
        return _handles(app, await app.astore_jobs(jobs, transaction), calls)

    def _prepared(self) -> tuple[list[NewJob], list[Call[Any]], Any, object]:
        planned = self.plan(())
        waited_for = {parent for job, _ in planned.jobs for parent in job.depends_on}
        for job, call in planned.jobs:
            if job.unique is not None and job.id in waited_for:
                raise OptionError(
                    f"{call.task.name} is unique and others wait for it: if its key were held, they would "
                    "wait for a job that was never made; make only the last step unique"
                )
        jobs = [job for job, _ in planned.jobs]
        calls = [call for _, call in planned.jobs]
        return jobs, calls, calls[0].task.app, calls[0].options.get("transaction")


class Chain(Batch):
    """Steps one after the other."""

    def plan(self, after: tuple[str, ...]) -> Planned:
        """Each step waits for the one before it."""
        jobs: list[tuple[NewJob, Call[Any]]] = []
        for step in self.steps:
            planned = _planned(step, after)
            jobs += planned.jobs
            after = planned.ends
        return Planned(jobs, after)


class Group(Batch):
    """Steps side by side, and what to do when all have completed."""

    def __init__(self, steps: tuple[Any, ...], then: Any = None) -> None:
        super().__init__(steps if then is None else (*steps, then))
        if not steps:
            raise OptionError("group() needs at least one step besides `then`")
        self._then = then

    def plan(self, after: tuple[str, ...]) -> Planned:
        """Every step waits for the same; `then` waits for them all."""
        side_by_side = self.steps if self._then is None else self.steps[:-1]
        parts = [_planned(step, after) for step in side_by_side]
        jobs = [job for part in parts for job in part.jobs]
        ends = tuple(end for part in parts for end in part.ends)
        if self._then is None:
            return Planned(jobs, ends)
        last = _planned(self._then, ends)
        return Planned(jobs + last.jobs, last.ends)


def chain(*steps: Call[Any] | Chain | Group) -> Chain:
    """Steps one after the other: `chain(fetch.bind(1), parse.bind(1)).enqueue()`."""
    flat = [part for step in steps for part in (step.steps if isinstance(step, Chain) else (step,))]
    return Chain(tuple(flat))  # so that a chain may be made longer step by step, in a loop


def group(*steps: Call[Any] | Chain | Group, then: Call[Any] | Chain | Group | None = None) -> Group:
    """Steps side by side; `then` runs when all have completed."""
    return Group(steps, then)


def _planned(step: Any, after: tuple[str, ...]) -> Planned:
    if isinstance(step, Batch):
        return step.plan(after)
    job = step.new_job(after)
    return Planned([(job, step)], (job.id,))


def _handles(app: Any, stored: list[Any], calls: list[Call[Any]]) -> list[JobHandle[Any]]:
    return [
        JobHandle(app.store, item.id, item.created, call.task.returns)
        for item, call in zip(stored, calls, strict=True)
    ]

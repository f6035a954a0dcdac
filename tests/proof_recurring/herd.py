"""Nodes that plan the same recurring tasks on one store, and the judgement of what they left there."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from millpond.job import WAITING, Job, JobState
from millpond.orchestrator.skip_log import Skipped, log_name
from millpond.orchestrator.tick_ids import tick_id
from millpond.recurring import RecurringTask
from millpond.rules.recurring.cadence import between
from millpond.store.protocol import PAGE, Entry, Filter
from tests.proof_node.fleet import Fleet, Member
from tests.proof_recurring import jobs
from tests.proof_recurring.machines import Machine
from tests.stores.places import address_and_name, place


class Row(NamedTuple):
    """A tick as the store has it."""

    recurring: str
    at: int


class Herd(Fleet):
    """A store and the nodes on it."""

    member = "tests.proof_recurring.member"
    jobs = jobs

    def __init__(self, url: str, folder: Path, **options: Any) -> None:
        super().__init__(url, folder, **options)
        self.here = Machine(self.folder / "clock")  # a file is on one machine, and so are its users
        self.there = self.here if url.startswith("sqlite:") else Machine(self.folder / "clock-there")

    def start_on(self, machine: Machine, *words: str, wait: bool = True) -> Member:
        """One more node, on this machine."""
        self._environment |= machine.environment
        return self.start(*words, wait=wait)

    def said(self) -> str:
        """Also what has not ended."""
        left = self.store.search(Filter(states=tuple(WAITING | {JobState.RUNNING}))).jobs
        return "\n".join(
            [super().said(), *(f"{job.state} {job.task} {job.slots} {job.parked}" for job in left)]
        )

    # --- what is there ----------------------------------------------------------------------------------
    def rows(self) -> list[Row]:
        """Every tick, straight from the tables."""
        return sorted(Row(name, int(at)) for name, at in self._raw_rows())

    def _raw_rows(self) -> Iterator[Any]:
        if self.url.startswith("sqlite:"):
            with apsw.Connection(self.url.removeprefix("sqlite:///")) as file:
                yield from list(file.execute("SELECT recurring, at FROM millpond_ticks"))
        elif self.url.startswith("postgresql:"):
            import psycopg

            address, schema = address_and_name(self.url)
            with psycopg.connect(address) as connection:
                yield from connection.execute(f"SELECT recurring, at FROM {schema}.ticks").fetchall()
        else:
            import redis

            address, namespace = address_and_name(self.url)
            with redis.Redis.from_url(address) as server:
                for key in server.scan_iter(f"*{namespace}*:ticks:*", count=100_000, _type="set"):
                    yield from (member.decode().split("\0") for member in server.smembers(key))

    def ticks(self, task: RecurringTask[..., Any]) -> list[int]:
        """The instants of one task that have a row."""
        return [row.at for row in self.rows() if row.recurring == task.name]

    def ran(self) -> Counter[tuple[str, str]]:
        """How often the job of each tick began and ended, by what it left outside the store."""
        path = self.folder / "runs"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return Counter((what, job) for what, _, job, _, _ in lines)

    def ends(self) -> Counter[str]:
        """How many runs of each task have ended, likewise."""
        return Counter(task for task, _, _ in self.spans())

    def spans(self) -> list[tuple[str, float, float]]:
        """The runs that ended, each with its task, begin and end: also those whose end nobody wanted."""
        began: dict[tuple[str, int], float] = {}
        found = []
        for line in (self.folder / "runs").read_text().splitlines():
            what, task, job, worker, at = json.loads(line)
            if what == "begin":
                began[job, worker] = at
            else:
                found.append((task, began.pop((job, worker)), at))
        return found

    # --- the judgement ----------------------------------------------------------------------------------
    def judge_ticks(self, task: RecurringTask[..., Any]) -> None:
        """Each instant has one row, and a run that completed or a reason why there is none."""
        instants = self.ticks(task)
        assert task.cadence is not None
        assert instants, self.said()
        wanted = between(task.cadence, instants[0] - 1, instants[-1], most=1_000_000)
        explained = self._explained(task)
        known = explained.union(instants)
        missing = [at for at in wanted if at not in known]
        assert not missing, f"{task.name}: {len(missing)} instants without a tick, from {missing[0]}"
        assert set(instants) <= set(wanted), "a tick at an instant that is not in the schedule"
        self._judge_runs(task, instants, explained)

    def _judge_runs(self, task: RecurringTask[..., Any], instants: list[int], explained: set[int]) -> None:
        ran = self.ran()
        for at, job in zip(instants, self._jobs(task, instants), strict=True):
            if job is None:
                assert at in explained, f"{task.name} has no job at {at}, and nobody said why\n{self.said()}"
                continue
            assert job.state is JobState.COMPLETED, (job, self.said())
            assert ran["begin", job.id] >= ran["end", job.id] >= 1, (job, self.said())

    def unfounded(self, task: RecurringTask[..., Any], other: RecurringTask[..., Any]) -> list[Job]:
        """The runs of a task that began without a success of the other since the one before began."""
        ends = sorted(job.finished_at or 0 for job in self.all_jobs(other))
        runs = sorted(self.all_jobs(task), key=_first_start)
        starts = [_first_start(job) for job in runs]
        fresh = [bisect_right(ends, start) for start in starts]  # how many had succeeded by then
        return [job for job, before, now in zip(runs, [0, *fresh], fresh, strict=False) if now == before]

    def all_jobs(self, task: RecurringTask[..., Any]) -> list[Job]:
        """The jobs of all its ticks that ran."""
        return [job for job in self._jobs(task, self.ticks(task)) if job is not None]

    def _jobs(self, task: RecurringTask[..., Any], instants: list[int]) -> list[Job | None]:
        return self.store.get([tick_id(task.name, at) for at in instants])

    def _explained(self, task: RecurringTask[..., Any]) -> set[int]:
        import msgspec

        assert task.cadence is not None
        found: set[int] = set()
        lines: list[Entry] = []
        while part := self.store.log(log_name(task.name), after=lines[-1].number if lines else 0, limit=PAGE):
            lines += part  # these nodes forget none of them
        for line in lines:
            said = msgspec.json.decode(line.data, type=Skipped)
            assert said.reason
            found.add(said.at)
            if said.since is not None:
                found.update(between(task.cadence, said.since - 1, said.at, most=1_000_000))
        return found


def _first_start(job: Job) -> int:
    """Of a lost attempt nobody may know it."""
    known = [attempt.started_at for attempt in job.attempts if attempt.started_at is not None]
    return min(known, default=job.finished_at or 0)


@contextmanager
def herd_on(name: str, folder: Path, **options: Any) -> Iterator[Herd]:
    """A herd on an empty store of this sort."""
    folder = folder / name
    folder.mkdir()
    with place(name, folder) as url, Herd(url, folder, **options) as herd:
        yield herd

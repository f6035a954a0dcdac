"""Nodes as processes on one store, everything that is done to them noted, and the judgement in the end.

The evidence lies outside the store; what a test does to a node goes through here, so that no fault is
forgotten in the notes.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self

import pytest

from millpond.errors import StoreError
from millpond.job import ENDS, Job
from millpond.store.open import open_store
from millpond.store.protocol import Filter
from tests.history import Bug, Evidence, Kind, Rules, finals, judge, read, witnessed
from tests.history.witness import EVERYTHING
from tests.node.stopping import stop
from tests.proof_node import jobs
from tests.stores.places import place

ROOT = Path(__file__).parents[2]
STORES = ("sqlite", "postgres", "redis")
# For what is the node's business alone: the short form on one store will do.
ONE_AT_FIRST = ["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in STORES[1:])]
LONG = 100.0  # seconds after which something is stuck
EXIT = 2.0  # seconds beyond its grace for what is not the node's: the interpreter's exit, on a busy machine
NOTED = 5.0  # seconds in which a node that lives has noted the answer it was given


class Member(NamedTuple):
    """One node process; its label is never used again."""

    label: str
    process: subprocess.Popen[bytes]
    ready: Path
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def workers(self) -> list[int]:
        """The processes two generations down: those under its templates."""
        return [worker for template in children(self.pid) for worker in children(template)]


class Fleet:
    """A store and the nodes on it. `url` is how the tests reach it, `way` how the nodes do."""

    member = "tests.proof_node.member"  # the program that is a node
    jobs: ModuleType = jobs  # its app, and under STORE the name of the variable that says where the store is

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        way: str | None = None,
        lease: float = 5.0,
        grace: float = 20.0,
        environment: Mapping[str, str] | None = None,
        pools: Mapping[str, Any] | None = None,
    ) -> None:
        self.url, self.way, self.lease, self.grace = url, way or url, lease, grace
        self.folder = folder / "evidence"
        self.folder.mkdir(parents=True)
        self.evidence = Evidence(self.folder)
        self.store = witnessed(open_store(url), self.evidence)
        self.store.migrate()
        self.members: list[Member] = []
        self._labels = itertools.count(1)
        self._environment = dict(environment or {})
        if pools is not None:
            self._environment[jobs.POOLS] = json.dumps(pools)

    def __enter__(self) -> Self:
        self.jobs.app.store = self.store
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            if member.process.poll() is None:
                member.process.send_signal(signal.SIGCONT)
                member.process.kill()
            member.process.wait()
        self.store.close()

    # --- nodes ------------------------------------------------------------------------------------------
    def start(self, *words: str, wait: bool = True) -> Member:
        """One more node, told these words; `wait` until it serves."""
        label = f"n{next(self._labels)}"
        ready, log = self.folder / f"{label}.ready", self.folder / f"{label}.log"
        environment = {
            **os.environ,
            **self._environment,
            **self.evidence.environment(label),
            self.jobs.STORE: self.way,
        }
        with log.open("wb") as said:
            process = subprocess.Popen(
                self.command(ready, *words),
                env=environment,
                cwd=ROOT,
                stdout=said,
                stderr=said,
            )
        member = Member(label, process, ready, log)
        self.members.append(member)
        if wait:
            self.until(lambda: self.serves(member), f"{label} serves")
        return member

    def command(self, ready: Path, *words: str) -> list[str]:
        """The program that is a node, with what it is told."""
        return [sys.executable, "-m", self.member, str(self.lease), str(self.grace), str(ready), *words]

    def serves(self, member: Member) -> bool:
        """Has it begun to serve?"""
        return member.ready.exists()

    def kill(self, member: Member) -> None:
        """SIGKILL of the supervisor."""
        self.evidence.kill(member.pid, node=member.label)
        assert member.process.wait(LONG) == -signal.SIGKILL

    @contextmanager
    def stopped(self, member: Member) -> Iterator[None]:
        """SIGSTOP of the supervisor alone, and SIGCONT; its workers go on."""
        with self.evidence.fault(Kind.STOPPED, pid=member.pid, node=member.label):
            try:
                stop(member.pid, self.url)
                yield
            finally:
                member.process.send_signal(signal.SIGCONT)

    @contextmanager
    def frozen(self, member: Member) -> Iterator[None]:
        """SIGSTOP of the supervisor and of everything under it, and SIGCONT."""
        with self.evidence.fault(Kind.FROZEN, pid=member.pid, node=member.label):
            under: list[int] = []
            try:
                stop(member.pid, self.url)
                under = [*children(member.pid), *member.workers()]
                _signal(under, signal.SIGSTOP)
                yield
            finally:
                _signal(under, signal.SIGCONT)
                member.process.send_signal(signal.SIGCONT)

    def terminate(self, member: Member, exit_takes: float = EXIT) -> int:
        """SIGTERM, until it has left, which must be within its grace; returns its exit code."""
        with self.evidence.fault(Kind.TERMINATED, pid=member.pid, node=member.label):
            since = time.monotonic()
            member.process.send_signal(signal.SIGTERM)
            code = member.process.wait(self.grace + LONG)
            took = time.monotonic() - since
        late = f"{member.label} left {took:.2f} s after SIGTERM, and its grace was {self.grace:g} s"
        assert took <= self.grace + exit_takes, f"{late}\n{self.said()}"
        return code

    @property
    def living(self) -> list[Member]:
        """The nodes that have not left."""
        return [member for member in self.members if member.process.poll() is None]

    # --- looking ----------------------------------------------------------------------------------------
    def until(self, question: Callable[[], Any], what: str, bound: float = LONG) -> Any:
        """Ask until the answer is true. A node that left by itself is the end of it."""
        end = time.monotonic() + bound
        while not (answer := question()):
            assert time.monotonic() < end, f"{what}: not within {bound:g} s\n{self.said()}"
            for member in self.members:
                assert self.is_well(member), self.said()
            time.sleep(0.01)
        return answer

    def is_well(self, member: Member) -> bool:
        """Does it live, or has it left as it was asked to, or been killed?"""
        return member.process.poll() in (None, 0, -signal.SIGKILL)

    def said(self) -> str:
        """The last words of every node."""
        return "\n".join(f"{member.label}: {member.log.read_text()[-1500:]}" for member in self.members)

    def in_state(self, *, ended: bool, queue: str | None = None) -> int:
        """How many jobs have ended, or have not; -1 while the store cannot be asked."""
        try:
            counts = self.store.counts()
        except StoreError:
            return -1
        return sum(
            number
            for found in counts.queues
            if queue in (None, found.queue)
            for state, number in found.states.items()
            if (state in ENDS) == ended
        )

    def drained(self, bound: float = LONG) -> dict[str, Job]:
        """Every job, once all of them have ended."""
        self.until(lambda: self.in_state(ended=False) == 0, "the end of all jobs", bound)
        return finals(self.store)

    def judge(self, rules: Rules | None = None, chosen: Filter = EVERYTHING) -> None:
        """Nothing is wrong with this run, as far as its jobs are chosen."""
        rules = rules or Rules(aftermath=2 * self.lease + 5)
        jobs, end = finals(self.store, chosen), time.monotonic() + NOTED
        found = judge(read(self.folder), jobs, rules)
        while any(violation.bug is Bug.UNSEEN for violation in found) and time.monotonic() < end:
            found = judge(read(self.folder), jobs, rules)  # an end is in the store before its line is here
        assert not found, "\n".join([str(violation) for violation in found[:20]] + [self.said()])


@contextmanager
def fleet_on(name: str, folder: Path, **options: Any) -> Iterator[Fleet]:
    """A fleet on an empty store of this sort."""
    folder = folder / name
    folder.mkdir()
    with place(name, folder) as url, Fleet(url, folder, **options) as fleet:
        yield fleet


def _signal(pids: list[int], number: int) -> None:
    """To those of them that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def children(pid: int) -> list[int]:
    """The child processes of a process, or none if it is gone."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except OSError:
            continue
    return found


def resident(pid: int) -> int:
    """Bytes of memory that a process has for itself."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

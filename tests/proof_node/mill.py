"""A fleet of `millpond run`, the program itself, and the server under it; and the ways to do harm to them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from tests.history import Kind
from tests.proof_node.fleet import LONG, Fleet, Member
from tests.proof_stores.test_crowd import locked
from tests.proof_stores.worlds import Server

FEWEST, MOST = 2, 6  # nodes
AWAY = 2.0  # seconds for which a server is down at most
OVERSLEPT = 3.0  # seconds beyond its lease for which a node is stopped at most
POOLS = {"default": {"workers": [1, 2]}, "storm": {"workers": [1, 1]}}


class Mill(Fleet):
    """Nodes as everybody starts them."""

    def command(self, ready: Path, *words: str) -> list[str]:
        own = (f"--lease={self.lease}s", f"--grace={self.grace}s", "--no-health")
        return [sys.executable, "-m", "millpond", "run", "tests.proof_node.jobs:app", *own, *words]

    def serves(self, member: Member) -> bool:
        return "drains within" in member.log.read_text()

    def is_well(self, member: Member) -> bool:
        """One that finds no store when it starts says so and leaves: its service manager starts it again."""
        return super().is_well(member) or member.log.read_text().startswith("millpond: error:")

    def name_the_nodes(self, incarnations: set[str]) -> None:
        """Say in the evidence which process each node id was: the id has the number of its process."""
        for incarnation in incarnations:
            for member in self.members:
                if f"-{member.pid}-" in incarnation:
                    self.evidence.joined(incarnation, member.label)

    def offspring(self) -> list[int]:
        """Processes that were started with this run's evidence in their environment, or by one that was."""
        mark = os.fsencode(self.folder)
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found


def server_has_parts(url: str) -> bool:
    """Is it a PostgreSQL server, with a process for each session?"""
    return url.startswith("postgresql:")


class Harm:
    """What is done to a mill, one deed after the other. Stopped nodes sleep while the next deed is done."""

    def __init__(self, mill: Mill, server: Server | None, draw: Random) -> None:
        self._mill, self._server, self._draw = mill, server, draw
        self._asleep: dict[str, tuple[float, AbstractContextManager[None]]] = {}  # by label: until when
        self.done: list[str] = []

    def do_one(self) -> None:
        """A deed at random; whatever it was, at least two nodes are at work or on their way after it."""
        deeds: tuple[Callable[[], None], ...] = (
            *(self.kill_a_worker, self.kill_a_worker, self.kill_a_node, self.stop_a_node),
            *(self.freeze_a_node, self.end_a_node, self.start_a_node, self.take_the_store_away),
            *((self.kill_a_part_of_the_server,) if server_has_parts(self._mill.url) else ()),
        )
        deed = self._draw.choice(deeds)
        self.done.append(deed.__name__)
        deed()
        while len(self._awake()) < FEWEST:
            self._mill.start(wait=False)
        self.wake(time.monotonic())

    def told(self) -> str:
        """How often what was done."""
        return ", ".join(f"{deed} {number}" for deed, number in sorted(Counter(self.done).items()))

    def wake(self, now: float) -> None:
        """Let those go on that have slept long enough."""
        for label, (until, stop) in list(self._asleep.items()):
            if now >= until:
                del self._asleep[label]
                stop.__exit__(None, None, None)

    def _awake(self) -> list[Member]:
        return [member for member in self._mill.living if member.label not in self._asleep]

    def _victim(self) -> Member | None:
        """A node that serves; a machine that is busy takes a while to start one."""
        found = [member for member in self._awake() if self._mill.serves(member)]
        return self._draw.choice(found) if found else None

    def _put_to_sleep(self, victim: Member, stop: AbstractContextManager[None]) -> None:
        stop.__enter__()
        slept = self._draw.uniform(0.2, self._mill.lease + OVERSLEPT)
        self._asleep[victim.label] = (time.monotonic() + slept, stop)

    # --- deeds ----------------------------------------------------------------------------------------------
    def kill_a_worker(self) -> None:
        victim = self._victim()
        workers = victim.workers() if victim else []
        if workers:
            self._mill.evidence.kill(self._draw.choice(workers))

    def kill_a_node(self) -> None:
        if victim := self._victim():
            self._mill.kill(victim)

    def stop_a_node(self) -> None:
        victim = self._victim()
        if victim and len(self._awake()) > FEWEST:
            self._put_to_sleep(victim, self._mill.stopped(victim))

    def freeze_a_node(self) -> None:
        """With its template and its workers, as when a machine is suspended."""
        victim = self._victim()
        if victim and len(self._awake()) > FEWEST:
            self._put_to_sleep(victim, self._mill.frozen(victim))

    def end_a_node(self) -> None:
        if victim := self._victim():
            assert self._mill.terminate(victim, LONG) == 0, self._mill.said()

    def start_a_node(self) -> None:
        if len(self._mill.living) < MOST:
            self._mill.start(wait=False)

    def kill_a_part_of_the_server(self) -> None:
        """SIGKILL of one of the processes of a PostgreSQL server, which then starts anew by itself."""
        if self._server is not None:
            with self._mill.evidence.fault(Kind.STORE):
                self._server.process.lose_a_process()

    def take_the_store_away(self) -> None:
        """Kill the server, or ask it to go, and start it again; lock a file that no server stands before."""
        with self._mill.evidence.fault(Kind.STORE):
            if self._server is not None:
                self._server.stop(self._draw.choice(("crash", "crash", "orderly")))
                time.sleep(self._draw.uniform(0, AWAY))  # the fault itself, not a wait for something
                self._server.process.start()
            else:
                foreign = locked(Path(urlsplit(self._mill.url).path))
                time.sleep(self._draw.uniform(0, AWAY))  # the same
                foreign.close()


@contextmanager
def mill_on(name: str, folder: Path, **options: Any) -> Iterator[tuple[Mill, Server | None]]:
    """A mill on an empty store with a server of its own."""
    if name == "sqlite":
        with Mill(f"sqlite:///{folder / 'jobs.db'}", folder, pools=POOLS, **options) as mill:
            yield mill, None
        return
    server = Server(name)
    try:
        with Mill(server.url, folder, pools=POOLS, **options) as mill:
            yield mill, server
    finally:
        server.process.server.remove()


def end_all(mill: Mill) -> None:
    """SIGTERM for every node at once; each leaves within its grace, and nothing outlives it."""
    for member in mill.living:
        member.process.send_signal(signal.SIGTERM)
    mill.until(lambda: not mill.living, "every node leaves", mill.grace + LONG)
    mill.until(lambda: not mill.offspring(), "no process stays behind")

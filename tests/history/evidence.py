"""The evidence of a run: lines in files of a folder outside the store, one file for each process.

Every note is one write of whole lines to a file opened for appending, so that a kill tears at most the last
line of the process that died. The file is opened anew for every note: a task that closes every descriptor,
changes its directory or forks must not be able to spoil what others have seen.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from millpond.task_context import Cancel, Snooze, current_job
from tests.history.entries import (
    Acknowledged,
    Attempted,
    Began,
    Breaking,
    Effect,
    Ended,
    Entry,
    Fault,
    Granted,
    How,
    Joined,
    Kind,
    Moment,
    Over,
    Settled,
    Slow,
)

FOLDER, NODE = "MILLPOND_TEST_EVIDENCE", "MILLPOND_TEST_EVIDENCE_NODE"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


def now() -> Moment:
    """The boot clock: one for all processes of the machine, and no one can set it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Evidence:
    """Where this process writes what it saw. It may be carried over a fork."""

    def __init__(self, folder: Path | str, node: str = "") -> None:
        self.folder = Path(folder).absolute()
        self.node = node
        self._mine = (0, "")  # pid and file: set as one, since threads may race to be the first

    @classmethod
    def from_environment(cls) -> Self:
        """For the module of an app: the folder and the node's label come from whoever started the node."""
        return cls(os.environ[FOLDER], os.environ.get(NODE, ""))

    def environment(self, node: str) -> dict[str, str]:
        """What a node process has to be started with. A label is for one process, and never used again."""
        return {FOLDER: str(self.folder), NODE: node}

    def note(self, entries: Iterable[Entry]) -> None:
        """Append lines, by one write."""
        lines = b"".join(_encode(entry) + b"\n" for entry in entries)
        if not lines:
            return
        file = os.open(self._path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            written = os.write(file, lines)
        finally:
            os.close(file)
        if written != len(lines):
            raise OSError(f"only {written} of {len(lines)} bytes of evidence were written")

    def _path(self) -> str:
        """Another pid means that we are a fork, and pids come back: the moment makes the name one's own."""
        pid, path = self._mine
        if pid != os.getpid():
            pid = os.getpid()
            path = str(self.folder / f"{pid}-{now()}.jsonl")
            self._mine = (pid, path)
        return path

    # --- those who enqueue ------------------------------------------------------------------------------
    def attempted(self, *jobs: str) -> None:
        """Before the call that enqueues these."""
        at = now()
        self.note(Attempted(job, at) for job in jobs)

    def acknowledged(self, *jobs: str) -> None:
        """After it returned."""
        at = now()
        self.note(Acknowledged(job, at) for job in jobs)

    # --- the function of a task, in its worker ----------------------------------------------------------
    @contextmanager
    def execution(self) -> Iterator[None]:
        """Around all that the function does: that it began, and how it left."""
        self.began()
        try:
            yield
        except BaseException as error:
            self.ended(_how(error))
            raise
        self.ended(How.RETURNED)

    def began(self) -> None:
        job = current_job()
        self.note([Began(job.id, job.token, job.attempt, self.node, os.getpid(), now())])

    def effect(self) -> None:
        """What the job is for has happened."""
        job = current_job()
        self.note([Effect(job.id, job.token, job.attempt, now())])

    def breaking(self, *, hangs: bool = False) -> None:
        """Before the function ends its own worker, or (`hangs`) runs into its timeout."""
        job = current_job()
        self.note([Breaking(job.id, job.token, os.getpid(), now(), hangs)])

    def ended(self, how: How) -> None:
        job = current_job()
        self.note([Ended(job.id, job.token, how, now())])

    # --- a node -----------------------------------------------------------------------------------------
    def joined(self, incarnation: str, node: str | None = None) -> None:
        """The node of this label is known to the store by this id."""
        self.note([Joined(self.node if node is None else node, incarnation, now())])

    def granted(self, jobs: Iterable[tuple[str, int]], node: str) -> None:
        """A claim returned these jobs with these tokens."""
        at = now()
        self.note(Granted(job, token, node, at) for job, token in jobs)

    def settled(
        self, job: str, token: int, *, node: str, state: str, accepted: bool | None, asked_at: Moment
    ) -> None:
        """After an exchange: what became of a verdict, and when it was sent (`now()` before the call)."""
        self.note([Settled(job, token, node, state, accepted, asked_at, now())])

    def slow(self, asked_at: Moment) -> None:
        """An exchange that was sent then has only now been answered, or has failed."""
        self.note([Slow(self.node, asked_at, now())])

    # --- the one who breaks things ----------------------------------------------------------------------
    @contextmanager
    def fault(self, kind: Kind, *, pid: int | None = None, node: str | None = None) -> Iterator[None]:
        """Around what is done: all of it lies between the two lines, whenever it takes hold."""
        number = uuid.uuid4().hex
        self.note([Fault(number, kind, now(), pid, node)])
        yield
        self.note([Over(number, now())])

    def kill(self, pid: int, node: str | None = None) -> bool:
        """SIGKILL a worker, or the supervisor of the node named; False if it was gone already."""
        with self.fault(Kind.KILLED, pid=pid, node=node):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return False
        return True


def _how(error: BaseException) -> How:
    if isinstance(error, Snooze):
        return How.SNOOZED
    return How.CANCELLED if isinstance(error, Cancel) else How.RAISED


def read(folder: Path | str) -> list[Entry]:
    """All that was seen, in the order of time. Only the last line of a file may be torn."""
    found: list[Entry] = []
    for path in sorted(Path(folder).glob("*.jsonl")):
        *whole, _torn = path.read_bytes().split(b"\n")
        found.extend(_decode(line) for line in whole)
    found.sort(key=lambda entry: entry.at)
    return found

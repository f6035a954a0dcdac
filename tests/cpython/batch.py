"""Run cases in a process group of their own, with a limit for each, and collect their verdicts.

A test that hangs or takes its process down gets that as its verdict; the cases after it run in a
fresh process. Whatever a run leaves alive is found by a mark in its environment, reported, and
killed: only processes started here can carry the mark.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .environment import COMMAND, variables
from .source import Source

LIMIT = 30.0
"""Seconds a single test may take; the longest waits about 7 s when all is well."""
START_LIMIT = 30.0
STACK_AFTER = LIMIT - 5
LEFTOVER_GRACE = 3.0
OUTPUT_KEPT = 6000
CLEAN = "the test process ended with code 0"


@dataclass(frozen=True)
class Verdict:
    outcome: str
    """"passed", "skipped" or "failed"."""
    detail: str = ""
    seconds: float = 0.0


@dataclass
class Batch:
    """Cases of one TestCase class on one kind, and what became of them."""

    target: str
    kind: str
    source: Source
    cases: list[str] = field(default_factory=list)
    aftermath: list[str] = field(default_factory=list)
    """What was wrong after the tests: processes left behind, an exit that hung or failed."""
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _settled: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> None:
        """Run until every case has a verdict, whatever happens."""
        try:
            while waiting := self.waiting():
                _Attempt(self, waiting).run()
        finally:
            for case in self.waiting():
                self.settle(case, Verdict("failed", "the batch could not be run"))

    def waiting(self) -> list[str]:
        """The cases without a verdict."""
        return [case for case in self.cases if case not in self._verdicts]

    def settle(self, case: str, verdict: Verdict) -> None:
        with self._settled:
            self._verdicts[case] = verdict
            self._settled.notify_all()

    def verdict(self, case: str) -> Verdict:
        """What became of a case, as soon as it is known."""
        with self._settled:
            self._settled.wait_for(lambda: case in self._verdicts)
            return self._verdicts[case]


class _Attempt:
    """One process working through the cases that still wait; settles at least one of them."""

    def __init__(self, batch: Batch, waiting: list[str]) -> None:
        self._batch = batch
        self._waiting = waiting
        self._running: str | None = None
        self._since = time.monotonic()
        self._broken = ""
        self._log = Path()
        self._log_from = 0

    def run(self) -> None:
        mark = f"millpond-cpython-{uuid.uuid4().hex}"
        with tempfile.TemporaryDirectory(prefix="millpond-cpython-") as folder:
            self._log = Path(folder, "output")
            reader, writer = os.pipe()
            with open(reader, "rb", buffering=0) as reports, self._log.open("wb") as output:
                process = self._start(folder, mark, writer, output.fileno())
                os.close(writer)
                try:
                    ending = self._follow(process, reports.fileno())
                    if process.returncode is not None:
                        self._batch.aftermath += end_marked(mark, LEFTOVER_GRACE)
                finally:
                    _kill_group(process)
                    end_marked(mark, 0.0)
            self._conclude(ending)

    def _start(self, folder: str, mark: str, writer: int, output: int) -> subprocess.Popen[bytes]:
        batch = self._batch
        process = subprocess.Popen(
            [*COMMAND, "--report", str(writer), "--stack-after", str(STACK_AFTER)],
            env=variables(
                batch.source.folders,
                MILLPOND_CPYTHON_TARGET=batch.target,
                MILLPOND_CPYTHON_KIND=batch.kind,
                MILLPOND_CPYTHON_MARK=mark,
            ),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(writer,),
            start_new_session=True,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as wanted:
            wanted.write(json.dumps(self._waiting).encode())
        return process

    def _follow(self, process: subprocess.Popen[bytes], reports: int) -> str:
        """Read reports until the process ends or a test is over its limit; says how it ended."""
        rest = b""
        while True:
            ended = process.poll() is not None
            readable, _, _ = select.select([reports], [], [], 0 if ended else 0.2)
            if readable and (data := os.read(reports, 65536)):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._heard(json.loads(line))
            elif ended:
                return f"the test process ended with code {process.returncode}"
            elif readable:  # all is told; only the interpreter's exit is left
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LIMIT)
            limit = LIMIT if self._running else START_LIMIT
            if process.poll() is None and time.monotonic() - self._since > limit:
                return f"nothing happened for {limit:.0f} s (a hang)"

    def _heard(self, event: dict[str, str]) -> None:
        now = time.monotonic()
        if event["event"] == "start":
            self._running = event["case"]
            self._log_from = self._log.stat().st_size
        elif event["event"] == "stop":
            self._running = None
            self._settle(event["case"], event["outcome"], event["detail"], now)
        else:
            self._broken = event["detail"]
        self._since = now

    def _conclude(self, ending: str) -> None:
        """Give a verdict to the test that was running, or to all if none could start."""
        now = time.monotonic()
        if self._running is not None:
            self._settle(self._running, "failed", ending, now)
        elif not self._batch.waiting():
            self._batch.aftermath += [] if ending == CLEAN else [f"after the tests {ending}"]
        elif self._batch.waiting() == self._waiting:
            for case in self._waiting:
                self._settle(case, "failed", f"no test could start: {ending}\n{self._broken}", now)

    def _settle(self, case: str, outcome: str, detail: str, now: float) -> None:
        if outcome == "failed":
            detail = f"{detail}\n--- output ---\n{self._output()}"
        self._batch.settle(case, Verdict(outcome, detail, now - self._since))

    def _output(self) -> str:
        """What was printed since the test began, the end of it if long."""
        return self._log.read_bytes()[self._log_from :][-OUTPUT_KEPT:].decode(errors="replace")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_marked(mark: str, grace: float) -> list[str]:
    """Command lines of the marked processes that outlived the grace; they are killed."""
    deadline = time.monotonic() + grace
    while (alive := list(_marked(mark))) and time.monotonic() < deadline:
        _await_exit(alive[0][0], deadline)
    for pid, _ in alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [command for _, command in alive]


def _await_exit(pid: int, deadline: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        finally:
            os.close(descriptor)


def _marked(mark: str) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                yield int(entry.name), command.decode(errors="replace").strip()

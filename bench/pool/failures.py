"""Scenarios in which workers crash, hang, are recycled or are killed.

The wait is always bounded: a pool that would wait for ever is reported, not waited for. Pools are
not closed here, since a broken one may never close; the driver ends what is left.
"""

import os
import select
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import work
from peer import Function, Peer
from sizes import Sizes
from speed import WORKERS
from values import Value, Values, median

PATIENCE = 8.0
TASK_TIMEOUT = 0.5


class Stuck(Exception):
    """The pool gave no answer in time; the text is what the table shows."""


def crash(peer: Peer, sizes: Sizes) -> Values:
    return _crash(peer, sizes, work.exit_sometimes)


def segfault(peer: Peer, sizes: Sizes) -> Values:
    return _crash(peer, sizes, work.segfault_sometimes)


def _crash(peer: Peer, sizes: Sizes, body: Function) -> Values:
    """One task in fifty kills its worker; who else is lost, and how long does it all take?"""
    peer.open(WORKERS)
    peer.submit_all(work.noop, range(50))
    start = time.perf_counter()
    outcomes = peer.outcomes(body, range(sizes.crash), PATIENCE)
    took = time.perf_counter() - start
    innocent = [what for index, what in enumerate(outcomes) if not work.dies(index)]
    return {
        "survived": innocent.count("ok"),
        "innocent": len(innocent),
        "share": innocent.count("ok") / len(innocent),
        "unanswered": outcomes.count("lost"),
        "seconds": took,
    }


def hang(peer: Peer, sizes: Sizes) -> Values:
    """One task in ten hangs; the timeout frees its worker."""
    if not peer.has_timeout:
        return {"seconds": "no task timeout"}
    peer.open(WORKERS)
    peer.submit_all(work.noop, range(50))
    start = time.perf_counter()
    outcomes = peer.outcomes(work.hang_sometimes, range(sizes.hang), PATIENCE, TASK_TIMEOUT)
    took = time.perf_counter() - start
    innocent = [what for index, what in enumerate(outcomes) if not work.hangs(index)]
    hung = len(outcomes) - len(innocent)
    right = innocent.count("ok") == len(innocent) and outcomes.count("timeout") == hung
    if not right:
        counts = {what: outcomes.count(what) for what in sorted(set(outcomes))}
        return {"seconds": f"wrong outcomes: {counts}"}
    return {"seconds": took, "to_ideal": took / (hung * TASK_TIMEOUT / WORKERS)}


def recycle(peer: Peer, sizes: Sizes) -> Values:
    """Every worker is replaced after ten tasks."""
    if not peer.can_recycle:
        return {"seconds": "not offered"}
    peer.open(WORKERS, recycle_after=10)
    start = time.perf_counter()
    outcomes = peer.outcomes(work.noop, range(sizes.recycle), PATIENCE)
    took = time.perf_counter() - start
    done = outcomes.count("ok")
    if done < sizes.recycle:
        return {"seconds": f"hangs, {done} of {sizes.recycle:,} done"}
    return {"seconds": took}


def replace(peer: Peer, sizes: Sizes) -> Values:
    """From a worker's death until a task runs on its replacement, the other worker being busy."""
    ways: dict[str, Callable[[int], object]] = {
        "killed_ms": lambda pid: os.kill(pid, signal.SIGKILL),
        "died_ms": lambda pid: peer.submit(work.die, pid),
    }
    values: dict[str, Value] = {}
    for name, kill in ways.items():
        peer.open(WORKERS)
        peer.submit_all(work.noop, range(50))
        try:
            taken = [_replacement(peer, kill) for _ in range(sizes.replacements)]
            values[name] = median(taken) * 1000
            values[f"{name}_worst"] = max(taken) * 1000
        except Stuck as stuck:
            values[name] = str(stuck)
        except Exception as error:
            values[name] = f"pool broken ({type(error).__name__})"
    return values


def _replacement(peer: Peer, kill: Callable[[int], object]) -> float:
    with (
        tempfile.TemporaryDirectory() as folder,
        NamedPipe(folder, "said") as said,
        NamedPipe(folder, "release") as release,
    ):
        holder = peer.submit(work.hold, (said.path, release.path))
        busy = int(said.read())
        idle, _ = _started(peer, "a task waits behind a busy worker")
        if idle == busy:
            raise ValueError("both tasks ran on one worker")
        begin = time.monotonic()
        kill(idle)
        new, at = _started(peer, "hangs")
        if new in (idle, busy):
            raise ValueError("no new worker")
        release.write(b".")
        peer.result(holder, PATIENCE)
        return at - begin


def _started(peer: Peer, otherwise: str) -> tuple[int, float]:
    handle = peer.submit(work.started, None)
    asked = time.monotonic()
    try:
        pid, at = peer.result(handle, PATIENCE)
    except Exception:
        if time.monotonic() - asked >= PATIENCE - 0.01:
            raise Stuck(otherwise) from None
        raise
    return pid, at


class NamedPipe:
    """Opened for both directions here, so that nobody blocks on opening it."""

    def __init__(self, folder: str, name: str) -> None:
        self.path = str(Path(folder) / name)

    def __enter__(self) -> Self:
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def read(self) -> bytes:
        if not select.select([self._fd], [], [], PATIENCE)[0]:
            raise Stuck("no task starts")
        return os.read(self._fd, 100)

    def write(self, data: bytes) -> None:
        os.write(self._fd, data)

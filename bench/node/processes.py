"""A node under measurement: the processes of a peer, what they cost, and their end.

Only processes that were started here, and their descendants, are ever signalled, each by its id.
"""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import environments
import psutil
from peers import Peer
from places import Place

TASKS = Path(__file__).resolve().parent / "tasks"
LOGS = environments.ROOT / "build" / "bench-node" / "logs"


class NodeUnderTest:
    """The worker processes of one peer, started together."""

    living: ClassVar[set["NodeUnderTest"]] = set()

    def __init__(self, peer: Peer, place: Place, *, safe: bool = False) -> None:
        self.peer, self.place, self.safe = peer, place, safe
        self._commands = peer.safe if safe else peer.best
        self.roots: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self) -> None:
        """Start every command of the peer, each in a session of its own."""
        self.living.add(self)
        LOGS.mkdir(parents=True, exist_ok=True)
        programs = environments.ensure(self.peer.environment)
        for command in self._commands:
            words = [word.format(bin=programs, redis=self.place.url) for word in command]
            with (LOGS / f"{self.peer.name}-{self.peer.store}.log").open("ab") as log:
                self.roots.append(
                    subprocess.Popen(
                        words,
                        env=variables(self.peer, self.place, safe=self.safe),
                        cwd=TASKS,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )

    def processes(self) -> list[psutil.Process]:
        """Every living process of this node."""
        found: dict[int, psutil.Process] = {}
        for root in self.roots:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(root.pid)
                for each in (process, *process.children(recursive=True)):
                    found[each.pid] = each
        return list(found.values())

    def has(self, pid: int) -> bool:
        """Is this one of its processes?"""
        return any(process.pid == pid for process in self.processes())

    def has_ended(self) -> bool:
        """Has one of the commands ended?"""
        return any(root.poll() is not None for root in self.roots)

    def kill(self) -> None:
        """SIGKILL to the roots first, then to whatever was below them; wait for all."""
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for root in self.roots:
            root.wait()
        psutil.wait_procs(processes, timeout=5)
        self.roots = []
        self.living.discard(self)

    @classmethod
    def kill_all(cls) -> None:
        """Leave nothing behind, also when a run is broken off."""
        for node in list(cls.living):
            node.kill()

    def stop(self) -> None:
        """Ask it to end, and make it end."""
        for root in self.roots:
            with contextlib.suppress(ProcessLookupError):
                root.send_signal(signal.SIGTERM)
        psutil.wait_procs(self.processes(), timeout=3)
        self.kill()

    def cpu(self) -> float:
        """CPU seconds so far, also of children that have ended and been waited for."""
        return sum(cpu_of(process, ended=True) for process in self.processes())

    def exact_cpu(self) -> float:
        """CPU seconds of the living to the nanosecond, for what is nearly nothing."""
        total = 0
        for process in self.processes():
            for thread in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
                with contextlib.suppress(OSError):
                    total += int(thread.read_text().split()[0])
        return total / 1e9


def cpu_of(process: psutil.Process, *, ended: bool) -> float:
    """CPU seconds of one process, with or without its children that have ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        below = times.children_user + times.children_system if ended else 0.0
        return float(times.user + times.system + below)
    return 0.0


def server_cpu(process: psutil.Process | None) -> float:
    """CPU seconds of a database server with its children."""
    if process is None:
        return 0.0
    below = sum(cpu_of(child, ended=False) for child in process.children())
    return cpu_of(process, ended=True) + below


def machine_cpu() -> float:
    """CPU seconds that the whole machine has worked."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def variables(peer: Peer, place: Place, *, safe: bool = False) -> dict[str, str]:
    """The environment that a measured program sees."""
    given = {**os.environ, **place.variables, "PYTHONPATH": str(TASKS)}
    given.pop("PYTHONDONTWRITEBYTECODE", None)  # whoever installs a program has its bytecode
    given["BENCH_SETTINGS"] = "safe" if safe else "best"
    if peer.environment == "bullmq":
        given["NODE_PATH"] = str(environments.ensure("bullmq"))
    return given


def feed(peer: Peer, place: Place, *verb: object, safe: bool = False) -> dict[str, Any]:
    """Let the peer's producer do something, to its end."""
    programs = environments.ensure(peer.environment)
    name = peer.environment
    head = ["node", "bullmq_jobs.js"] if name == "bullmq" else [str(programs / "python"), f"{name}_jobs.py"]
    done = subprocess.run(
        [*head, *(str(word) for word in verb)],
        env=variables(peer, place, safe=safe),
        cwd=TASKS,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{peer.key} {verb}: {done.stderr[-2000:]}")
    lines = done.stdout.strip().splitlines()
    return dict(json.loads(lines[-1])) if lines else {}

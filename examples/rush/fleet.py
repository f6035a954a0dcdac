"""The processes of the rush: two nodes, and the servers they talk to. Starts, watches, kills and ends them.

Nodes are ordinary `millpond run` commands. Whatever was started here is gone when `Fleet` has been left,
however it is left.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import IO, Self

import psutil

START_WITHIN = 60.0
STOP_WITHIN = 30.0
_WORKERS = re.compile(
    r'^millpond_pool_workers\{pool="([\w.-]+)",state="(idle|busy|draining)"\} ([\d.e+]+)', re.MULTILINE
)
_RESCUED = re.compile(r"^millpond_node_rescued_jobs_total ([\d.e+]+)", re.MULTILINE)


class NodeProcess:
    """A `millpond run` in a process of its own, with its log in a file."""

    def __init__(self, name: str, folder: Path, lease: float) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._answer = folder / f"{name}.json"
        self.rescued = 0.0
        self.address: str | None = None
        command = [
            sys.executable,
            "-m",
            "millpond",
            "run",
            "examples.rush.tasks:app",
            "--lease",
            f"{lease:g}s",
        ]
        command += ["--health", "127.0.0.1:0", "--open-metrics", "--json", "--grace", "20s"]
        with self._answer.open("w") as answer, self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the rush, which ends its nodes in order
            )
        self.family = [psutil.Process(self.process.pid)]

    @property
    def is_alive(self) -> bool:
        """Has it not ended yet?"""
        return self.process.poll() is None

    @property
    def is_ready(self) -> bool:
        """Has it said what it serves?"""
        if self.address is None and self.is_alive:
            with contextlib.suppress(ValueError):  # not, or not wholly written yet
                self.address = json.loads(self._answer.read_text())["health"]
        return self.address is not None

    def wait_until_ready(self, pools: int) -> None:
        """Until each pool has a worker. Raises RuntimeError with the end of its log if none comes."""
        end = time.monotonic() + START_WITHIN
        while not self.is_ready or len(self.workers()) < pools:
            if not self.is_alive or time.monotonic() > end:
                raise RuntimeError(f"{self.name} did not start: {self.log.read_text()[-2000:]}")
            time.sleep(0.1)

    def workers(self) -> Counter[str]:
        """How many workers each pool has, by the node's own metrics."""
        found: Counter[str] = Counter()
        if not self.is_ready or not self.is_alive:
            return found
        try:
            with urllib.request.urlopen(f"{self.address}/metrics", timeout=2) as answer:
                page = answer.read().decode()
        except OSError:  # killed this very moment, or too busy to answer
            return found
        for pool, _state, number in _WORKERS.findall(page):
            found[pool] += int(float(number))
        if match := _RESCUED.search(page):
            self.rescued = float(match[1])
        return +found

    def worker_processes(self) -> list[psutil.Process]:
        """Workers are the children of the node's templates."""
        found: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            for template in self.family[0].children():
                self._remember(template)
                with contextlib.suppress(psutil.NoSuchProcess):
                    found += template.children()
        for worker in found:
            self._remember(worker)
        return found

    def _remember(self, process: psutil.Process) -> None:
        if process not in self.family:
            self.family.append(process)


class Fleet:
    """All processes, from the first to the last."""

    def __init__(self, folder: Path, dice: random.Random, lease: float) -> None:
        self.folder = folder
        self.nodes: list[NodeProcess] = []
        self.ports: dict[str, int] = {}
        self.exit_codes: dict[str, int] = {}
        self._dice = dice
        self._lease = lease
        self._sinks: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def start_sinks(self) -> None:
        """They end by themselves when their standard input does: when this process is gone."""
        self._sinks = subprocess.Popen(
            [sys.executable, "-m", "examples.rush.sinks", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        answer: IO[str] | None = self._sinks.stdout
        assert answer is not None
        self.ports = json.loads(answer.readline())

    def start_node(self) -> NodeProcess:
        """One more."""
        node = NodeProcess(f"node-{len(self.nodes) + 1}", self.folder, self._lease)
        self.nodes.append(node)
        return node

    @property
    def alive(self) -> list[NodeProcess]:
        """The nodes that run."""
        return [node for node in self.nodes if node.is_alive]

    def workers(self) -> Counter[str]:
        """How many workers each pool has, on all nodes."""
        total: Counter[str] = Counter()
        for node in self.alive:
            total += node.workers()
            node.worker_processes()
        return total

    # --- breaking things ----------------------------------------------------------------------------------
    def kill_a_worker(self) -> str | None:
        """SIGKILL to a random worker; returns what was done."""
        choices = [(node, worker) for node in self.alive for worker in node.worker_processes()]
        if not choices:
            return None
        node, worker = self._dice.choice(choices)
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.send_signal(signal.SIGKILL)
        return f"killed worker {worker.pid} of {node.name}"

    def kill_a_node(self) -> str:
        """SIGKILL to the oldest node, with all it holds."""
        node = self.alive[0]
        node.worker_processes()
        node.process.kill()
        node.process.wait()
        return f"killed {node.name} with all its workers"

    # --- ending -------------------------------------------------------------------------------------------
    def drain(self) -> None:
        """SIGTERM, and wait: a node that drains ends with 0."""
        for node in self.alive:
            node.wait_until_ready(0)  # before it is, SIGTERM just ends it
            node.process.terminate()
            self.exit_codes[node.name] = -1
        end = time.monotonic() + STOP_WITHIN
        for node in self.nodes:
            if node.name in self.exit_codes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.exit_codes[node.name] = node.process.wait(max(0.0, end - time.monotonic()))

    def left(self) -> list[int]:
        """Processes of nodes that should be gone, after a moment in which the kernel may take them away."""
        family = [process for node in self.nodes for process in node.family]
        return [process.pid for process in psutil.wait_procs(family, timeout=5)[1]]

    def __exit__(self, *_: object) -> None:
        """Whatever still runs is killed. Another Ctrl-C does not keep it from that; it takes a moment."""
        patience = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for node in self.nodes:
            node.worker_processes()  # to know whom to wait for
            node.process.kill()
            node.process.wait()
        if self._sinks is not None:
            assert self._sinks.stdin is not None
            assert self._sinks.stdout is not None
            self._sinks.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._sinks.wait(5)
            self._sinks.kill()
            self._sinks.wait()
            self._sinks.stdout.close()
        self.left()
        signal.signal(signal.SIGINT, patience)

"""The programs that the browser tests look at: a real node and a real dashboard, as processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.node.waiting import until

TARGET = "shop:app"


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Site:
    """A project in a folder of its own: the shop, its store, its tokens, and where its dashboard is."""

    def __init__(self, folder: Path, *, installed: Path | None = None) -> None:
        self.folder = folder
        self.installed = installed  # where another Millpond than this tree's is
        self.store = f"sqlite:///{folder}/shop.db"
        shutil.copy(Path(__file__).with_name("shop.py"), folder)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"

    def environment(self) -> dict[str, str]:
        """What the processes are started with."""
        return {
            **os.environ,
            **({} if self.installed is None else {"PYTHONPATH": str(self.installed)}),
            "MILLPOND_STORE": "sqlite:///shop.db",
            "XDG_STATE_HOME": str(self.folder / "state"),
        }

    def token(self, scope: str = "admin") -> str:
        """The token that the dashboard generated."""
        document = json.loads((self.folder / "state" / "millpond" / "dashboard.json").read_text())
        return str(document[scope]["token"])

    def is_up(self) -> bool:
        """Does the dashboard answer?"""
        try:
            with urllib.request.urlopen(f"{self.url}readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @contextmanager
    def node(self) -> Iterator[subprocess.Popen[bytes]]:
        """A node that runs the shop's jobs."""
        with self._process("run", TARGET, "--no-health", "--grace", "2s") as process:
            yield process

    @contextmanager
    def dashboard(
        self, host: str = "127.0.0.1", *, stderr: IO[bytes] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """The dashboard, once it answers."""
        words = ("dashboard", TARGET, "--listen", f"{host}:{self.port}")
        with self._process(*words, stderr=stderr) as process:
            until(lambda: self.is_up() or process.poll() is not None, "the dashboard answering")
            assert process.poll() is None, "the dashboard ended at once"
            yield process

    @contextmanager
    def node_with_dashboard(self, stderr: IO[bytes] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """A node with the dashboard beside it, once that answers."""
        beside = ("--dashboard", "--listen", f"127.0.0.1:{self.port}")
        with self._process("run", TARGET, "--no-health", "--grace", "2s", *beside, stderr=stderr) as process:
            until(lambda: self.is_up() or process.poll() is not None, "the dashboard answering")
            yield process

    @contextmanager
    def _process(self, *words: str, stderr: IO[bytes] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "millpond", *words, "--log-level", "error"]
        process = subprocess.Popen(
            command, env=self.environment(), cwd=self.folder, stdout=subprocess.DEVNULL, stderr=stderr
        )
        try:
            yield process
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End it in good order, or not."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()

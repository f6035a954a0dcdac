"""One real server as a child: a folder of its own, a free loopback port, an end with the test process.

It is waited for by asking it, never by a guess; if it does not come up, its own words are in the error.
"""

from __future__ import annotations

import atexit
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

LAUNCH = Path(__file__).with_name("launch.py")
PATIENCE = 30.0  # seconds a server may take to answer
# Below those that the kernel gives to connections, so that none takes a port before its server does; a Redis
# Cluster also needs the port 10,000 above.
PORTS = range(12_000, 22_000)


class Missing(Exception):
    """The server's program is not on this machine; the text says what to install."""


def free_port() -> int:
    """A loopback port that nobody listens on, nor on its cluster bus."""
    while True:
        port = random.choice(PORTS)
        if _is_free(port) and _is_free(port + 10_000):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def unprivileged() -> tuple[int, int]:
    """A user for servers that refuse root; (-1, -1) if we are not root ourselves."""
    if os.geteuid() != 0:
        return -1, -1
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise Missing("root may not run PostgreSQL, and there is no user `postgres` or `nobody` to run it as")


def wait_until(holds: Callable[[], bool], else_: str) -> None:
    """Ask until it holds; RuntimeError with these words if it does not."""
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            raise RuntimeError(else_)
        time.sleep(0.02)


class Server:
    """A child process and its folder."""

    def __init__(self, name: str, user: tuple[int, int] = (-1, -1), ending: int = signal.SIGKILL) -> None:
        self.name, self.user, self.ending = name, user, ending
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"millpond-{name}-"))
        if user[0] >= 0:
            os.chown(self.folder, *user)
        self.process: subprocess.Popen[bytes] | None = None
        self._words = (self.folder / "output").open("wb")
        atexit.register(self.remove)

    def start(self, command: Sequence[str], answers: Callable[[], bool]) -> None:
        """Run the program and wait until it answers."""
        self.process = subprocess.Popen(
            self.wrapped(command),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._words,
            stderr=self._words,
        )
        until = time.monotonic() + PATIENCE
        while not answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{self.name} did not come up: {self.said()}")
            time.sleep(0.01)

    def run(self, command: Sequence[str]) -> None:
        """Run a program of the server to its end, as the server's user."""
        done = subprocess.run(
            self.wrapped(command), cwd=self.folder, stdout=self._words, stderr=self._words, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {self.said()}")

    def wrapped(self, command: Sequence[str]) -> list[str]:
        """The command as a child that dies with us."""
        head = [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), str(int(self.ending))]
        return [*head, *(str(number) for number in self.user), *command]

    def said(self) -> str:
        """The end of what the server has printed."""
        return (self.folder / "output").read_text(errors="replace")[-2000:]

    def stop(self, how: int | None = None) -> None:
        """End it; its folder stays, so that it can be started again."""
        if self.process is not None:
            self.process.send_signal(self.ending if how is None else how)
            self.process.wait(PATIENCE)
            self.process = None

    def remove(self) -> None:
        """End it and delete what it wrote."""
        atexit.unregister(self.remove)
        self.stop()
        self._words.close()
        shutil.rmtree(self.folder, ignore_errors=True)

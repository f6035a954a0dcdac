"""The dashboard beside a node: a process of its own, started again when it dies, ended with the node.

The socket is opened before the node starts and kept here: a port that cannot be had is told at once, and a
dashboard that had to be started again listens where it did. Nothing it does can disturb the node.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
import time

logger = logging.getLogger("millpond.node")
FIRST, LONGEST = 1.0, 60.0  # seconds before it is started again: doubled each time, up to a minute
WELL = 30.0  # seconds after which it counts as having started well
ENDING = 2.0  # seconds for it to end


class Sidecar:
    """Keeps one dashboard running from `start()` to `stop()`."""

    def __init__(self, listener: socket.socket, arguments: list[str]) -> None:
        self._listener = listener
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it, and whoever looks after it."""
        self._launch()
        self._thread = threading.Thread(target=self._look_after, name="millpond-dashboard", daemon=True)
        self._thread.start()

    def _launch(self) -> subprocess.Popen[bytes]:
        handed = [str(self._listener.fileno()), str(os.getpid())]
        command = [
            sys.executable,
            "-m",
            "millpond.cli.dashboard_process",
            *handed,
            "dashboard",
            *self._arguments,
        ]
        with self._lock:
            if self._ended.is_set():
                raise OSError("the node stops")
            self._process = subprocess.Popen(
                command,
                pass_fds=[self._listener.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the node, which ends it when it has drained
            )
            return self._process

    def _look_after(self) -> None:
        delay = FIRST
        while not self._ended.is_set():
            process, began = self._process, time.monotonic()
            assert process is not None
            code = process.wait()
            if self._ended.is_set():
                return
            delay = FIRST if time.monotonic() - began >= WELL else min(LONGEST, delay * 2)
            logger.error("the dashboard ended with code %d; it is started again in %g s", code, delay)
            while not self._ended.wait(delay):
                try:
                    self._launch()
                    break
                except OSError as error:
                    logger.error("the dashboard cannot be started: %s", error)

    def stop(self) -> None:
        """End it: asked first, then made to."""
        with self._lock:
            self._ended.set()
            process = self._process
        self._listener.close()
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(ENDING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(descriptor: str, parent: str, *arguments: str) -> None:
    """Be the dashboard, on a socket that the node's process has opened."""
    from millpond.cli import main as millpond
    from millpond.cli.commands import dashboard

    dashboard.handed = dashboard.Handed(int(descriptor), int(parent))
    millpond(arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What systemd is told: ready, reloading, stopping, still alive, and a line for `systemctl status`.

The protocol of sd_notify(3): lines in a datagram to the socket named by NOTIFY_SOCKET. Without it every call
does nothing. A manager that is slow or gone never disturbs the node: nothing here raises or waits long.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import unicodedata
from collections.abc import MutableMapping

PATIENCE = 1.0  # seconds for a full socket
SLACK = 5.0  # beyond `grace`, for the process to leave
VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
log = logging.getLogger(__name__)


class Notifier:
    """The way to the service manager. Takes the variables away: they are not meant for jobs."""

    def __init__(self, environment: MutableMapping[str, str] | None = None) -> None:
        given = os.environ if environment is None else environment
        address, interval, pid = (given.pop(name, "") for name in VARIABLES)
        self._address = _address(address)
        self.every = _watchdog(interval, pid) if self._address else None  # seconds between signs of life
        self._told = ""

    def ready(self, status: str = "") -> None:
        """The node serves; also after a reload."""
        self._send("READY=1", *_status(status))

    def reloading(self) -> None:
        """A reload begins; `ready` ends it. The instant tells the manager which reload is meant."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, within: float, status: str = "") -> None:
        """The end has begun, and takes up to so many seconds, whatever TimeoutStopSec says."""
        microseconds = int((within + SLACK) * 1_000_000)
        self._send("STOPPING=1", f"EXTEND_TIMEOUT_USEC={microseconds}", *_status(status))

    def alive(self) -> None:
        """A sign of life, due every `every` seconds."""
        if self.every is not None:
            self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """What `systemctl status` shows; sent only when it changed."""
        if text != self._told:
            self._told = text
            self._send(*_status(text))

    def _send(self, *lines: str) -> None:
        if self._address is None or not lines:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(PATIENCE)
                sock.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:  # nobody listens, a path too long, no descriptor left
            log.debug("the service manager could not be told %s: %s", lines[0], error)


def _address(text: str) -> str | None:
    """A path, or a name in the abstract namespace; other families are for virtual machines."""
    if text.startswith("@"):
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _watchdog(interval: str, pid: str) -> float | None:
    """Half of what the manager waits, if it waits for this process."""
    if not interval.isascii() or not interval.isdigit() or int(interval) == 0:
        return None
    if pid and pid != str(os.getpid()):
        return None
    return int(interval) / 2_000_000


def _status(text: str) -> tuple[str, ...]:
    """One line: a line break would begin another message."""
    safe = "".join(
        " " if unicodedata.category(character).startswith("C") else character for character in text
    )
    return (f"STATUS={safe[:500]}",) if text else ()

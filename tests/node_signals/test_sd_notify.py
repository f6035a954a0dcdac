"""What the service manager hears, on real sockets; and that nobody listening disturbs nobody."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond.node.process.sd_notify import Notifier
from tests.node_signals.programs import clean_environment, stand_in


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """The address for NOTIFY_SOCKET, and the manager's end."""
    name = (
        str(tmp_path / "n") if request.param == "path" else f"@millpond-{os.getpid()}-{time.monotonic_ns()}"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + name[1:] if name.startswith("@") else name)
        sock.settimeout(40)
        yield name, sock


def heard(sock: socket.socket) -> list[str]:
    return sock.recv(65_536).decode().split("\n")


def test_each_message_has_its_lines(manager):
    address, sock = manager
    notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000"})
    notifier.ready("running")
    assert heard(sock) == ["READY=1", "STATUS=running"]
    notifier.stopping(25.0, "draining")
    assert heard(sock) == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=30000000", "STATUS=draining"]
    notifier.alive()
    assert heard(sock) == ["WATCHDOG=1"]
    before = time.monotonic_ns() // 1000
    notifier.reloading()
    kind, instant = heard(sock)
    assert kind == "RELOADING=1"
    assert before <= int(instant.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


def test_a_status_is_told_when_it_changed_and_cannot_forge_a_message(manager):
    address, sock = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    notifier.status("3 run")
    notifier.status("3 run")
    notifier.status("away: x\nREADY=1\r\0")
    assert heard(sock) == ["STATUS=3 run"]
    assert heard(sock) == ["STATUS=away: x READY=1  "]
    sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        sock.recv(1)


@pytest.mark.parametrize(
    ("variables", "every"),
    [
        ({"WATCHDOG_USEC": "20000000"}, 10.0),
        ({"WATCHDOG_USEC": "20000000", "WATCHDOG_PID": str(os.getpid())}, 10.0),
        ({"WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_answered_twice_as_often_as_asked(variables, every):
    environment = {"NOTIFY_SOCKET": "/nowhere/at/all", **variables}
    assert Notifier(environment).every == every
    assert not environment, "jobs must not find the variables"


@pytest.mark.parametrize(
    "address", ["", "relative", "vsock:2:1234", "/nowhere/at/all", "/" + "x" * 500, "@" + "x" * 500]
)
def test_a_manager_that_cannot_be_reached_disturbs_nobody(address):
    notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"})
    notifier.ready()
    notifier.reloading()
    notifier.alive()
    notifier.status("x")
    notifier.stopping(1.0)


def test_a_process_tells_its_whole_life(manager):
    address, sock = manager
    environment = clean_environment(NOTIFY_SOCKET=address, WATCHDOG_USEC="200000")
    with stand_in(env=environment) as node:
        assert heard(sock) == ["READY=1", "STATUS=running: 0 jobs run, 0 wait"]
        while heard(sock) != ["WATCHDOG=1"]:
            pass
        node.send(signal.SIGHUP)
        lines = until(sock, "RELOADING=1")
        assert re.fullmatch(r"MONOTONIC_USEC=[0-9]+", lines[1])
        until(sock, "READY=1")
        node.send(signal.SIGTERM)
        assert "EXTEND_TIMEOUT_USEC=12000000" in until(sock, "STOPPING=1")  # grace was reloaded: 7 s
        node.tell("stop")
        assert node.code() == 0


def until(sock: socket.socket, first: str) -> list[str]:
    while (lines := heard(sock))[0] != first:
        pass
    return lines

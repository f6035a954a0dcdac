"""The dashboard as a process of its own, and raw sockets to talk to it with."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]


class Served(NamedTuple):
    process: subprocess.Popen[bytes]
    document: dict[str, Any]
    admin: str

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.document["dashboard"].split("//")[1].strip("/").rpartition(":")
        return host.strip("[]"), int(port)

    def connect(self, source: str = "") -> socket.socket:
        """A connection, on loopback from any address of it."""
        return socket.create_connection(
            self.address, timeout=20, source_address=(source, 0) if source else None
        )

    def ask(self, head: str, body: bytes = b"") -> bytes:
        """Send a request as it stands; the whole answer."""
        with self.connect() as connection:
            connection.sendall(self.head(head) + body)
            with contextlib.suppress(ConnectionError):
                return b"".join(iter(lambda: connection.recv(65_536), b""))
        return b""

    def post(self, path: str, document: Any) -> bytes:
        """Ask for a change as the admin."""
        body = json.dumps(document).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nAuthorization: Bearer {self.admin}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}"
        )
        return self.ask(head, body)

    def head(self, text: str) -> bytes:
        host, port = self.address
        return f"{text}\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()


def environment(folder: Path, url: str) -> dict[str, str]:
    """Variables for the command: tokens and store of the test alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MILLPOND_")}
    return {
        **kept,
        "XDG_STATE_HOME": str(folder / "state"),
        "MILLPOND_TEST_API_STORE": url,
        "PYTHONPATH": str(ROOT),
    }


@contextlib.contextmanager
def command(folder: Path, url: str, *words: str) -> Iterator[Served]:
    """Run a command that prints a document and serves a dashboard; killed in the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "millpond", *words, "--json"],
        stdout=subprocess.PIPE,
        env=environment(folder, url),
        cwd=folder,
    )
    try:
        yield Served(process, _document(process), token(folder))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def token(folder: Path) -> str:
    content = json.loads((folder / "state" / "millpond" / "dashboard.json").read_text())
    return str(content["admin"]["token"])


def _document(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The document at the start of what it prints."""
    assert process.stdout is not None
    text = b""
    for line in process.stdout:
        text += line
        if line.rstrip() == b"}":
            return dict(json.loads(text))
    raise AssertionError(f"it ended with {process.wait()} and printed {text!r}")


@contextlib.contextmanager
def dashboard(folder: Path, *words: str) -> Iterator[Served]:
    url = f"sqlite:///{folder / 'jobs.db'}"
    with command(
        folder, url, "dashboard", "tests.api.program:app", "--listen", "127.0.0.1:0", *words
    ) as served:
        yield served

"""`millpond top` as a command: once, as JSON, in a real terminal, and where something is missing."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.testing import CliRunner

from millpond import App
from millpond.cli import main
from tests.cli.conftest import add_dead_job
from tests.servers.redis import Redis, program
from tests.top.test_screen import HOSTILE

LEAN = """
import sys
for name in ("textual", "fastapi", "starlette", "pydantic"):
    sys.modules[name] = None
from millpond.cli import main
main(sys.argv[1:])
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = f"sqlite:///{tmp_path / 'jobs.db'}"
    app = App(found)
    app.task(name="send", queue="mail")(lambda: None).enqueue()
    add_dead_job(app.store, HOSTILE, task="resize", queue="images")
    app.store.close()
    return found


def lean(*args: str) -> subprocess.CompletedProcess[str]:
    """The command where neither the extra for the screen nor the one for the web is installed."""
    return subprocess.run(
        [sys.executable, "-c", LEAN, *args], capture_output=True, text=True, timeout=50, check=False
    )


def test_once_prints_tables_and_needs_no_extra(url):
    done = lean("top", "--once", "--store", url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 queued, 0 running")
    assert "QUEUES" in done.stdout
    assert "no node runs: start one with `millpond run`" in done.stdout
    assert r"\x1b]0;title" in done.stdout
    assert all(character.isprintable() or character == "\n" for character in done.stdout)


def test_as_json_it_is_one_document_with_all_lists(url):
    result = CliRunner().invoke(main, ["top", "--json", "--store", url])
    found = json.loads(result.stdout)
    assert {queue["queue"] for queue in found["queues"]} == {"images", "mail"}
    assert found["dead"][0]["task"] == "resize"
    assert found["workers"] == []
    assert found["recurring_tasks"] is None


def test_without_a_terminal_it_says_what_to_do(url):
    result = CliRunner().invoke(main, ["top", "--store", url])
    assert result.exit_code == 2
    assert "--once or --json" in result.stderr


def test_a_store_in_memory_is_refused():
    result = CliRunner().invoke(main, ["top", "--once", "--store", "memory://"])
    assert result.exit_code == 1
    assert "only its own process can see" in result.stderr


def test_a_store_that_is_away_is_an_exit_code(tmp_path):
    result = CliRunner().invoke(main, ["top", "--once", "--store", "redis://127.0.0.1:1/0"])
    assert result.exit_code == 69


# --- in a terminal ---------------------------------------------------------------------------------------
def on_terminal(code: list[str], until: bytes, keys: bytes) -> tuple[int, bytes]:
    """Run on a terminal of 80 by 24, press keys once something was written; returns the exit code and all."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    program = subprocess.Popen(
        [sys.executable, *code], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 65536):
            written += piece
            if keys and until in written:
                os.write(ours, keys)
                keys = b""
    except OSError:  # EIO: the last writer has gone
        pass
    os.close(ours)
    return program.wait(timeout=50), written


def test_in_a_terminal_it_draws_until_q_and_puts_the_screen_back(url):
    code, written = on_terminal(["-m", "millpond", "top", "--store", url], b"images", b"58q")
    assert code == 0, written[-2000:]
    assert written.startswith(b"\x1b[?1049h")
    assert b"\x1b[?1049l" in written
    assert b"title\x07" not in written
    assert "\u202e".encode() not in written


def test_without_the_extra_it_says_how_to_get_it(url):
    code, written = on_terminal(["-c", LEAN, "top", "--store", url], b"", b"")
    assert code == 1
    assert b"pip install 'millpond[tui]'" in written


def test_a_store_that_never_answers_keeps_nobody_from_leaving():
    server = Redis(program("redis-server", "valkey-server"))
    try:
        assert server.server.process is not None
        os.kill(server.server.process.pid, signal.SIGSTOP)
        code, written = on_terminal(
            ["-m", "millpond", "top", "--store", server.url], b"store away since", b"q"
        )
        assert code == 0, written[-2000:]
        assert b"\x1b[?1049l" in written
    finally:
        server.server.remove()

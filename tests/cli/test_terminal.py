"""What people see on a real terminal, wide or narrow, whatever the jobs say."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from millpond import App
from tests.cli.conftest import URL

HOSTILE = "\x1b]0;title\x07\x1b[2J\x1b[31mred\u202e\x9b31m\x7f\r\n\u2028[bold]b[/bold]漢字"
BOLD = re.compile("\x1b\\[[01]m")


def on_terminal(columns: int, *args: str) -> str:
    """What the command writes on a terminal of that width, without the bold of its headings."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"}
    environment.pop("COLUMNS", None)
    command = [sys.executable, "-m", "millpond", "--store", URL, *args]
    program = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 65536):
            written += piece
    except OSError:  # EIO: the last writer has gone
        pass
    os.close(ours)
    assert program.wait(timeout=50) == 0, written
    return BOLD.sub("", written.decode()).replace("\r\n", "\n")


@pytest.fixture
def job_id(folder):
    app = App(URL)

    @app.task(name="hostile")
    def hostile(text: str) -> None: ...

    handle = hostile.using(unique="k\x1b[31m").enqueue(HOSTILE)
    app.store.close()
    return handle.id


@pytest.mark.parametrize("columns", [40, 80, 110, 130, 200])
def test_every_column_of_a_list_is_there_in_any_terminal(job_id, columns):
    heading, _, row = on_terminal(columns, "jobs").splitlines()
    assert heading.split() == ["id", "task", "queue", "state", "attempt", "due", "(UTC)", "arguments"]
    assert row.split()[:5] == [job_id, "hostile", "default", "queued", "0"]
    assert row.split()[-1].startswith('{"text":')
    assert "oldest waits" in on_terminal(columns, "queues")


@pytest.mark.parametrize("args", [["jobs"], ["jobs", "--json"], ["jobs", "show", "{id}"]])
def test_job_data_steers_no_terminal(job_id, args):
    text = on_terminal(80, *(arg.format(id=job_id) for arg in args))
    assert all(character.isprintable() or character == "\n" for character in text)


def test_lines_in_a_pipe_do_not_end_in_blanks(job_id, run):
    for args in (["jobs"], ["jobs", "show", job_id], ["queues"], ["config"]):
        lines = run(*args, "--store", URL).stdout.splitlines()
        assert all(line == line.rstrip() for line in lines)

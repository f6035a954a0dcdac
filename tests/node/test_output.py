"""What jobs print is in the node's log, line by line, with pool, worker and job: never raw, and bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from millpond import Retry
from millpond.node.observability import worker_output
from millpond.node.observability.logs import set_up, take_down
from tests.node.waiting import all_ended, ended, until


@pytest.fixture
def log(tmp_path):
    """The node's log as lines of JSON, and what else came to its stream."""
    path = tmp_path / "log"
    with path.open("w") as stream:
        handler = set_up("json", "INFO", stream)

        def lines() -> list[dict[str, Any]]:
            return [json.loads(line) for line in path.read_text().splitlines()]

        yield lines
        take_down(handler)


def printed(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["logger"] == "millpond.output"]


def saying(log: Any, text: str) -> dict[str, Any]:
    until(lambda: any(text in line["message"] for line in printed(log())), f"{text} in the log")
    return next(line for line in printed(log()) if text in line["message"])


@pytest.mark.parametrize("kind", ["process", "thread", "async"])
def test_a_printed_line_is_told_with_pool_worker_and_job(local, start, log, kind):
    local.pool("default", workers=1, kind=kind)

    @local.task
    def hello(name: str) -> int:
        print(f"hello {name}")
        print("not well", file=sys.stderr)
        return os.getpid()

    start(local)
    handles = hello.enqueue_many([("one",), ("two",)])
    for handle, job, name in zip(handles, all_ended(handles), ("one", "two"), strict=True):
        line = saying(log, f"hello {name}")
        pid = int(job.result or b"0")
        assert (line["pool"], line["worker"], line["job"]) == ("default", pid, handle.id)
        assert line["message"] == f"[default {pid} {handle.id}] hello {name}"
    assert saying(log, "not well")["level"] == "info"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_jobs_of_one_worker_print_at_the_same_time_is_told_apart(local, start, log, tmp_path, stream):
    """`print` writes the text and the end of its line apart: another thread may come between."""
    local.pool("default", workers=1, kind="thread", concurrency=2)
    begun, go = tmp_path / "begun", tmp_path / "go"

    @local.task
    def half() -> None:
        print("first half", end="", flush=True, file=getattr(sys, stream))
        begun.touch()
        while not go.exists():
            time.sleep(0.005)
        print(", second half", file=getattr(sys, stream))

    @local.task
    def whole() -> None:
        print("whole")

    start(local)
    one = half.enqueue()
    until(begun.exists, "half a line is written")
    two = whole.enqueue()
    ended(two)
    go.touch()
    ended(one)
    until(lambda: len(printed(log())) >= 3, "all of it in the log")
    found = [(line["job"], line["message"].partition("] ")[2]) for line in printed(log())]
    assert found == [(one.id, "first half"), (two.id, "whole"), (one.id, ", second half")]


def test_what_a_job_prints_can_forge_no_line_and_steer_no_terminal(local, start, log):
    @local.task
    def evil() -> None:
        for text in (
            "\x1b[2J\x1b]0;title\x07",
            "2026-01-01T00:00:00.000Z ERROR forged",
            "\x1e0123456789abcdef01900000-0000-7000-8000-000000000000\x1fanother job's",
            "password=hunter2",
            "x" * 100_000,
            "\udc80\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
            "the end",
        ):
            print(text)

    start(local)
    handle = evil.enqueue()
    ended(handle)
    saying(log, "the end")
    lines = printed(log())
    assert all(line["message"].isprintable() for line in lines)
    assert {line["job"] for line in lines if "job" in line} == {handle.id}
    assert "hunter2" not in str(lines)
    assert max(len(line["message"]) for line in lines) < 2 * worker_output.LONGEST


def test_what_no_python_has_printed_is_told_without_a_job(local, start, log):
    @local.task
    def child() -> None:
        subprocess.run(["echo", "from a child"], check=True)

    start(local)
    ended(child.enqueue())
    line = saying(log, "from a child")
    assert "job" not in line
    assert line["pool"] == "default"


def test_the_last_words_of_a_worker_that_dies_are_told(local, start, log):
    @local.task(retry=Retry(attempts=1))
    def die() -> None:
        print("last words", end="", flush=True)
        os.abort()

    start(local)
    die.enqueue()
    saying(log, "last words")


def test_a_flood_neither_stops_the_job_nor_fills_the_log(local, start, log):
    @local.task
    def flood() -> None:
        for _ in range(1_000):
            print(("y" * 99 + "\n") * 100)

    @local.task
    def quick() -> int:
        return 1

    local.pool("default", workers=2)
    start(local)
    loud = flood.enqueue()
    all_ended(quick.enqueue_many([()] * 20))
    ended(loud)
    saying(log, "were left out")
    seconds = len({line["at"][:19] for line in printed(log())}) + 1
    assert len(printed(log())) <= (worker_output.LINES + 1) * (seconds + 1)


def test_a_worker_that_prints_without_end_is_slowed_and_the_node_is_not(monkeypatch):
    """The reader alone: it takes so much in a second and leaves the rest in the pipe."""
    monkeypatch.setattr(worker_output, "EACH_SECOND", 100_000)
    reading, writing = os.pipe2(os.O_NONBLOCK)

    class Worker:
        output: int | None = reading
        pid = 5

    reader = worker_output.Output()
    reader.take("p", Worker())
    taken, began = 0, time.monotonic()
    while time.monotonic() - began < 0.5:
        try:
            taken += os.write(writing, b"y" * 10_000)
        except BlockingIOError:
            time.sleep(0.01)
    assert taken <= 100_000 + 3 * worker_output.AT_ONCE + 65_536
    os.close(writing)
    reader.close(5)


PROGRAM = """
import sys
from millpond import App, Node
app = App(sys.argv[1])

@app.task(name="hello")
def hello():
    print("hello\\x1b[2J")

with Node(app):
    handle = hello.enqueue()
    handle.result(30)
    print(handle.id)
"""


def test_a_program_that_has_set_up_no_log_has_it_on_stderr(tmp_path):
    command = [sys.executable, "-c", PROGRAM, f"sqlite:///{tmp_path / 'jobs.db'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert f"{done.stdout.strip()}] hello\\x1b[2J" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr

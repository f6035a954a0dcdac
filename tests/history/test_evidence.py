"""Evidence: what was written before a kill is there, what was being written spoils nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from millpond import Cancel, Snooze, current_job
from millpond.job import Job
from millpond.task_context import running
from tests.history.entries import Acknowledged, Attempted, Began, Effect, Ended, Fault, How, Kind, Over
from tests.history.evidence import Evidence, read
from tests.history.reference import World


@pytest.fixture
def evidence(tmp_path):
    return Evidence(tmp_path, "n1")


def a_job(token: int = 4) -> Job:
    world = World()
    world.enqueue("j")
    return world.change("j", token=token, attempt=2)


def test_what_was_noted_is_read_in_the_order_of_time(evidence):
    evidence.attempted("a", "b")
    evidence.acknowledged("a")
    first, second, third = read(evidence.folder)
    assert (first, second) == (Attempted("a", first.at), Attempted("b", first.at))
    assert third == Acknowledged("a", third.at)
    assert first.at <= third.at


def test_an_execution_notes_who_ran_what_and_how_it_left(evidence):
    with running(a_job(), None), evidence.execution():
        evidence.effect()
        assert current_job().token == 4
    began, effect, ended = read(evidence.folder)
    assert began == Began("j", 4, 3, "n1", os.getpid(), began.at)
    assert effect == Effect("j", 4, 3, effect.at)
    assert ended == Ended("j", 4, How.RETURNED, ended.at)


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (ValueError(), How.RAISED),
        (SystemExit(0), How.RAISED),
        (Snooze(1), How.SNOOZED),
        (Cancel(), How.CANCELLED),
    ],
)
def test_an_error_goes_through_and_is_noted(evidence, error, how):
    with running(a_job(), None), pytest.raises(type(error)), evidence.execution():
        raise error
    assert read(evidence.folder)[-1].how is how  # type: ignore[union-attr]


def test_a_fault_lies_between_two_lines(evidence):
    with evidence.fault(Kind.STOPPED, pid=1, node="n2"):
        (fault,) = read(evidence.folder)
    assert isinstance(fault, Fault)
    assert fault == Fault(fault.number, Kind.STOPPED, fault.at, 1, "n2")
    assert isinstance(read(evidence.folder)[1], Over)


def test_killing_what_is_gone_is_told(evidence):
    child = subprocess.Popen(["true"])
    child.wait()
    assert not evidence.kill(child.pid)
    assert len(read(evidence.folder)) == 2


def test_a_fork_writes_a_file_of_its_own(evidence):
    code = (
        "import os; from tests.history.evidence import Evidence; e = Evidence.from_environment()\n"
        "e.attempted('parent')\n"
        "if os.fork() == 0: e.attempted('child'); os._exit(0)\n"
        "os.wait()"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | evidence.environment("n7"), check=True)
    assert [entry.job for entry in read(evidence.folder)] == ["parent", "child"]  # type: ignore[union-attr]
    assert len(list(evidence.folder.iterdir())) == 2


def test_threads_do_not_tear_each_others_lines(evidence):
    threads = [
        threading.Thread(target=lambda: [evidence.attempted("x" * 50) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read(evidence.folder)) == 800


def test_a_torn_last_line_is_left_out_and_one_in_the_middle_is_an_error(evidence):
    evidence.attempted("a")
    (path,) = evidence.folder.iterdir()
    path.write_bytes(path.read_bytes() + b'{"type":"attem')
    assert [entry.job for entry in read(evidence.folder)] == ["a"]  # type: ignore[union-attr]
    path.write_bytes(path.read_bytes() + b"\n" + path.read_bytes())
    with pytest.raises(ValueError, match="truncated"):
        read(evidence.folder)


def test_a_kill_at_any_moment_leaves_whole_lines(evidence):
    code = (
        "from tests.history.evidence import Evidence; e = Evidence.from_environment()\n"
        "while True: e.attempted('y' * 300)"
    )
    environment = os.environ | evidence.environment("n1")
    children = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(3)]
    for number, child in enumerate(children):
        while sum(1 for _ in evidence.folder.iterdir()) < len(children) or len(read(evidence.folder)) < 50:
            assert child.poll() is None
        assert evidence.kill(child.pid)
        assert child.wait() == -signal.SIGKILL, number
    lines = [entry for entry in read(evidence.folder) if isinstance(entry, Attempted)]
    assert {entry.job for entry in lines} == {"y" * 300}

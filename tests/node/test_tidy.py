"""What one job does to its process does not reach the next one in it."""

from __future__ import annotations

import locale
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond import Node, Retry
from millpond.job import JobState
from millpond.store.opening import open_store
from tests.node import mischief
from tests.node.mischief import (
    CHANGES,
    MEGABYTES,
    MISCHIEF,
    is_gone,
    leave_a_daemon_behind,
    leave_a_program_behind,
    leave_generations_behind,
    node_of_its_own,
)
from tests.node.waiting import ended, until

MIB = 1 << 20


def surroundings() -> list[object]:
    mask = os.umask(0o22)
    os.umask(mask)
    return [
        os.getpid(),
        os.getcwd(),
        os.environ.get("HOME"),
        os.environ.get("MILLPOND_TEST_LEFT"),
        str(signal.getsignal(signal.SIGTERM)),
        sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        signal.getitimer(signal.ITIMER_REAL)[0],
        locale.setlocale(locale.LC_ALL),
        mask,
    ]


@pytest.fixture
def node_alone(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node as a process, and what it and its workers print; its tasks can be enqueued."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    mischief.app.store = open_store(url)
    mischief.app.store.migrate()
    with node_of_its_own(url) as node:
        yield node
    mischief.app.store.close()


@pytest.mark.parametrize(
    "case",
    [
        *((change, None) for change in CHANGES),
        *((CHANGES[0], error) for error in (OSError, KeyboardInterrupt)),
    ],
)
def test_the_next_job_finds_the_process_as_the_first_one_did(local, start, monkeypatch, tmp_path, case):
    change, error = case
    monkeypatch.chdir(tmp_path)
    local.pool("default", workers=1)

    @local.task
    def look() -> list[object]:
        return surroundings()

    @local.task(retry=Retry(attempts=1))
    def meddle() -> None:
        change()
        if error is not None:
            raise error

    start(local)
    before = look.enqueue().result(timeout=30)
    ended(meddle.enqueue())
    assert look.enqueue().result(timeout=30) == before


def test_a_timer_never_meets_a_process_that_is_half_put_back():
    program = """
        import random, signal
        from millpond.node.tidy import Surroundings
        clean = Surroundings()
        for _ in range(3000):
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 6e-5))
            clean.restore()
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)


@pytest.mark.parametrize(("act", "end"), MISCHIEF.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_job_that_misbehaves_is_contained_and_ends_as_it_should(local, start, act, end):
    local.pool("default", workers=1)

    @local.task(timeout=1.0, retry=Retry(attempts=1, max_crashes=1))
    def misbehave() -> int | None:
        return act()  # type: ignore[no-any-return]

    @local.task
    def behave(number: int) -> int:
        return number

    start(local)
    bad = misbehave.enqueue()
    assert [behave.enqueue(number).result(timeout=30) for number in range(5)] == list(range(5))
    job = ended(bad)
    assert (job.state, job.reason, [line.ended for line in job.attempts]) == (
        end.state,
        end.reason,
        [end.attempt],
    )


# --- what a job leaves running ------------------------------------------------------------------------------
def kill_its_worker(node: Node, worker: int) -> None:
    os.kill(worker, signal.SIGKILL)


def wear_out_its_worker(node: Node, worker: int) -> None:
    """The pool does that by itself: one job for each."""


def stop_the_node(node: Node, worker: int) -> None:
    node.stop(10.0)


def stop_the_node_at_once(node: Node, worker: int) -> None:
    node.stop(0.0)


@pytest.mark.parametrize("end", [kill_its_worker, wear_out_its_worker, stop_the_node, stop_the_node_at_once])
@pytest.mark.parametrize("leave", [leave_a_daemon_behind, leave_a_program_behind, leave_generations_behind])
def test_what_a_job_left_running_ends_with_its_worker(local, start, leave, end):
    local.pool("default", workers=1, max_tasks_per_child=1 if end is wear_out_its_worker else None)

    @local.task
    def left() -> list[int]:
        return [os.getpid(), leave()]

    node = start(local)
    worker, stray = left.enqueue().result(timeout=30)
    end(node, worker)
    until(lambda: is_gone(worker), "the end of the worker")
    until(lambda: is_gone(stray), "the end of what its job had left running")


def test_what_a_job_left_running_lives_as_long_as_its_worker(local, start):
    """Otherwise the test above would see the end of what never was."""
    local.pool("default", workers=1)

    @local.task
    def left() -> list[int]:
        return [leave_a_daemon_behind(), leave_a_program_behind(), leave_generations_behind()]

    @local.task
    def behave() -> int:
        return os.getpid()

    start(local)
    strays = left.enqueue().result(timeout=30)
    behave.enqueue().result(timeout=30)
    assert not any(is_gone(stray) for stray in strays)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_job_left_running_ends_with_its_node(node_alone, end):
    strays = mischief.leave_behind.enqueue().result(timeout=30)
    node_alone.send_signal(end)
    node_alone.wait(30)
    until(lambda: all(is_gone(stray) for stray in strays), "the end of what its job had left running")


# --- what a job prints --------------------------------------------------------------------------------------
def test_a_job_that_prints_a_hundred_megabytes_waits_for_its_reader_and_nobody_else_does(node_alone):
    """Workers print where their node does: nothing of it goes through the node, or stays in it."""
    assert mischief.behave.enqueue(1).result(timeout=30) == 1
    before = peak(node_alone.pid)
    loud = mischief.be_loud.enqueue()
    assert select.select([node_alone.stdout], [], [], 30)[0]
    assert [mischief.behave.enqueue(n).result(timeout=30) for n in range(50)] == list(range(50))
    assert loud.job().state is JobState.RUNNING  # nobody has read more than the pipe holds
    printed = 0
    while printed < MEGABYTES * 1_000_000:
        printed += len(os.read(node_alone.stdout.fileno(), 1 << 20))
    assert loud.result(timeout=30) == MEGABYTES
    assert printed == MEGABYTES * 1_000_000
    assert mischief.behave.enqueue(2).result(timeout=30) == 2
    assert peak(node_alone.pid) < before + 20 * MIB


def peak(pid: int) -> int:
    """The most memory that a process has ever had, in bytes."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(line) * 1024

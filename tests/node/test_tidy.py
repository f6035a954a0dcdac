"""What one job does to its process does not reach the next one in it."""

from __future__ import annotations

import locale
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond import Node, Retry
from millpond.node.observability.events import WorkerGone
from millpond.store.open import open_store
from tests.node import mischief
from tests.node.mischief import (
    CHANGES,
    LASTING,
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
        [
            resource.getrlimit(number)
            for number in (
                resource.RLIMIT_AS,
                resource.RLIMIT_CPU,
                resource.RLIMIT_FSIZE,
                resource.RLIMIT_NOFILE,
            )
        ],
        [type(stream).__name__ for stream in (sys.stdin, sys.stdout, sys.stderr)],
        any(stream.closed for stream in (sys.stdin, sys.stdout, sys.stderr)),
        [os.getresuid(), os.getresgid()],
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


@pytest.mark.parametrize("change", LASTING)
def test_a_worker_that_a_job_changed_for_good_leaves_before_the_next_job(local, start, change):
    local.pool("default", workers=1)

    @local.task
    def look() -> list[object]:
        return surroundings()

    @local.task
    def meddle() -> int:
        change()
        return os.getpid()

    node, gone = start(local), list[WorkerGone]()
    node.subscribe(gone.append, [WorkerGone])
    _, *before = look.enqueue().result(timeout=30)
    handles = [meddle.enqueue(), look.enqueue()]
    spoilt = handles[0].result(timeout=30)
    worker, *after = handles[1].result(timeout=30)
    assert after == before
    assert worker != spoilt
    until(lambda: gone, "the end of the worker")
    assert (gone[0].worker, gone[0].reason, gone[0].exitcode) == (spoilt, "changed", 0)
    assert handles[0].job().attempts[0].ended == "returned"


def test_a_hard_limit_that_was_lowered_without_root_s_rights_stays_changed():
    program = """
        import os, resource
        from millpond.node.worker.process_state import Surroundings
        if os.getuid() == 0:
            os.setuid(65534)
        clean = Surroundings()
        _, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        assert clean.restore() and resource.getrlimit(resource.RLIMIT_NOFILE) == before
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        assert not clean.restore()
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)


def test_a_timer_never_meets_a_process_that_is_half_put_back():
    program = """
        import random, signal
        from millpond.node.worker.process_state import Surroundings
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
def test_a_job_that_prints_a_hundred_megabytes_is_cut_short_and_nobody_else_waits(node_alone):
    """What workers print becomes lines of the node's log, so many a second; the rest is dropped."""
    assert mischief.behave.enqueue(1).result(timeout=30) == 1
    before = peak(node_alone.pid)
    loud = mischief.be_loud.enqueue()
    assert [mischief.behave.enqueue(n).result(timeout=30) for n in range(50)] == list(range(50))
    assert loud.result(timeout=60) == MEGABYTES
    assert mischief.behave.enqueue(2).result(timeout=30) == 2
    assert peak(node_alone.pid) < before + 20 * MIB


def peak(pid: int) -> int:
    """The most memory that a process has ever had, in bytes."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(line) * 1024

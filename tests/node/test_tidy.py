"""What one job does to its process does not reach the next one in it."""

from __future__ import annotations

import locale
import os
import signal
import sys
import threading
import time

import pytest

from millpond.job import JobState
from tests.node.waiting import ended, until


def leave_the_folder() -> None:
    os.chdir("/")


def remove_the_folder() -> None:
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")


def change_the_environment() -> None:
    os.environ.update(MILLPOND_TEST_LEFT="yes", HOME="/nowhere")


def change_a_handler() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def change_the_mask() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})


def leave_a_timer() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.2)


def change_the_locale() -> None:
    locale.setlocale(locale.LC_ALL, "C")


def change_the_umask() -> None:
    os.umask(0)


CHANGES = [
    leave_the_folder,
    remove_the_folder,
    change_the_environment,
    change_a_handler,
    change_the_mask,
    leave_a_timer,
    change_the_locale,
    change_the_umask,
]


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


@pytest.mark.parametrize("change", CHANGES)
def test_the_next_job_finds_the_process_as_the_first_one_did(local, start, monkeypatch, tmp_path, change):
    monkeypatch.chdir(tmp_path)
    local.pool("default", workers=1)

    @local.task
    def look() -> list[object]:
        return surroundings()

    @local.task
    def meddle() -> None:
        change()

    start(local)
    before = look.enqueue().result(timeout=30)
    meddle.enqueue().result(timeout=30)
    assert look.enqueue().result(timeout=30) == before


def ignore_sigterm_and_never_end() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def block_every_signal() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(600)


def close_every_descriptor() -> None:
    os.closerange(0, 4096)


def leave_the_process() -> None:
    os._exit(7)


def raise_system_exit() -> None:
    sys.exit(3)


def print_a_hundred_megabytes() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for _ in range(100):
        os.write(1, b"x" * 1_000_000)


def leave_a_daemon_behind() -> None:
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)


def recurse_for_ever() -> None:
    recurse_for_ever()


def wait_for_itself() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


MISCHIEF = [
    ignore_sigterm_and_never_end,
    block_every_signal,
    close_every_descriptor,
    leave_the_process,
    raise_system_exit,
    print_a_hundred_megabytes,
    leave_a_daemon_behind,
    recurse_for_ever,
    wait_for_itself,
]


@pytest.mark.parametrize("act", MISCHIEF)
def test_a_job_that_misbehaves_is_contained(local, start, act):
    local.pool("default", workers=1)

    @local.task(timeout=1.0)
    def misbehave() -> None:
        act()

    @local.task
    def behave(number: int) -> int:
        return number

    start(local)
    bad = misbehave.enqueue()
    until(lambda: bad.job().attempt or bad.job().state == JobState.COMPLETED, "the end of its first attempt")
    assert [behave.enqueue(number).result(timeout=30) for number in range(5)] == list(range(5))
    bad.cancel()
    ended(bad)

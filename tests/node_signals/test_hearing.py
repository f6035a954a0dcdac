"""`Signals` in this process: what was before is there again, nothing is lost when the pipe is full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from millpond.node.process.signals import CAPACITY, HEARD, WOKEN, Signals, name_of

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals belong to the main thread"
)


def handlers():
    return {number: signal.getsignal(number) for number in HEARD}


def test_every_handler_and_the_wakeup_descriptor_are_put_back():
    before = handlers()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    old = signal.set_wakeup_fd(writer)
    try:
        with Signals():
            assert signal.set_wakeup_fd(writer) != writer
        assert signal.set_wakeup_fd(old) == writer
    finally:
        signal.set_wakeup_fd(old)
        os.close(reader)
        os.close(writer)
    assert handlers() == before


@pytest.fixture
def hangup_is_heard():
    """Tests may themselves be run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup_is_heard")
def test_signals_come_in_their_order_and_waiting_ends():
    with Signals() as signals:
        assert signals.wait(0) is None
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
            signal.raise_signal(number)
        assert [signals.wait(1) for _ in range(3)] == [signal.SIGTERM, signal.SIGHUP, signal.SIGTERM]
        assert signals.wait(0) is None


def test_another_thread_can_end_the_wait():
    with Signals() as signals:
        threading.Thread(target=signals.wake).start()
        assert signals.wait(30) == WOKEN


def test_a_signal_that_found_the_pipe_full_is_heard():
    with Signals() as signals:
        for _ in range(CAPACITY + 10):
            signals.wake()
        signal.raise_signal(signal.SIGTERM)
        heard = []
        while (number := signals.wait(0)) is not None:
            heard.append(number)
        assert heard == [WOKEN, signal.SIGTERM]


def test_no_descriptor_is_left():
    before = set(os.listdir("/proc/self/fd"))
    with Signals():
        assert len(os.listdir("/proc/self/fd")) > len(before)
    assert set(os.listdir("/proc/self/fd")) == before


def test_another_thread_is_told_why_it_cannot_hear():
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="main thread only"):
        pool.submit(Signals().__enter__).result(30)


def test_a_signal_has_a_name():
    assert name_of(signal.SIGTERM) == "SIGTERM"
    assert name_of(200) == "signal 200"


def test_signals_are_heard_in_a_program_with_thousands_of_files():
    program = """
        import os, resource, signal
        from millpond.node.process.signals import Signals
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (2000, most))
        for _ in range(1100):
            os.open(os.devnull, os.O_RDONLY)
        with Signals() as signals:
            assert signals._reader >= 1024
            signal.raise_signal(signal.SIGTERM)
            assert signals.wait(30) == signal.SIGTERM
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)

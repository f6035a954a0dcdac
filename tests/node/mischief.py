"""What jobs do that they should not, each with the end that it has; and a node as a process to do it in.

`python -m tests.node.mischief` is such a node, on the store that the environment names. What its workers
print goes where its own output goes: to whoever started it.
"""

from __future__ import annotations

import contextlib
import io
import locale
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import setrlimit
from typing import NamedTuple

from millpond import App, Node

STORE = "MILLPOND_TEST_MISCHIEF_STORE"
MEGABYTES = 100
app = App(os.environ.get(STORE, "memory://"))
app.pool("default", workers=2)


class End(NamedTuple):
    """How such a job ends when it has one try: its state, the reason, and its attempt."""

    state: str
    reason: str | None
    attempt: str


RETURNED = End("completed", None, "returned")
RAISED = End("dead", "failed", "raised")
CRASHED = End("dead", "crashed", "crashed")
TIMED_OUT = End("dead", "timeout", "timed out")


# --- it changes its process ---------------------------------------------------------------------------------
def leave_the_folder() -> None:
    os.chdir("/")


def remove_the_folder() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)


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


def limit_its_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))


def limit_its_time() -> None:
    """By a name that the app has imported, which the worker must notice as well."""
    setrlimit(resource.RLIMIT_CPU, (30, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def limit_its_files() -> None:
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        resource.setrlimit(limit, (3, resource.getrlimit(limit)[1]))


def replace_its_output() -> None:
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), io.StringIO(), io.StringIO()


CHANGES: list[Callable[[], None]] = [
    leave_the_folder,
    remove_the_folder,
    change_the_environment,
    change_a_handler,
    change_the_mask,
    leave_a_timer,
    change_the_locale,
    change_the_umask,
    limit_its_memory,
    limit_its_time,
    limit_its_files,
    replace_its_output,
]


# --- it changes its process for good ------------------------------------------------------------------------
def close_its_output() -> None:
    sys.stdout.close()


def close_its_errors() -> None:
    sys.stderr.close()


def close_its_input() -> None:
    sys.stdin.close()


def become_another_user() -> None:
    os.setgid(65534)
    os.setuid(65534)


def become_another_user_for_now() -> None:
    os.setegid(65534)
    os.seteuid(65534)


LASTING: list[Callable[[], None]] = [close_its_output, close_its_errors, close_its_input]
if os.getuid() == 0:
    LASTING += [become_another_user, become_another_user_for_now]


# --- it never ends -----------------------------------------------------------------------------------------
def ignore_sigterm_and_never_end() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def block_every_signal() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(600)


def wait_for_itself() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


# --- it ends its process, or nearly -------------------------------------------------------------------------
def leave_the_process() -> None:
    os._exit(7)


def abort() -> None:
    os.abort()


def close_every_descriptor() -> None:
    os.closerange(0, 4096)


def raise_system_exit() -> None:
    sys.exit(3)


def recurse_for_ever() -> None:
    recurse_for_ever()


# --- it leaves something behind: returns what --------------------------------------------------------------
def leave_a_daemon_behind() -> int:
    """As daemons are made: forked twice, in another session; in nobody's group and nobody's child."""
    hear, tell = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            time.sleep(600)
        else:
            os.write(tell, str(daemon).encode())
        os._exit(0)
    os.waitpid(middle, 0)
    daemon = int(os.read(hear, 100))
    os.close(hear)
    os.close(tell)
    return daemon


def leave_a_program_behind() -> int:
    """A child in a session of its own."""
    return subprocess.Popen(["sleep", "600"], start_new_session=True).pid


def leave_generations_behind() -> int:
    """A child in a session of its own, which has a child in another one: that."""
    grandchild = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    program = [sys.executable, "-uc", f"{grandchild}; import time; time.sleep(600)"]
    child = subprocess.Popen(program, start_new_session=True, stdout=subprocess.PIPE)
    assert child.stdout is not None
    return int(child.stdout.readline())


def print_a_hundred_megabytes() -> int:
    for _ in range(MEGABYTES):
        print("x" * 999_999, flush=True)
    return MEGABYTES


MISCHIEF: dict[Callable[[], int | None], End] = {
    ignore_sigterm_and_never_end: TIMED_OUT,
    block_every_signal: TIMED_OUT,
    wait_for_itself: TIMED_OUT,
    leave_the_process: CRASHED,
    abort: CRASHED,
    close_every_descriptor: RETURNED,
    raise_system_exit: RAISED,
    recurse_for_ever: RAISED,
    leave_a_daemon_behind: RETURNED,
    leave_a_program_behind: RETURNED,
    leave_generations_behind: RETURNED,
}


# --- a node ----------------------------------------------------------------------------------------------
@app.task
def be_loud() -> int:
    return print_a_hundred_megabytes()


@app.task
def behave(number: int) -> int:
    return number


@app.task
def leave_behind() -> list[int]:
    return [leave_a_daemon_behind(), leave_a_program_behind(), leave_generations_behind()]


@contextlib.contextmanager
def node_of_its_own(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A node as a process whose output can be read; killed in the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.node.mischief"],
        env={**os.environ, STORE: url},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def is_gone(pid: int) -> bool:
    """Does nothing run under this number? What is dead and not buried runs no more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


def main() -> int:
    """Be a node until SIGTERM."""
    from tests.node import mischief  # the module under the name that its workers import

    return Node(mischief.app).run()


if __name__ == "__main__":
    sys.exit(main())

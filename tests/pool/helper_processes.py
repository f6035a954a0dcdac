"""Tasks that start a helper process which is soon no child of theirs, in each of the usual ways.

A helper reports its pid, waits for a line and repeats it. Its task returns what the helper wrote: the line,
or nothing if the helper was killed.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SCRIPT = 'exec 3< "$0/go"; echo $$ > "$0/pid"; read line <&3; echo "$line"'
LOCKS = 10  # RLIMIT_LOCKS, which `resource` does not name


def run_in_the_background(folder: str, said: int) -> None:
    subprocess.run(["sh", "-c", f"({SCRIPT}) &", folder], stdout=said, check=True)


def run_in_a_group(folder: str, said: int) -> None:
    subprocess.run(["bash", "-c", f"set -m; ({SCRIPT}) &", folder], stdout=said, check=True)


def run_in_a_session(folder: str, said: int) -> None:
    subprocess.run(["setsid", "-f", "sh", "-c", SCRIPT, folder], stdout=said, check=True)


def run_without_an_environment(folder: str, said: int) -> None:
    subprocess.run(["env", "-i", "setsid", "-f", "sh", "-c", SCRIPT, folder], stdout=said, check=True)


def become_a_daemon(folder: str, said: int) -> None:
    _daemon(lambda: None, folder, said)


def lose_the_mark(folder: str, said: int) -> None:
    """What tells the template the worker of a process is gone, as after a login that sets every limit."""
    _daemon(lambda: resource.setrlimit(LOCKS, (resource.RLIM_INFINITY,) * 2), folder, said)


def _daemon(before: Callable[[], None], folder: str, said: int) -> None:
    """Fork twice, without running another program."""
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        return
    os.setsid()
    if os.fork() == 0:
        before()
        with open(f"{folder}/go") as go:
            Path(folder, "pid").write_text(f"{os.getpid()}\n")
            os.write(said, go.readline().encode())
    os._exit(0)


MARKED = [
    run_in_the_background,
    run_in_a_group,
    run_in_a_session,
    run_without_an_environment,
    become_a_daemon,
]


def use_a_helper(start: Callable[[str, int], None], folder: str) -> str:
    """What the helper said in the end; its task waits for that."""
    hear, say = os.pipe()
    start(folder, say)
    os.close(say)
    with open(hear) as file:
        return file.read().strip()


def leave_a_helper(start: Callable[[str, int], None], folder: str) -> int:
    """The worker that ran this; the helper stays."""
    start(folder, sys.stderr.fileno())
    return os.getpid()


def pid_here() -> int:
    return os.getpid()

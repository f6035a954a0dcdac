"""Orphans: process 1 and a subreaper reap them, and leave alone what somebody in the program waits for."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading

import pytest

from millpond.node.process import reaper
from tests.node_signals.programs import program

# Makes an orphan and a child of its own, both dead; looks twice; says what became of them.
SCENE = """
import ctypes, os, subprocess, sys
from pathlib import Path
from millpond.node.process.reaper import Undertaker

def is_dead(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return None

if "subreaper" in sys.argv:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
undertaker = Undertaker()
print("needed", undertaker.needed)
# The shell starts a process in the background, tells its number and leaves; the orphan ends when we let it.
hold, let_go = os.pipe()
script = "{ read line; } <&%d & echo $!" % hold
shell = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, pass_fds=[hold])
orphan = int(shell.stdout.readline())
shell.wait()
child = subprocess.Popen(["sh", "-c", "exit 7"])
os.close(hold)
os.close(let_go)
while not (is_dead(child.pid) and (is_dead(orphan) or not undertaker.needed)):
    pass
print("first", undertaker.look())
print("orphan", undertaker.look() == [orphan])
print("gone", is_dead(orphan) is None)
print("child", child.wait())
print("again", undertaker.look(), undertaker.look())
"""


def scene(*command: str) -> list[str]:
    with program(*command) as running:
        assert running.code() == 0, running.lines
        return running.lines


REAPED = ["needed True", "first []", "orphan True", "gone True", "child 7", "again [] []"]


def test_a_subreaper_reaps_orphans_and_no_child_of_its_own():
    assert scene(sys.executable, "-c", SCENE, "subreaper") == REAPED


def can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="needs the right to make a process namespace")
def test_process_1_reaps_orphans_and_no_child_of_its_own():
    assert scene("unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", SCENE) == REAPED


def test_an_ordinary_process_reaps_nobody():
    said = scene(sys.executable, "-c", SCENE)
    assert said[0] == "needed False"
    assert said[1] == "first []"
    assert "child 7" in said


def test_no_other_thread_notices_that_the_collector_was_asked():
    """A tuple that a thread is making may have no second owner: the interpreter refuses to finish it then."""
    over, errors = threading.Event(), []

    def make_tuples() -> None:
        while not over.is_set():
            try:
                tuple(number for number in range(1000))
            except SystemError as error:
                errors.append(error)

    threads = [threading.Thread(target=make_tuples) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        reaper.freeze()
        reaper._claimed()
        reaper.unfreeze()
    over.set()
    for thread in threads:
        thread.join()
    assert errors == []


class Lasting(subprocess.Popen[bytes]):
    """A Popen of somebody's own kind."""


def test_the_children_of_this_program_are_known_before_and_after_the_freeze():
    with subprocess.Popen(["sleep", "60"]) as one, Lasting(["sleep", "60"]) as other:
        wanted = {one.pid, other.pid}
        assert reaper._claimed() >= wanted
        reaper.freeze()
        assert reaper._claimed() >= wanted
        reaper.unfreeze()
        assert reaper._claimed() >= wanted
        one.kill()
        other.kill()
    assert not reaper._claimed() & wanted

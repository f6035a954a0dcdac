"""What a task needs of `__main__` may hang as it is unpickled: it ends that task and no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HANGS = """
import os, sys, time
from millpond import Pool

class Needed:
    def __init__(self, how): self.how = how
    def __reduce__(self): return rebuild, (self.how,)

def rebuild(how):
    while True:
        if how == "sleep": time.sleep(3600)

needed = Needed(sys.argv[1])
def poisoned(): return needed
def harmless(n): return n

if __name__ == "__main__":
    timeout = None if sys.argv[2] == "none" else float(sys.argv[2])
    options = {"start_timeout": 2} if timeout is None else {"timeout": timeout}
    with Pool(2, **options) as pool:
        first = pool.submit(poisoned)
        others = [pool.submit(harmless, n) for n in range(20)]
        print(type(first.exception(120)).__name__)
        print(sum(future.result(120) for future in others))
"""


@pytest.mark.parametrize("how", ["sleep", "spin"])
@pytest.mark.parametrize(("timeout", "error"), [("1", "TaskTimeout"), ("none", "PoolError")])
def test_what_hangs_as_it_is_unpickled_ends_its_own_task_and_no_other(
    tmp_path: Path, how: str, timeout: str, error: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(HANGS)
    command = [sys.executable, str(script), how, timeout]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.stdout.split() == [error, "190"], done.stderr


ONE_AT_A_TIME = (
    HANGS.partition("if __name__")[0]
    + """
if __name__ == "__main__":
    pool = Pool(3)
    first = pool.submit(poisoned)
    until = time.monotonic() + 6  # longer than it takes to move a task from worker to worker
    while time.monotonic() < until:
        assert pool.submit(harmless, 7).result(60) == 7
    print("answered")
    pool.kill_workers()
"""
)


def test_what_one_task_needs_holds_up_one_worker_at_a_time(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ONE_AT_A_TIME)
    command = [sys.executable, str(script), "sleep"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.stdout.split() == ["answered"], done.stderr

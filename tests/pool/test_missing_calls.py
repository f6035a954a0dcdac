"""A Python that was built without some system calls: they are made by number, and everything works."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.pool.tasks import PATIENCE

pytestmark = pytest.mark.timeout(60)
MISSING = {
    "os": ["memfd_create", "pidfd_open", "eventfd", "eventfd_read", "eventfd_write", "MFD_CLOEXEC",
           "EFD_CLOEXEC", "EFD_NONBLOCK", "EFD_SEMAPHORE", "P_PIDFD"],
    "signal": ["pidfd_send_signal"],
}  # fmt: skip
TAKEN_AWAY = f"""
import importlib
for module, names in {MISSING!r}.items():
    for name in names:
        vars(importlib.import_module(module)).pop(name, None)
"""
EVERYTHING = """
import multiprocessing, os, signal, sys, time
from millpond import Pool, TaskTimeout, WorkerDied

def die():
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    assert not hasattr(os, "memfd_create") and not hasattr(signal, "pidfd_send_signal")
    with Pool(2) as pool:
        assert pool.submit(hasattr, os, "eventfd").result(20) is False
        assert list(pool.map(abs, range(-500, 0))) == list(range(500, 0, -1))
        assert len(pool.submit(bytes, 10_000_000).result(20)) == 10_000_000
        assert isinstance(pool.submit(die).exception(20), WorkerDied)
        assert isinstance(pool.using(timeout=0.2).submit(time.sleep, 60).exception(20), TaskTimeout)
    with Pool(1, kind="async") as pool:
        assert pool.submit(abs, -1).result(20) == 1
    with Pool(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(abs, -1).result(20) == 1
    print("done")
"""


def run(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run a script in an interpreter without these names, as are all that it starts."""
    (folder / "sitecustomize.py").write_text(TAKEN_AWAY)
    script = folder / "script.py"
    script.write_text(textwrap.dedent(source))
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=False,
    )


def test_a_pool_works_in_a_python_without_the_calls_it_is_built_on(tmp_path: Path) -> None:
    done = run(tmp_path, EVERYTHING)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_a_machine_whose_numbers_are_not_known_is_refused_with_what_to_do(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import os
        from millpond import OptionError, Pool
        real = os.uname()
        os.uname = lambda: os.uname_result((*real[:4], "sparc64"))
        try:
            Pool(1)
        except OptionError as error:
            print(error)
        """,
    )
    assert "use another build of Python, or kind='thread'" in done.stdout
    assert "sparc64" in done.stdout

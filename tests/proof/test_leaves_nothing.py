"""Many starts and many tasks leave nothing behind: no process, thread, descriptor, file, segment, memory.

The short form runs in `make test`, the full one in `make proof-pool`.
"""

import gc
import os
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from millpond import Pool
from tests.pool import faults

LONG = 120


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    """Other programs leave files in the machine's: they are not ours to count."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def inventory():
    """What this process holds right now."""
    gc.collect()
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "pid=,comm="], capture_output=True, text=True, check=False
    )
    return {
        "descriptors": sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in descriptors()),
        "threads": threading.active_count(),
        "children": [line for line in children.stdout.splitlines() if " ps" not in line],
        "shared memory": sorted(name for name in os.listdir("/dev/shm") if not name.startswith("PostgreSQL")),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
    }


def descriptors():
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        found.append(fd)
    return found


def resident_megabytes():
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096 / 1e6


def cycle(kind, number):
    with Pool(2, kind=kind) as pool:
        assert pool.submit(faults.echo, number).result(LONG) == number
        if number % 5 == 0 and kind != "thread":
            with pytest.raises(Exception, match="did not finish"):
                pool.submit(faults.exit_if, 1, {1}).result(LONG)


def run_cycles(count):
    for kind in ("process", "thread", "async"):
        cycle(kind, 5)
        before = inventory()
        for number in range(count):
            cycle(kind, number)
        assert inventory() == before, kind


def run_tasks(count):
    batch = 10_000
    with Pool(2) as pool:
        for _ in range(3):
            assert (
                sum(future.result(LONG) for future in [pool.submit(faults.echo, 1) for _ in range(batch)])
                == batch
            )
        before, memory = inventory(), resident_megabytes()
        for _ in range(count // batch):
            assert (
                sum(future.result(LONG) for future in [pool.submit(faults.echo, 1) for _ in range(batch)])
                == batch
            )
        assert inventory() == before
        assert resident_megabytes() < memory + 10
        assert pool.statistics().completed == count + 3 * batch


def test_some_start_and_stop_cycles_leave_nothing():
    run_cycles(6)


def test_a_hundred_thousand_tasks_leave_nothing_and_the_memory_flat():
    run_tasks(100_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_start_and_stop_cycles_leave_nothing():
    run_cycles(200)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_million_tasks_leave_nothing_and_the_memory_flat():
    run_tasks(1_000_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_tasks_in_a_child_each_neither_hang_nor_lose():
    with Pool(2, max_tasks_per_child=1) as pool:
        futures = [pool.submit(faults.pid_of) for _ in range(10_000)]
        assert sum(1 for future in futures if future.result(LONG)) == 10_000
        assert pool.statistics().recycled >= 9_990

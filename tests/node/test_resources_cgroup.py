"""A node inside a real memory limit of the kernel: it finds the limit, keeps to it, and outlives a kill."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond import App, Resources
from millpond.job import JobState
from tests.node.waiting import all_ended, ended, until

MB = 1_000_000
LIMIT = 512 << 20  # whole pages


def _places() -> list[tuple[Path, str, str]]:
    """Where a group could be made: the folder, and what its limit and its members are called."""
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            found.append((Path("/sys/fs/cgroup/memory" + path), "memory.limit_in_bytes", "cgroup.procs"))
        elif not controllers:
            found.append((Path("/sys/fs/cgroup" + path), "memory.max", "cgroup.procs"))
    return found


def _leave(folder: Path, members: str) -> None:
    until(lambda: not (folder / members).read_text(), "everybody has left the group")
    folder.rmdir()


@pytest.fixture
def group() -> Iterator[Path]:
    """A cgroup with a limit, or no test at all where this machine does not let us make one."""
    for parent, limit, members in _places():
        folder = parent / f"millpond-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / limit).write_text(str(LIMIT))
        except OSError:
            folder.rmdir()
            continue
        yield folder
        _leave(folder, members)
        return
    pytest.skip("this machine does not let us make a memory cgroup")


app = App(os.environ.get("MILLPOND_TEST_NODE_STORE", "memory://"))
app.pool("default", workers=3)


def use(size: int) -> int:
    """Use so much memory for a moment."""
    memory = bytearray(size)
    for place in range(0, size, 4096):
        memory[place] = 1
    return len(memory)


modest = app.task(name="modest", resources=Resources(memory="100MB"))(use)
greedy = app.task(name="greedy", resources=Resources(memory="100MB"))(use)


def test_a_node_finds_the_limit_of_its_group_and_outlives_a_kill_in_it(group, tmp_path):
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    there = App(url)
    modest_there = there.task(name="modest", resources=Resources(memory="100MB"))(use)
    greedy_there = there.task(name="greedy", resources=Resources(memory="100MB"))(use)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.node.test_resources_cgroup", str(group)],
        env={**os.environ, "MILLPOND_TEST_NODE_STORE": url},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        limit, capacity = process.stdout.readline().split()
        assert int(limit) == LIMIT
        assert 0.8 * LIMIT < int(capacity) < LIMIT
        handles = modest_there.enqueue_many([(80 * MB,)] * 5)
        dead = ended(greedy_there.enqueue(2 * LIMIT))
        jobs = all_ended(handles)
    finally:
        process.terminate()
        process.communicate()
    assert {job.state for job in jobs} == {JobState.COMPLETED}
    assert (dead.state, dead.reason) == (JobState.DEAD, "memory")
    assert {attempt.ended for attempt in dead.attempts} == {"out of memory"}
    assert len(dead.attempts) <= 4
    there.store.close()


def main() -> None:
    """Be a node inside the group, until SIGTERM."""
    import signal

    from millpond import Node
    from tests.node import test_resources_cgroup as this  # the module under the name that workers import

    (Path(sys.argv[1]) / "cgroup.procs").write_text(str(os.getpid()))
    node = Node(this.app)
    signal.signal(signal.SIGTERM, lambda *_: node.drain(5.0))
    node.start()
    budget = node._state.budget
    print(budget.measured.level.limit, budget.means.memory, flush=True)
    node.wait()


if __name__ == "__main__":
    main()

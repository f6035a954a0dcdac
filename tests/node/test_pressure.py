"""What the machine lets a node use: read from its own cgroup and all above it, of either version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from millpond.node.resources.cgroup import Level, Machine, tightest

MB = 1_000_000
GB = 1000 * MB
MEMINFO = "MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: 12000000 kB\n"
V2 = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1 = (
    "31 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 1 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
)
GROUP = "sys/fs/cgroup"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A file system of 64 cores and 16 GB; returns the function that puts files in it and reads it."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))

    def made(files: dict[str, str]) -> Machine:
        for name, text in {"proc/meminfo": MEMINFO, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Machine(tmp_path)

    return made


def limits(machine: Machine) -> list[int]:
    return [level.limit for level in machine.memory()]


WHOLE = 16_000_000 * 1024


def test_without_cgroups_it_is_the_whole_machine(machine):
    (level,) = machine({}).memory()
    assert (level.limit, level.used) == (WHOLE, 4_000_000 * 1024)


def test_a_limit_of_version_2_counts_what_cannot_be_dropped(machine):
    found = machine(
        {
            "proc/self/cgroup": "0::/pod/box\n",
            "proc/self/mountinfo": V2,
            f"{GROUP}/pod/box/memory.max": f"{2 * GB}\n",
            f"{GROUP}/pod/box/memory.stat": f"anon {300 * MB}\nfile {900 * MB}\nshmem {50 * MB}\n",
        }
    )
    level = tightest(found.memory())
    assert (level.limit, level.used, level.headroom) == (2 * GB, 350 * MB, 250 * MB)
    assert level.free == 2 * GB - 250 * MB - 350 * MB


def test_the_tightest_of_all_groups_above_counts(machine):
    found = machine(
        {
            "proc/self/cgroup": "0::/pod/box\n",
            "proc/self/mountinfo": V2,
            f"{GROUP}/pod/box/memory.max": "max\n",
            f"{GROUP}/pod/box/memory.high": f"{4 * GB}\n",
            f"{GROUP}/pod/memory.max": f"{3 * GB}\n",
            f"{GROUP}/pod/memory.stat": f"anon {2 * GB}\n",
        }
    )
    assert limits(found) == [4 * GB, 3 * GB, WHOLE]
    assert tightest(found.memory()).limit == 3 * GB


def test_a_limit_of_version_1_is_found_by_its_own_membership(machine):
    found = machine(
        {
            "proc/self/cgroup": "4:memory:/a/b\n2:cpu,cpuacct:/a\n0::/\n",
            "proc/self/mountinfo": V1,
            f"{GROUP}/memory/memory.limit_in_bytes": "9223372036854771712\n",
            f"{GROUP}/memory/a/memory.limit_in_bytes": f"{5 * GB}\n",
            f"{GROUP}/memory/a/b/memory.limit_in_bytes": f"{GB}\n",
            f"{GROUP}/memory/a/b/memory.stat": f"rss 1\ntotal_rss {100 * MB}\ntotal_cache {800 * MB}\n",
            f"{GROUP}/cpu/a/cpu.cfs_quota_us": "250000\n",
            f"{GROUP}/cpu/a/cpu.cfs_period_us": "100000\n",
        }
    )
    level = tightest(found.memory())
    assert (level.limit, level.used) == (GB, 100 * MB)
    assert found.cores() == 2.5


def test_both_versions_at_once_and_the_tighter_counts(machine):
    found = machine(
        {
            "proc/self/cgroup": "4:memory:/a\n0::/b\n",
            "proc/self/mountinfo": V1 + "33 1 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            f"{GROUP}/memory/a/memory.limit_in_bytes": f"{5 * GB}\n",
            f"{GROUP}/unified/b/memory.max": f"{2 * GB}\n",
        }
    )
    assert sorted(limits(found)) == [2 * GB, 5 * GB, WHOLE]


def test_in_a_container_that_sees_the_path_of_its_host_the_top_is_its_own_group(machine):
    found = machine(
        {
            "proc/self/cgroup": "0::/kubepods/pod1/box\n",
            "proc/self/mountinfo": V2,
            f"{GROUP}/memory.max": f"{GB}\n",
            f"{GROUP}/cpu.max": "150000 100000\n",
        }
    )
    assert tightest(found.memory()).limit == GB
    assert found.cores() == 1.5


def test_groups_within_a_container_that_sees_the_paths_of_its_host_are_found(machine):
    found = machine(
        {
            "proc/self/cgroup": "0::/docker/abc/system.slice/x\n",
            "proc/self/mountinfo": "30 1 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            f"{GROUP}/memory.max": f"{4 * GB}\n",
            f"{GROUP}/system.slice/x/memory.max": f"{GB}\n",
            f"{GROUP}/system.slice/x/memory.events": "oom_kill 2\n",
            f"{GROUP}/system.slice/cpu.max": "150000 100000\n",
        }
    )
    assert limits(found) == [GB, 4 * GB, WHOLE]
    assert found.cores() == 1.5
    assert found.oom_kills() == 2


def test_the_same_of_version_1_where_each_controller_has_its_own_mount(machine):
    found = machine(
        {
            "proc/self/cgroup": "4:memory:/docker/abc/x\n2:cpu,cpuacct:/docker/abcdef/x\n",
            "proc/self/mountinfo": (
                "31 1 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                "32 1 0:28 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
            ),
            f"{GROUP}/memory/x/memory.limit_in_bytes": f"{GB}\n",
            f"{GROUP}/cpu/x/cpu.cfs_quota_us": "250000\n",
            f"{GROUP}/cpu/x/cpu.cfs_period_us": "100000\n",
        }
    )
    assert limits(found) == [GB, WHOLE]
    assert found.cores() == 64.0  # another group, whose name only begins like ours


def test_a_limit_that_changes_is_seen_at_the_next_look(machine, tmp_path):
    found = machine(
        {
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": V2,
            f"{GROUP}/memory.max": f"{GB}\n",
        }
    )
    (tmp_path / GROUP / "memory.max").write_text(f"{2 * GB}\n")
    found.look_again()
    assert limits(found)[0] == 2 * GB


def test_pressure_is_that_of_the_own_group_or_of_the_machine_or_unknown(machine):
    some = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n"
    assert machine({}).cpu_stall() is None
    found = machine({"proc/pressure/cpu": some.format(2_500_000)})
    assert found.cpu_stall() == 2.5
    assert found.memory_stall() is None
    found = machine(
        {
            "proc/self/cgroup": "0::/box\n",
            "proc/self/mountinfo": V2,
            f"{GROUP}/box/cpu.pressure": some.format(1_000_000),
            f"{GROUP}/box/memory.pressure": some.format(5) + "full avg10=0 avg60=0 avg300=0 total=3000000\n",
        }
    )
    assert (found.cpu_stall(), found.memory_stall()) == (1.0, 3.0)


def test_kills_are_those_of_the_own_group(machine):
    assert machine({}).oom_kills() is None
    second = {"proc/self/cgroup": "0::/box\n", "proc/self/mountinfo": V2}
    assert machine({**second, f"{GROUP}/box/memory.events": "oom 4\noom_kill 3\n"}).oom_kills() == 3
    first = {"proc/self/cgroup": "4:memory:/a\n", "proc/self/mountinfo": V1}
    assert (
        machine({**first, f"{GROUP}/memory/a/memory.oom_control": "under_oom 0\noom_kill 2\n"}).oom_kills()
        == 2
    )


@pytest.mark.parametrize("text", ["", "nonsense\n", "max\n", "-1\n"])
def test_what_cannot_be_read_does_not_limit(machine, text):
    found = machine(
        {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": V2 + "rubbish\n", f"{GROUP}/memory.max": text}
    )
    assert limits(found) == [WHOLE]


def test_where_nothing_can_be_read_there_is_no_limit(tmp_path):
    assert Machine(tmp_path).memory() == []
    assert tightest([]).free > 1 << 50
    assert tightest([Level(100, 10), Level(50, 0)]).limit == 50


def test_this_machine_can_be_read():
    found = Machine()
    level = tightest(found.memory())
    assert 0 < level.used < level.limit
    assert found.cores() > 0
    assert (found.cpu_stall() is None) == (not Path("/proc/pressure/cpu").exists())

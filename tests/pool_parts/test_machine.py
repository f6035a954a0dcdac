"""Readings of the machine: cores under any cgroup, a process's own memory, kills for want of memory."""

import io
import os

import pytest

from millpond.pool.channel.shared_page import Page
from millpond.pool.proc import oom_kills, resident
from millpond.system.cores import usable_cores


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A file system with 64 cores; returns the function that adds files to it."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))

    def add(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return add


GROUP = "sys/fs/cgroup"
CASES = {
    "no cgroups": ({}, 64),
    "v2, no quota": ({"proc/self/cgroup": "0::/\n", f"{GROUP}/cpu.max": "max 100000\n"}, 64),
    "v2, own quota": ({"proc/self/cgroup": "0::/a/b\n", f"{GROUP}/a/b/cpu.max": "200000 100000\n"}, 2),
    "v2, fractions round up": ({"proc/self/cgroup": "0::/a\n", f"{GROUP}/a/cpu.max": "150000 100000\n"}, 2),
    "v2, less than one core": ({"proc/self/cgroup": "0::/a\n", f"{GROUP}/a/cpu.max": "10000 100000\n"}, 1),
    "v2, an ancestor's quota": (
        {
            "proc/self/cgroup": "0::/a/b\n",
            f"{GROUP}/a/b/cpu.max": "800000 100000\n",
            f"{GROUP}/a/cpu.max": "300000 100000\n",
            f"{GROUP}/cpu.max": "max 100000\n",
        },
        3,
    ),
    "v2, the path of another namespace": (
        {"proc/self/cgroup": "0::/outer/c1\n", f"{GROUP}/cpu.max": "400000 100000\n"},
        4,
    ),
    "v2, a quota above the cores": (
        {"proc/self/cgroup": "0::/\n", f"{GROUP}/cpu.max": "9900000 100000\n"},
        64,
    ),
    "v2, unreadable": ({"proc/self/cgroup": "0::/\n", f"{GROUP}/cpu.max": "nonsense\n"}, 64),
    "v1, own quota": (
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/a\n1:name=systemd:/x\n",
            f"{GROUP}/cpu/a/cpu.cfs_quota_us": "500000\n",
            f"{GROUP}/cpu/a/cpu.cfs_period_us": "100000\n",
        },
        5,
    ),
    "v1, no quota": (
        {"proc/self/cgroup": "5:cpu:/a\n", f"{GROUP}/cpu/a/cpu.cfs_quota_us": "-1\n"},
        64,
    ),
    "v1, a quota without a period": (
        {"proc/self/cgroup": "5:cpu:/a\n", f"{GROUP}/cpu/a/cpu.cfs_quota_us": "100000\n"},
        64,
    ),
    "both, the smaller counts": (
        {
            "proc/self/cgroup": "0::/\n5:cpu:/\n",
            f"{GROUP}/cpu.max": "700000 100000\n",
            f"{GROUP}/cpu/cpu.cfs_quota_us": "600000\n",
            f"{GROUP}/cpu/cpu.cfs_period_us": "100000\n",
        },
        6,
    ),
}


@pytest.mark.parametrize(("files", "expected"), CASES.values(), ids=CASES)
def test_the_cores_that_may_really_be_used(machine, files, expected):
    assert usable_cores(machine(files)) == expected


def test_the_affinity_counts_before_any_quota(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert usable_cores(machine(CASES["v2, own quota"][0])) == 1


def test_a_system_without_affinity_is_asked_for_its_cores(machine, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert usable_cores(machine({})) == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(machine({})) == 1


def test_this_machine_has_a_core():
    assert usable_cores() >= 1


# --- memory ----------------------------------------------------------------------------------------------
def test_the_memory_of_a_live_process_is_known_and_that_of_none_is_zero():
    assert resident(os.getpid()) > 1 << 20
    assert resident(2**22 + 1) == 0


def test_memory_of_its_own_counts():
    before = resident(os.getpid())
    block = bytearray(b"x") * (64 << 20)
    assert resident(os.getpid()) - before > 32 << 20
    del block


def test_shared_arenas_do_not_count():
    page = Page.create("millpond-test")
    before = resident(os.getpid())
    page.arena_in[: 48 << 20] = bytes(48 << 20)
    grown = resident(os.getpid()) - before
    page.close()
    assert grown < 24 << 20


def test_kills_for_want_of_memory_are_counted_where_the_kernel_tells(monkeypatch):
    assert oom_kills() >= 0
    monkeypatch.setattr("builtins.open", lambda *_: io.BytesIO(b"nr_free_pages 5\noom_kill 3\n"))
    assert oom_kills() == 3
    monkeypatch.setattr("builtins.open", lambda *_: io.BytesIO(b"nr_free_pages 5\n"))
    assert oom_kills() == 0

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("builtins.open", refuse)
    assert oom_kills() == 0
    assert resident(os.getpid()) == 0

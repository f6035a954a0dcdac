"""Reads what this machine lets its processes use, and how hard it feels it: limits, use, pressure.

From the process's own cgroup and all above it, version 1 and 2, and from the whole machine. What cannot be
read does not limit. Readings only: what follows from them is decided in `rules/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from millpond.rules.resources.fit import headroom

NO_LIMIT = 1 << 60  # what version 1 says when there is none, and more than any machine has
MICROSECONDS = 1e6
PIECE = 65536  # bytes that are read at once: a few files several times a second, so without more ado


class Level(NamedTuple):
    """One limit of memory and what of it is used, not counting what the kernel could drop at once."""

    limit: int
    used: int
    headroom: int = 0  # what of it should be left alone

    @property
    def free(self) -> int:
        """What may be handed out."""
        return self.limit - self.headroom - self.used


class Mount(NamedTuple):
    """A place where cgroups are to be seen."""

    folder: str
    top: str  # the group that this folder is; those above it are not to be seen


class Machine:
    """Where to read; `root` is for tests."""

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        self._root = str(root).rstrip("/")  # "" is the machine itself
        self._find()

    def _find(self) -> None:
        """The folders of our cgroups: a container may be moved, and its limits change while it runs."""
        mounts = self._mounts()
        paths = self._memberships()
        self._v2, self._v1, self._cpu = (
            _upwards(mounts.get(controller), paths.get(controller)) for controller in ("", "memory", "cpu")
        )
        self._limits_v2 = [(folder, self._least(folder, "memory.max", "memory.high")) for folder in self._v2]
        self._limits_v1 = [(folder, self._least(folder, "memory.limit_in_bytes")) for folder in self._v1]

    def look_again(self) -> None:
        """Read the limits anew."""
        self._find()

    def memory(self) -> list[Level]:
        """Every limit of memory that holds for us; the whole machine is the last."""
        levels = [
            Level(limit, self._used(folder, "anon", "shmem"), headroom(limit))
            for folder, limit in self._limits_v2
            if limit is not None
        ]
        levels += [
            Level(limit, self._used(folder, "total_rss", "total_shmem"), headroom(limit))
            for folder, limit in self._limits_v1
            if limit is not None
        ]
        table = _pairs(self._read(f"{self._root}/proc/meminfo").replace(":", ""))
        total = table.get("MemTotal", 0) * 1024
        if total:
            levels.append(Level(total, total - table.get("MemAvailable", 0) * 1024, headroom(total)))
        return levels

    def cores(self) -> float:
        """Cores that we may use, in tenths: quotas are often fractions."""
        try:
            found = float(len(os.sched_getaffinity(0)))
        except AttributeError:
            found = float(os.cpu_count() or 1)
        for folder in self._v2:
            quota, _, period = self._read(f"{folder}/cpu.max").partition(" ")
            found = min(found, _quotient(quota, period))
        for folder in self._cpu:
            quota = self._read(f"{folder}/cpu.cfs_quota_us")
            found = min(found, _quotient(quota, self._read(f"{folder}/cpu.cfs_period_us")))
        return max(0.1, int(found * 10 + 1e-6) / 10)

    def cpu_stall(self) -> float | None:
        """Seconds so far in which somebody waited for a core; None where that is not counted."""
        return self._stall("cpu", "some")

    def memory_stall(self) -> float | None:
        """Seconds so far in which everybody waited for memory."""
        return self._stall("memory", "full")

    def oom_kills(self) -> int | None:
        """How many processes of our own group the kernel has killed for memory; None: it does not say."""
        places = [(folder, "memory.events") for folder in self._v2[:1]]
        places += [(folder, "memory.oom_control") for folder in self._v1[:1]]
        counts = [_pairs(self._read(f"{folder}/{name}")).get("oom_kill") for folder, name in places]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    def _stall(self, what: str, who: str) -> float | None:
        places = [f"{folder}/{what}.pressure" for folder in self._v2[:1]]
        for place in (*places, f"{self._root}/proc/pressure/{what}"):
            for line in self._read(place).splitlines():
                kind, *fields = line.split()
                total = dict(field.partition("=")[::2] for field in fields).get("total", "")
                if kind == who and total.isdigit():
                    return int(total) / MICROSECONDS
        return None

    # --- files ----------------------------------------------------------------------------------------
    def _mounts(self) -> dict[str, Mount]:
        """Where each controller is mounted; '' is version 2."""
        found: dict[str, Mount] = {}
        for line in self._read(f"{self._root}/proc/self/mountinfo").splitlines():
            left, _, right = line.partition(" - ")
            fields, kind = left.split(), right.split()
            if len(fields) < 5 or len(kind) < 3:
                continue
            mount = Mount(self._root + fields[4], fields[3])
            if kind[0] == "cgroup2":
                found.setdefault("", mount)
            elif kind[0] == "cgroup":
                for controller in kind[2].split(","):
                    found.setdefault(controller, mount)
        return found

    def _memberships(self) -> dict[str, str]:
        found = {}
        for line in self._read(f"{self._root}/proc/self/cgroup").splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            found.update(dict.fromkeys(controllers.split(","), path))
        return found

    def _least(self, folder: str, *names: str) -> int | None:
        texts = [self._read(f"{folder}/{name}").strip() for name in names]
        limits = [int(text) for text in texts if text.isdigit()]
        return min((limit for limit in limits if limit < NO_LIMIT), default=None)

    def _used(self, folder: str, *names: str) -> int:
        table = _pairs(self._read(f"{folder}/memory.stat"))
        return sum(table.get(name, 0) for name in names)

    def _read(self, path: str) -> str:
        """What a file says; nothing if it cannot be read, since then it does not limit us."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            parts = []
            while part := os.read(file, PIECE):
                parts.append(part)
            return b"".join(parts).decode(errors="replace")
        except OSError:
            return ""
        finally:
            os.close(file)


class KernelKills:
    """Tells whether a death was the kernel's doing. A pool's evidence is a counter of the whole machine; this
    one asks whether that of our own group has risen too."""

    def __init__(self, count: Callable[[], int | None]) -> None:
        self._count = count
        self._known = count() or 0

    def took_one(self) -> bool:
        """Was there a kill that no other death accounts for? Where nobody counts, the pool is believed."""
        count = self._count()
        if count is None:
            return True
        if count <= self._known:
            return False
        self._known += 1  # one for each death: two workers may have gone at once
        return True


def _upwards(mount: Mount | None, path: str | None) -> list[str]:
    """The folder of a cgroup and those above it. In a container the path may be one of the host's: what leads
    to the top of what is mounted is no part of it here. If the rest is not to be seen, the top is our own."""
    if mount is None or path is None:
        return []
    parts, top = _parts(path), _parts(mount.top)
    if parts[: len(top)] == top:
        parts = parts[len(top) :]
    folders = ["/".join([mount.folder, *parts[:depth]]) for depth in range(len(parts), -1, -1)]
    return [folder for folder in folders if Path(folder).is_dir()]


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _pairs(text: str) -> dict[str, int]:
    lines = [line.split() for line in text.splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) >= 2 and line[1].isdigit()}


def _quotient(quota: str, period: str) -> float:
    try:
        return int(quota) / int(period) if int(quota) > 0 else float("inf")
    except (ValueError, ZeroDivisionError):
        return float("inf")


def tightest(levels: list[Level]) -> Level:
    """The level that has least to hand out."""
    return min(levels, key=lambda level: level.free, default=Level(NO_LIMIT, 0))

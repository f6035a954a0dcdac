"""How many cores this process may really use: affinity, then the cgroup's quota."""

from __future__ import annotations

import math
import os
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> int:
    """At least one. Reads the quota of the process's own cgroup and of all its ancestors, v2 and v1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    quotas = [quota for quota in (_quota_v2(root), _quota_v1(root)) if quota is not None]
    return max(1, min([cores, *(math.ceil(quota) for quota in quotas)]))


def _quota_v2(root: Path) -> float | None:
    shares: list[float] = []
    for folder in _folders(root, "", root / "sys/fs/cgroup"):
        try:
            quota, period = (folder / "cpu.max").read_text().split()[:2]
            if quota != "max":
                shares.append(int(quota) / int(period))
        except (OSError, ValueError):
            continue
    return min(shares, default=None)


def _quota_v1(root: Path) -> float | None:
    shares: list[float] = []
    for folder in _folders(root, "cpu", root / "sys/fs/cgroup/cpu"):
        try:
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            if quota > 0:
                shares.append(quota / int((folder / "cpu.cfs_period_us").read_text()))
        except (OSError, ValueError):
            continue
    return min(shares, default=None)


def _folders(root: Path, controller: str, mount: Path) -> list[Path]:
    """The folders of this process's cgroup and its ancestors under one controller ('' is v2)."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            own = mount / path.lstrip("/")
            return [own, *[parent for parent in own.parents if parent.is_relative_to(mount)]]
    return []

"""How many cores this process may really use: affinity, then the cgroup's quota."""

from __future__ import annotations

import math
import os


def usable_cores(root: str | os.PathLike[str] = "/") -> int:
    """At least one. Reads the quota of the process's own cgroup and of all its ancestors, v2 and v1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    quotas = [quota for quota in (_quota_v2(str(root)), _quota_v1(str(root))) if quota is not None]
    return max(1, min([cores, *(math.ceil(quota) for quota in quotas)]))


def _quota_v2(root: str) -> float | None:
    shares: list[float] = []
    for folder in _folders(root, "", f"{root}/sys/fs/cgroup"):
        try:
            quota, period = _read(f"{folder}/cpu.max").split()[:2]
            if quota != "max":
                shares.append(int(quota) / int(period))
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return min(shares, default=None)


def _quota_v1(root: str) -> float | None:
    shares: list[float] = []
    for folder in _folders(root, "cpu", f"{root}/sys/fs/cgroup/cpu"):
        try:
            quota = int(_read(f"{folder}/cpu.cfs_quota_us"))
            if quota > 0:
                shares.append(quota / int(_read(f"{folder}/cpu.cfs_period_us")))
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return min(shares, default=None)


def _folders(root: str, controller: str, mount: str) -> list[str]:
    """The folders of this process's cgroup and its ancestors under one controller ('' is v2)."""
    try:
        lines = _read(f"{root}/proc/self/cgroup").splitlines()
    except OSError:
        return []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            parts = [part for part in path.split("/") if part]
            return ["/".join([mount, *parts[:depth]]) for depth in range(len(parts), -1, -1)]
    return []


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()

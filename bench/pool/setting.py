"""The machine and the versions a run was made with, as the report states them."""

import importlib.metadata
import os
import platform
import time
from pathlib import Path

from peer import Peer


def describe(command: str, rounds: int, quick: bool) -> dict[str, str]:
    """Everything a reader needs to judge the figures; no path or name of the machine."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": command,
        "rounds": f"{rounds}" + (", smaller sizes (quick)" if quick else ""),
        "processor": f"{len(os.sched_getaffinity(0))} cores, {_processor()}",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "NumPy": _version("numpy"),
        "load before the run": f"{os.getloadavg()[0]:.2f}",
    }


def version(peer: type[Peer]) -> str:
    return platform.python_version() if peer.standard else _version(peer.module)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "from source"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()

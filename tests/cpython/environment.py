"""How a process that runs CPython's tests is started: its path, its variables, its command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
OVERLAY = HERE / "inside" / "overlay"
COMMAND = (sys.executable, "-m", "tests.cpython.inside.run")
LIST_LIMIT = 60.0


def variables(folders: tuple[Path, ...], **extra: str) -> dict[str, str]:
    """The environment in which ``test`` is the overlay and ``tests.cpython`` is this package."""
    inherited = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    path = [str(OVERLAY), str(REPOSITORY), *map(os.path.abspath, inherited)]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "MILLPOND_CPYTHON_TESTS": os.pathsep.join(str(folder) for folder in folders),
        **extra,
    }


def run_inside(arguments: list[str], folders: tuple[Path, ...]) -> subprocess.CompletedProcess[str]:
    """Run the inside program to its end and hand back what it printed."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=variables(folders),
        capture_output=True,
        text=True,
        timeout=LIST_LIMIT,
        check=False,
    )

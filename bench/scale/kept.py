"""Results on disk, one file for each part of the benchmark, so that a part can be run again by itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "build" / "bench-scale"


def read(name: str) -> dict[str, Any] | None:
    """What a part gave the last time; None if it was never run."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def write(name: str, found: dict[str, Any]) -> None:
    """Keep what a part gave."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")


def points() -> Iterator[dict[str, Any]]:
    """Every simulation there is, in the order in which they ended."""
    path = FOLDER / "points.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        yield json.loads(line)


def add_point(row: dict[str, Any]) -> None:
    """Keep one more simulation."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "points.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")

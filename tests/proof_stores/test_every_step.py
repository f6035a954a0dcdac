"""Whoever is stopped at whatever statement: nothing is lost, nothing is doubled, others finish everything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.proof_stores import scene, tripwire
from tests.proof_stores.scene import Notes
from tests.proof_stores.worlds import STORES, worlds
from tests.stores.places import place

LEAST = {
    "enqueuer": 8,
    "settler": 20,
    "rescuer": 8,
}  # statements: fewer would mean that the wire is not there
EVERY = {"memory": 1, "sqlite": 7, "postgres": 7, "redis": 1}  # which statements the short form tries
SLOW = pytest.mark.slow


def _strides(names: Iterable[str]) -> list[Any]:
    short = [(name, EVERY[name]) for name in names]
    return short + [pytest.param(name, 1, marks=SLOW) for name, stride in short if stride > 1]


@pytest.mark.parametrize("role", scene.ROLES)
@pytest.mark.parametrize(("name", "stride"), _strides(STORES))
def test_a_failure_at_any_statement_loses_and_doubles_nothing(
    name: str, stride: int, role: str, tmp_path: Path
):
    with worlds(name, tmp_path) as make:
        for number in count(1, stride):
            if not _fails_at(number, make(), role, Notes(tmp_path / f"notes-{number}"), late=False):
                break
        assert number > (LEAST[role] if name != "redis" else 1)
        for number in count(1):
            if not _fails_at(number, make(), role, Notes(tmp_path / f"late-{number}"), late=True):
                break
        assert number > 1


def _fails_at(number: int, store: Any, role: str, notes: Notes, *, late: bool) -> bool:
    """Play a role up to a failing statement, then let another node inherit; False if nothing failed."""
    before, play = scene.ROLES[role]
    scene.at(store, 0)
    before(store)
    wire = tripwire.Wire(store, number, tripwire.fail, late=late)
    try:
        play(store, notes)
    except tripwire.Stumbled:
        failed = True
    else:
        failed = False
    wire.remove()
    scene.inherit(store, notes)
    scene.check(store, notes)
    return failed


@pytest.mark.parametrize("role", scene.ROLES)
@pytest.mark.parametrize(
    ("name", "stride"), [*_strides(["sqlite", "redis"]), pytest.param("postgres", 1, marks=SLOW)]
)
def test_a_kill_at_any_statement_loses_and_doubles_nothing(name: str, stride: int, role: str, tmp_path: Path):
    assert _kill(name, role, tmp_path, str(stride), "before") > (LEAST[role] if name != "redis" else 1)


@pytest.mark.parametrize("role", scene.ROLES)
@pytest.mark.parametrize("name", ["sqlite", "redis", pytest.param("postgres", marks=SLOW)])
def test_a_kill_after_any_commit_loses_and_doubles_nothing(name: str, role: str, tmp_path: Path):
    assert _kill(name, role, tmp_path, "1", "after") > 1


def _kill(name: str, role: str, folder: Path, stride: str, when: str) -> int:
    """Kill a child at every statement or commit; returns the number at which nobody died any more."""
    with place(name, folder) as url:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.proof_stores.dying",
                f"{url}{{n}}",
                role,
                str(folder),
                stride,
                when,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)

"""The first upgrade without a stop, at 200 jobs a second among a million stored jobs: how long what paused.

MILLPOND_TEST_STORED=100000 has fewer stored.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from millpond.ids import new_id
from millpond.job import MICROSECONDS, NewJob
from tests.node.generations import ROOT, Process, calls, processes
from tests.node.test_upgrade import check_all_ran, some
from tests.node.waiting import until
from tests.stores.places import SHARED, place
from tests.stores.schemas import make_older, older

STORED = int(os.environ.get("MILLPOND_TEST_STORED", "1000000"))
RATE = 200  # jobs a second, of all producers together
SPELL = 15.0  # seconds before, between and after
LONGEST = 1.0  # second


def fill(store: Any, number: int) -> None:
    """Jobs for later, a tenth of them with a unique key that lapses by itself."""
    for first in range(0, number, 1000):
        part = range(first, min(first + 1000, number))
        store.enqueue([_stored(place) for place in part])


def _stored(place: int) -> NewJob:
    key: dict[str, Any] = {"unique": f"k{place}", "unique_for": 30 * 86_400.0} if place % 10 == 0 else {}
    return NewJob(id=new_id(), task="later", payload=b"{}", queue="later", delay=30 * 86_400.0, **key)


def longest(instants: Iterable[float]) -> float:
    """The longest time between two of them."""
    return max((later - sooner for sooner, later in pairwise(sorted(instants))), default=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_an_upgrade_among_a_million_jobs_pauses_nothing_for_a_second(name: str, tmp_path: Path):
    with place(name, tmp_path) as url, processes() as running:
        make_older(url)
        look = older(url)
        fill(look, STORED)
        ledgers = [tmp_path / "first", tmp_path / "second", tmp_path / "newer"]

        def start(generation: str, *paths: Path) -> None:
            running.append(Process("node", generation, url))
            nodes = len(look.counts().nodes) + 1
            until(lambda: len(look.counts().nodes) == nodes, "a node")
            running.extend(Process("producer", generation, url, str(path), str(RATE / 2)) for path in paths)

        start("older", *ledgers[:2])
        start("older")
        until(lambda: all(calls(path) for path in ledgers[:2]), "the first jobs")
        time.sleep(SPELL)
        took = migrate(url)
        running[2].stop()  # a producer and a node change places with newer ones
        running.append(Process("producer", "newer", url, str(ledgers[2]), str(RATE / 2)))
        start("newer")
        until(lambda: calls(ledgers[2]), "jobs of newer code")
        time.sleep(SPELL)
        for process in reversed(running[4:]):  # back to the older code
            process.stop()
        time.sleep(SPELL)
        running[1].stop()
        check_all_ran(url, dict(zip("abc", ledgers, strict=True)))
        tell(name, took, ledgers, url)
        look.close()


def migrate(url: str) -> float:
    """In a process of its own; returns the seconds that it took."""
    before = time.monotonic()
    subprocess.run([sys.executable, "-m", "millpond", "migrate", "--store", url], check=True, cwd=ROOT)
    return time.monotonic() - before


def tell(name: str, took: float, ledgers: list[Path], url: str) -> None:
    """Each call by itself, and the ends of jobs as the nodes wrote them down."""
    found = [call for path in ledgers for call in calls(path)]
    store: Any = older(url)
    ends = [job.finished_at / MICROSECONDS for job in some(store, [call.id for call in found])]
    store.close()
    slowest, pause = max(call.ended - call.began for call in found), longest(ends)
    print(
        f"\n{name}: {STORED:,} stored, {len(found):,} jobs; the migration took {took:.1f} s; the slowest "
        f"enqueue {slowest:.2f} s, the longest time without an end of a job {pause:.2f} s"
    )
    assert slowest < LONGEST
    assert pause < LONGEST

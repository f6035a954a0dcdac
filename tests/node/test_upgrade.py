"""An upgrade of the schema under running nodes and producers, real processes of both versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from millpond import App, Node
from millpond.job import JobState
from millpond.rules.node.health import is_ready
from millpond.store.open import open_store
from tests.node.generations import ROOT, Process, calls, processes
from tests.node.waiting import until
from tests.stores.places import SHARED, place
from tests.stores.schemas import after, before, make_older, older, set_version

SOME = 20  # jobs


def migrate(url: str) -> str:
    """As it is done by hand, in a process of its own."""
    command = [sys.executable, "-m", "millpond", "migrate", "--store", url]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


@pytest.mark.parametrize("name", SHARED)
def test_nodes_and_producers_of_both_versions_go_on_through_an_upgrade_and_back(name: str, tmp_path: Path):
    """Every job that was enqueued by either version has run, once; no call of a producer has failed."""
    with place(name, tmp_path) as url, processes() as running:
        make_older(url)
        look = older(url)
        ledgers = {generation: tmp_path / generation for generation in ("older", "newer")}

        def start(generation: str) -> list[Process]:
            producer = Process("producer", generation, url, str(ledgers[generation]), "50")
            running.extend([Process("node", generation, url), producer])
            number = len(running) // 2
            until(lambda: len(look.counts().nodes) == number, f"a node of {generation} code")
            return running[-2:]

        def more(generation: str) -> None:
            number = len(calls(ledgers[generation])) + SOME
            until(lambda: len(calls(ledgers[generation])) >= number, f"jobs of {generation} code")

        old = start("older")
        more("older")
        assert f"version {before(url)} to {after(url)}" in " ".join(migrate(url).split())
        more("older")
        new = start("newer")
        more("newer")
        more("older")
        for process in reversed(new):  # back to the older code alone
            process.stop()
        more("older")
        old[1].stop()
        check_all_ran(url, ledgers)
        old[0].stop()
        look.close()


def check_all_ran(url: str, ledgers: dict[str, Path]) -> None:
    store: Any = open_store(url)
    ids = [call.id for ledger in ledgers.values() for call in calls(ledger)]
    until(lambda: all(job and job.state is JobState.COMPLETED for job in some(store, ids)), "the end of all")
    assert {(job.attempt, job.errors, job.lost) for job in some(store, ids)} == {(1, 0, 0)}
    assert sum(queue.states.get(JobState.COMPLETED, 0) for queue in store.counts().queues) == len(ids)
    store.close()


def some(store: Any, ids: list[str]) -> list[Any]:
    """All of them, page by page."""
    return [job for first in range(0, len(ids), 500) for job in store.get(ids[first : first + 500])]


def tripled(number: int) -> int:
    return 3 * number


@pytest.mark.parametrize("name", SHARED)
def test_a_node_whose_code_is_too_old_claims_nothing_more_and_says_so(name: str, tmp_path: Path, caplog):
    with place(name, tmp_path) as url:
        app = App(url)
        task = app.task(name="tripled")(tripled)
        app.store.migrate()
        with Node(app, lease=2) as node:
            assert task.enqueue(1).result(timeout=30) == 3
            set_version(url, 99)
            report = until(
                lambda: (seen := node.report()).schema_trouble and seen, "the report to tell of it"
            )
            verdict = is_ready(report)
            assert (verdict.ok, verdict.reason) == (False, "schema")
            assert "takes code from version 99 on" in verdict.sentence
            assert [line for line in caplog.messages if "nothing new begins" in line]
            assert not node._state.may_claim()
            set_version(url, after(url), before(url))
            until(lambda: node.report().schema_trouble is None, "the report to be fine again")
            assert task.enqueue(2).result(timeout=30) == 6
        app.store.close()


def test_a_node_writes_down_which_schema_its_code_knows(tmp_path: Path):
    with place("sqlite", tmp_path) as url:
        app = App(url)
        app.task(name="tripled")(tripled)
        with Node(app):
            (record,) = app.store.counts().nodes
        assert b'"schema":%d' % after(url) in record.info
        app.store.close()

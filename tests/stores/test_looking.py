"""Looking for jobs to cancel or discard: so many at a time, and not in the transaction that changes them."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from millpond.job import JobState
from millpond.store.protocol import Filter, Retention
from millpond.store.sql import search
from tests.stores.acting import Node, new_job, opened, put, put_many, tally
from tests.stores.places import place

VERBS = {
    "cancel": lambda store: store.cancel(Filter(task="rare")),
    "discard": lambda store: store.prune(Retention(), Filter(task="rare")),
}


def end_all(store: Any) -> None:
    node = Node(store)
    while jobs := node.claim(500):
        node.settle(*jobs)


@pytest.mark.parametrize("verb", VERBS)
def test_few_jobs_among_very_many_are_found_in_looks_of_a_bounded_size(sql_store, monkeypatch, verb):
    """A page that ended only when it was full looked at everything there is."""
    monkeypatch.setattr(search, "FEW", 0)
    monkeypatch.setattr(search, "LOOKED", 50)
    put(sql_store, new_job("rare"))
    put_many(sql_store, 400)
    put(sql_store, new_job("rare"))
    if verb == "discard":
        end_all(sql_store)
    looks = 0
    real = sql_store.read

    def counted(make: Any) -> Any:
        nonlocal looks
        looks += 1
        return real(make)

    monkeypatch.setattr(sql_store, "read", counted)
    assert VERBS[verb](sql_store) == 2
    assert looks >= 8


@pytest.mark.parametrize("few", [True, False])
def test_what_ended_long_ago_keeps_no_file_locked_while_jobs_to_cancel_are_looked_for(
    tmp_path, monkeypatch, few
):
    """All of it was read inside the transaction: ten million jobs were seconds, and others got StoreBusy."""
    number, looked = 2000, 100
    monkeypatch.setattr(search, "LOOKED", looked)
    if not few:
        monkeypatch.setattr(search, "FEW", 0)
    with place("sqlite", tmp_path) as url:
        store: Any = opened(url)
        put(store, new_job("rare", delay=60.0))
        put_many(store, number)
        end_all(store)
        steps = _steps_of(store)
        assert store.cancel(Filter(queue="default")) == 1
        assert tally(store) == {"completed": number, "cancelled": 1}
        assert max(steps["read"]) < 40 * looked
        assert max(steps["write"]) < number  # one step for each job would be more
        store.close()


def _steps_of(store: Any) -> dict[str, list[int]]:
    """How many steps SQLite's machine takes for each statement from now on, in transactions that write and in
    others."""
    steps: dict[str, list[int]] = {"read": [0], "write": [0]}
    kind = "read"

    def note(event: dict[str, Any]) -> None:
        nonlocal kind
        if event["sql"].startswith("BEGIN"):
            kind = "write" if "IMMEDIATE" in event["sql"] else "read"
        steps[kind].append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    store._open().trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    return steps


def test_a_job_that_has_ended_otherwise_meanwhile_is_not_discarded(sql_store, monkeypatch):
    """Between the look and the transaction it was replayed: it has not ended any more."""
    from millpond.job import Failure, Raised

    node = Node(sql_store)
    first, second = put_many(sql_store, 2)
    node.settle(*node.claim(), outcome=Raised(Failure("E", "no"), final=True))
    real = sql_store._page_below

    def late(*given: Any) -> Any:
        found = real(*given)
        sql_store.replay(Filter(ids=(first,)))
        return found

    monkeypatch.setattr(sql_store, "_page_below", late)
    assert sql_store.prune(Retention(), Filter(states=(JobState.DEAD,))) == 1
    assert [job and job.state for job in sql_store.get([first, second])] == ["queued", None]

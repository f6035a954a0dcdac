"""Stores that the last version with schema 2 has written are brought up to date with every job they have.

`schema_2` has what it wrote: jobs of every kind, as SQL and as the store answered when asked for them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import msgspec
import psycopg
import pytest

from millpond.errors import SchemaOutdated
from millpond.store.open import open_store
from millpond.store.protocol import Filter
from tests.stores.acting import AnyStore, Node, new_job
from tests.stores.places import address_and_name, place

WRITTEN = Path(__file__).parent / "schema_2"


def written(sort: str) -> list[dict[str, Any]]:
    return list(json.loads((WRITTEN / f"{sort}_2.json").read_text()))


def write(sort: str, url: str) -> None:
    """Put there what the older version has written."""
    text = (WRITTEN / f"{sort}_2.sql").read_text()
    if sort == "sqlite":
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(text)
        connection.close()
        return
    address, name = address_and_name(url)
    with psycopg.connect(address) as server:
        server.execute(text.replace("{schema}", name).encode())


@pytest.fixture(params=["sqlite", "postgres"])
def upgraded(request, tmp_path):
    """The store, and the jobs that it must have."""
    with place(request.param, tmp_path) as url:
        write(request.param, url)
        store: Any = open_store(url)
        with pytest.raises(SchemaOutdated, match="millpond migrate"):
            store.counts()
        assert store.migrate()
        assert store.migrate() == []
        yield store, written(request.param)
        store.close()


def all_jobs(store: AnyStore) -> list[dict[str, Any]]:
    jobs = sorted(store.search(Filter(), 1000).jobs, key=lambda job: job.id)
    return list(json.loads(msgspec.json.encode(jobs)))


def test_every_job_is_kept_as_it_was(upgraded):
    store, jobs = upgraded
    assert len(jobs) == 16
    assert all_jobs(store) == jobs
    assert [json.loads(msgspec.json.encode(job)) for job in store.get([job["id"] for job in jobs])] == jobs


def test_the_numbers_and_settings_are_kept(upgraded):
    store, jobs = upgraded
    queues = {line.queue: line for line in store.counts().queues}
    assert sum(sum(line.states.values()) for line in queues.values()) == len(jobs)
    assert (queues["c"].paused, queues["r"].rate) == (True, 5.0)
    assert [entry.data for entry in store.log("log")] == [b"1", b"2"]
    assert store.record("doc").value == b"{}"


def test_what_waits_runs_what_runs_is_settled_and_what_is_dead_is_replayed(upgraded):
    store, jobs = upgraded
    node = Node(store)
    node.sequence, held = (told := store.held("n1")).sequence, told.jobs
    assert {job.task for job in held} == {"keyed", "running"}
    running = store.get([job.id for job in held])
    for job in running:
        node.settle(job)
    assert [job.task for job in node.claim(9, "k")] == ["parked"]  # the slot is free, for one
    (parent,) = node.claim(9, "p")
    node.settle(parent)
    assert [job.task for job in node.claim(9, "p")] == ["child"]
    assert store.replay(Filter(task="failed")) == 1
    assert [job.task for job in node.claim(9, "default")] == ["failed"]
    unique = next(job for job in jobs if job["task"] == "unique")
    assert store.enqueue([new_job("unique", unique="k")])[0].id == unique["id"]

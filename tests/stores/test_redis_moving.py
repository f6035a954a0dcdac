"""A Redis namespace that version 1 wrote is moved to buckets with every job as it was.

`redis_version_1.json` is such a namespace, key by key as text in Latin-1, written by its code: jobs
in every state, with what that version itself answered about them (`jobs`, `counts`) at the time `now`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from millpond.errors import SchemaOutdated, StoreRefused
from millpond.job import Job, JobState, Slot
from millpond.store.open import open_store
from millpond.store.protocol import Filter, Retention, Tick
from millpond.store.redis import schema
from tests.servers.redis import client_for
from tests.stores.acting import DAY, AnyStore, Node, new_job, put, states, tally, the, travel
from tests.stores.places import address_and_name

RECORDED = json.loads(Path(__file__).with_name("redis_version_1.json").read_text())
NAMES: dict[str, list[str]] = RECORDED["names"]
JOBS = {job["id"]: msgspec.convert(job, Job) for job in RECORDED["jobs"]}
Opened = tuple[AnyStore, Any]


def write_key(client: Any, key: bytes, kind: str, value: Any) -> None:
    """Write one recorded key."""

    def raw(text: str) -> bytes:
        return text.encode("latin-1")

    if kind == "hash":
        client.hset(key, mapping={raw(field): raw(text) for field, text in value.items()})
    elif kind == "zset":
        client.zadd(key, {raw(member): score for member, score in value})
    elif kind == "list":
        client.rpush(key, *map(raw, value))
    elif kind == "set":
        client.sadd(key, *map(raw, value))
    else:
        client.set(key, raw(value))


@pytest.fixture
def old(redis_url: str) -> Iterator[Opened]:
    """A handle of today on the recorded namespace, at the time of the record; and a client beside it."""
    _, namespace = address_and_name(redis_url)
    store: Any = open_store(redis_url)
    store.clock.frozen = RECORDED["now"]
    with client_for(redis_url) as client:
        for key, (kind, value) in RECORDED["keys"].items():
            write_key(client, b"{%b}:%b" % (namespace.encode(), key.encode("latin-1")), kind, value)
        yield store, client
    store.close()


@pytest.fixture
def moved(old: Opened) -> AnyStore:
    """The same, moved after the lease of its node has run out."""
    store, _ = old
    travel(store, 20)
    said, _ = store.migrate()
    assert "version 1 to 2" in said
    return store


def keys_of(store: AnyStore, client: Any) -> dict[str, Any]:
    """What there is, without the schema's version."""
    prefix = store._server.key.removesuffix("schema")  # type: ignore[attr-defined]
    found = sorted(key.decode("latin-1") for key in client.scan_iter(f"{prefix}*", count=1000))
    return {key.removeprefix(prefix): client.dump(key.encode("latin-1")) for key in found}


def test_every_job_is_what_it_was(moved):
    assert dict(zip(JOBS, moved.get(list(JOBS)), strict=True)) == JOBS
    found = {
        queue.queue: {str(name): n for name, n in queue.states.items()} for queue in moved.counts().queues
    }
    assert found == RECORDED["counts"]


def test_every_job_is_found_newest_first(moved):
    found: list[Job] = []
    cursor = None
    while True:
        page = moved.search(Filter(), 7, cursor)
        found += page.jobs
        if (cursor := page.cursor) is None:
            break
    assert [job.id for job in found] == sorted(JOBS, reverse=True)
    for state in JobState:
        expected = sorted((job.id for job in JOBS.values() if job.state is state), reverse=True)
        assert [job.id for job in moved.search(Filter(states=(state,)), 100).jobs] == expected


def test_waiting_jobs_are_claimed_in_their_order(moved):
    node = Node(moved, "new")
    first, urgent, *rest = NAMES["queued"]
    assert [job.id for job in node.claim()] == [urgent, *sorted([first, *rest])]
    assert [job.id for job in node.claim(queue="a")] == NAMES["aside"]
    assert [job.id for job in node.claim(queue="u")] == NAMES["unique"]
    assert [job.id for job in node.claim(queue="d")] == NAMES["expiring"]
    travel(moved, 60)
    node.renew()
    assert {job.id for job in node.claim(queue="d")} == set(NAMES["scheduled"])
    (again,) = node.claim(queue="r")
    assert (again.id, again.errors) == (NAMES["retried"][0], 1)


def test_dependents_start_with_the_end_of_their_parent(moved):
    node = Node(moved, "new")
    assert [job.id for job in node.claim(queue="p")] == NAMES["parent"]
    node.settle(the(moved, NAMES["parent"][0]))
    assert states(moved, NAMES["blocked"]) == ["queued"] * 2
    assert {job.id for job in node.claim(queue="p")} == set(NAMES["blocked"])


def test_jobs_of_a_dead_node_are_rescued_and_those_at_its_slot_follow(moved):
    """Of the two that ran, one was asked to end: it is not run again, and its child falls."""
    node = Node(moved, "new")
    for _ in range(4):
        travel(moved, 5)
        node.renew()
    assert moved.rescue("new").jobs == 2
    assert states(moved, NAMES["running"]) == ["queued", "cancelled"]
    assert states(moved, NAMES["child of running"]) == ["cancelled"]
    ran = []
    while jobs := node.claim(queue="s"):
        ran += [job.id for job in jobs]
        node.settle(*jobs)
    assert sorted(ran) == sorted([NAMES["running"][0], *NAMES["parked"]])


def test_unique_keys_ticks_settings_and_records_hold(moved):
    waiting, _, lasting = (JOBS[job] for job in NAMES["unique"])
    for known in (waiting, lasting):
        (answer,) = moved.enqueue([new_job("once", queue="u", unique=known.unique)])
        assert (answer.id, answer.created) == (known.id, False)
    at = JOBS[NAMES["tick"][0]].created_at
    recorded = [key.split("\0") for key, _ in RECORDED["keys"]["ticks"][1]]
    ticks = [Tick(name, int(instant), None) for name, instant in recorded] + [Tick("nightly", at, None)]
    assert moved.plan(ticks) == [False, False, True]
    assert (moved.record("plan").value, moved.record("plan").version) == (b"{}", 1)
    assert [entry.data for entry in moved.log("events")] == [b"one", b"two"]
    assert [queue.paused for queue in moved.counts().queues if queue.queue == "paused"] == [True]
    moved.configure(slot=Slot("wide", 7))


def test_dead_jobs_are_replayed_and_run(moved):
    node = Node(moved, "new")
    assert moved.replay(Filter(states=(JobState.DEAD,))) == 5
    assert sorted(job.id for job in node.claim(queue="q")) == sorted(NAMES["dead"] + NAMES["replayable"])
    node.settle(*(the(moved, job) for job in NAMES["dead"] + NAMES["replayable"]))
    assert tally(moved, "q") == {"completed": 21}


def test_what_has_ended_is_pruned_and_leaves_no_key(moved, old):
    _, client = old
    travel(moved, 8 * DAY)
    assert moved.prune(Retention()) == len(NAMES["completed"] + NAMES["cancelled"])
    assert tally(moved, "q") == {"dead": 5}
    travel(moved, 90 * DAY)
    assert moved.prune(Retention()) == len(NAMES["dead"] + NAMES["replayable"])
    kept = keys_of(moved, client)
    assert [
        key for key in kept if key.startswith(("state:c", "state:dead", "ended:", "ticks", "moving"))
    ] == []
    left = {
        job
        for name, jobs in NAMES.items()
        for job in jobs
        if JOBS[job].state not in ("completed", "dead", "cancelled")
    }
    assert {job.id for job in moved.search(Filter(), 100).jobs} == left


def test_a_move_that_is_killed_after_each_step_is_gone_on_with(old, monkeypatch):
    store, client = old
    travel(store, 20)
    server = store._server
    run, steps = server._run, []

    def killed(name, arguments, manner):
        answer = run(name, arguments, manner)
        if name == "regroup" and answer != b"0":
            steps.append(answer)
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(schema, "PAGE", 5)
    monkeypatch.setattr(server, "_run", killed)
    said: list[str] = []
    while not said:
        with pytest.raises(SchemaOutdated, match="version 1"):
            open_store(store.url).counts()
        with suppress(KeyboardInterrupt):
            said = store.migrate()
    assert len(steps) > 5
    assert dict(zip(JOBS, store.get(list(JOBS)), strict=True)) == JOBS
    assert [key for key in keys_of(store, client) if key.startswith("moving:")] == []
    assert store.migrate() == []


def test_a_step_moves_a_bounded_number_of_jobs(old, monkeypatch):
    """Three thousand more that have completed, as the older version left them."""
    store, client = old
    prefix = store._server.key.removesuffix("schema")
    model = NAMES["completed"][0]
    more = [new_job().id for _ in range(3000)]
    for field in ("head", "where", "place", "body", "end"):
        value = RECORDED["keys"][f"job:{field}"][1][model].encode("latin-1")
        client.hset(f"{prefix}job:{field}", mapping=dict.fromkeys(more, value))
    client.zadd(f"{prefix}state:completed", dict.fromkeys(more, 0))
    client.rpush(f"{prefix}ended:completed", *(f"{JOBS[model].finished_at} {job}" for job in more))
    client.hincrby(f"{prefix}counts", "q\0completed", 3000)
    left = [sum(sizes(client, prefix))]
    run = store._server._run

    def watched(name, arguments, manner):
        answer = run(name, arguments, manner)
        if name == "regroup":
            left.append(sum(sizes(client, f"{prefix}moving:")))
        return answer

    travel(store, 20)
    monkeypatch.setattr(store._server, "_run", watched)
    store.migrate()
    assert max(before - after for before, after in pairwise(left)) <= 600
    assert {job.state for job in store.get(more)} == {JobState.COMPLETED}
    assert tally(store, "q") == {"completed": 3016, "dead": 5}
    travel(store, 8 * DAY)
    assert store.prune(Retention()) == 3000 + len(NAMES["completed"] + NAMES["cancelled"])


def sizes(client: Any, prefix: str) -> list[int]:
    """How many jobs there are under the names of version 1."""
    counts: list[Callable[[str], int]] = [client.hlen, client.zcard, client.llen]
    names = ("job:head", "state:completed", "ended:completed")
    return [count(f"{prefix}{name}") for count, name in zip(counts, names, strict=True)]


def test_many_may_move_at_once_and_nothing_is_moved_twice(old, redis_url, monkeypatch):
    store, client = old
    travel(store, 20)
    monkeypatch.setattr(schema, "PAGE", 5)
    together = threading.Barrier(4)
    errors: list[Exception] = []

    def migrate() -> None:
        other: Any = open_store(redis_url)
        other.clock.frozen, other.clock.shift = store.clock.frozen, store.clock.shift
        together.wait()
        try:
            other.migrate()
        except Exception as error:
            errors.append(error)
        other.close()

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert dict(zip(JOBS, store.get(list(JOBS)), strict=True)) == JOBS
    before = keys_of(store, client)
    assert store._server.run("regroup", ("0", 5)) == b"0"
    assert keys_of(store, client) == before


def test_nothing_is_moved_while_a_node_lives(old):
    store, client = old
    before = keys_of(store, client)
    with pytest.raises(StoreRefused, match="stop them first: n1"):
        store.migrate()
    assert keys_of(store, client) == before
    travel(store, 20)
    assert len(store.migrate()) == 2


def test_a_process_of_the_older_version_that_still_runs_fails_before_it_writes(moved, old):
    """The first command of its every step about jobs is one on the hash of all heads."""
    _, client = old
    heads = moved._server.key.replace("schema", "job:head")
    for command in (("HSETNX", heads, "a", "b"), ("HMGET", heads, "a"), ("HGET", heads, "a")):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            client.execute_command(*command)


def test_a_namespace_without_jobs_is_moved(redis_url):
    store = open_store(redis_url)
    _, namespace = address_and_name(redis_url)
    with client_for(redis_url) as client:
        client.set(f"{{{namespace}}}:schema", 1)
    with pytest.raises(SchemaOutdated, match="millpond migrate"):
        store.counts()
    assert len(store.migrate()) == 2
    put(store, new_job())
    store.close()

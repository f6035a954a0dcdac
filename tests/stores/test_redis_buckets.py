"""No key in Redis grows with the history of its namespace: jobs are kept in buckets of about a minute."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from millpond.job import Failure, JobState, Raised
from millpond.store.protocol import Claim, Filter, Retention, Tick
from tests.servers.redis import client_for
from tests.stores.acting import DAY, AnyStore, Node, dead_job, new_job, opened, put, tally, travel
from tests.stores.places import address_and_name

FAILED = Raised(Failure("E", "no"), final=True)
WINDOW = 65.536  # seconds of one bucket
ENDS = (JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED)
COUNTS = {b"hash": "hlen", b"zset": "zcard", b"list": "llen", b"set": "scard"}


@pytest.fixture
def store(redis_url):
    store = opened(redis_url)
    store.clock.freeze()
    yield store
    store.close()


@pytest.fixture
def node(store):
    return Node(store)


@pytest.fixture
def client(redis_url):
    with client_for(redis_url) as client:
        yield client


@pytest.fixture
def sizes(redis_url, client):
    """How many members each key of the namespace has."""
    prefix = "{" + address_and_name(redis_url)[1] + "}:"

    def each(command: Callable[[Any, bytes], object], keys: list[bytes]) -> list[Any]:
        with client.pipeline(transaction=False) as pipeline:
            for key in keys:
                command(pipeline, key)
            return list(pipeline.execute())

    def look() -> dict[str, int]:
        keys = list(client.scan_iter(f"{prefix}*", count=1000))
        kinds = dict(zip(keys, each(lambda pipeline, key: pipeline.type(key), keys), strict=True))
        counted = [key for key in keys if kinds[key] in COUNTS]
        found = each(lambda pipeline, key: getattr(pipeline, COUNTS[kinds[key]])(key), counted)
        return {key.decode().removeprefix(prefix): size for key, size in zip(counted, found, strict=True)}

    return look


def timed_id(store: AnyStore, number: int) -> str:
    """An id of version 7 that was made at the store's time."""
    stamp = f"{store.clock.now() // 1000:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7000-8000-{number:012x}"


def mixed_ids(store: AnyStore, number: int) -> list[str]:
    """Made now, nine of ten by us and the others by a user, at random."""
    return [str(uuid.uuid4()) if place % 10 == 9 else timed_id(store, place) for place in range(number)]


def pass_a_minute(store: AnyStore, node: Node) -> None:
    """In the store's time, with the node alive."""
    travel(store, WINDOW)
    node.renew()


def finish(store: AnyStore, node: Node, number: int) -> list[str]:
    """Jobs of this minute: most complete, some die, some are cancelled."""
    ids = put(store, *(new_job(id=job) for job in mixed_ids(store, number)))
    assert store.cancel(Filter(ids=tuple(ids[::20]))) == len(ids[::20])
    node.settle(*node.claim(number // 20), outcome=FAILED)
    while jobs := node.claim(1000):
        node.settle(*jobs)
    return ids


# --- sizes ------------------------------------------------------------------------------------------------
def test_no_key_grows_with_the_jobs_that_have_ended(store, node, sizes):
    largest = []
    for _ in range(10):
        finish(store, node, 2000)
        pass_a_minute(store, node)
        largest.append(max(sizes().values()))
    assert tally(store) == {"completed": 18_000, "dead": 1000, "cancelled": 1000}
    assert max(largest) == largest[0] <= 2000


def test_nothing_is_left_of_jobs_that_were_deleted(store, node, sizes):
    for _ in range(3):
        finish(store, node, 100)
        pass_a_minute(store, node)
    travel(store, 91 * DAY)
    assert store.prune(Retention()) == 300
    assert sorts(sizes()).isdisjoint({"job", "state", "ended"})
    node.renew()
    finish(store, node, 100)
    assert store.prune(Retention(), Filter(states=ENDS)) == 100
    assert sorts(sizes()).isdisjoint({"job", "state"})


def sorts(keys: Iterable[str]) -> set[str]:
    return {key.partition(":")[0] for key in keys}


def test_a_bucket_whose_last_dead_job_is_replayed_is_not_searched_for_dead_ones(store, node, sizes):
    job = dead_job(store, node)
    assert sizes()["state:dead"] == 1
    assert store.replay(Filter(ids=(job,))) == 1
    assert "state:dead" not in sizes()


def test_ticks_are_kept_by_the_hour_and_for_as_long_as_they_were(store, sizes):
    now, hour = store.clock.now(), 3_600_000_000
    ticks = [Tick("often", now - 40 * 24 * hour + number * hour // 10, None) for number in range(300)]
    assert store.plan(ticks) == [True] * 300
    assert max(size for key, size in sizes().items() if key.startswith("ticks:")) <= 11
    travel(store, 6 * DAY)
    store.prune(Retention())
    assert store.plan(ticks) == [False] * 300
    travel(store, 2 * DAY)
    store.prune(Retention())
    assert [key for key in sizes() if key.startswith("ticks")] == []


# --- across buckets ---------------------------------------------------------------------------------------
def test_a_search_goes_through_the_buckets_newest_first(store, node):
    ids: list[str] = []
    for _ in range(5):
        ids += finish(store, node, 40)
        pass_a_minute(store, node)
    for states in (ENDS, (JobState.DEAD,), ()):
        expected = [
            job.id for job in store.get(sorted(ids, reverse=True)) if not states or job.state in states
        ]
        for size in (1, 7, 1000):
            assert pages(store, Filter(states=states), size) == expected


def pages(store: AnyStore, chosen: Filter, size: int) -> list[str]:
    """All that a search finds, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = store.search(chosen, size, cursor)
        found += [job.id for job in page.jobs]
        if (cursor := page.cursor) is None:
            return found


def test_one_step_takes_jobs_of_many_buckets(store, node):
    ids: list[str] = []
    for _ in range(30):
        ids += put(store, *(new_job(id=job) for job in mixed_ids(store, 10)))
        pass_a_minute(store, node)
    jobs = node.claim(300)
    assert sorted(job.id for job in jobs) == sorted(ids)
    node.settle(*jobs[:100])
    node.settle(*jobs[100:200], outcome=FAILED)
    assert store.cancel(Filter()) == 100
    assert node.exchange().cancelling == tuple(sorted(job.id for job in jobs[200:]))
    node.settle(*jobs[200:])
    assert store.replay(Filter(states=(JobState.DEAD,))) == 100
    assert tally(store) == {"completed": 200, "queued": 100}
    assert len(node.claim(300)) == 100


# --- what it costs ----------------------------------------------------------------------------------------
def calls(client: Any) -> int:
    """How many commands the server has run, those in scripts included."""
    ours = {"cmdstat_info", "cmdstat_client|setinfo"}
    return sum(facts["calls"] for name, facts in client.info("commandstats").items() if name not in ours)


def test_jobs_that_were_made_together_cost_no_more_commands_than_one(store, node, client):
    """Fields are read and written for a whole bucket at once, however many jobs of it there are."""

    def cost(number: int) -> int:
        pass_a_minute(store, node)
        put(store, *(new_job(id=timed_id(store, place)) for place in range(2 * number)))
        first = node.claim(number)
        before = calls(client)
        answer = node.exchange(
            settlements=[node.verdict(job) for job in first], claims=[Claim("default", number)]
        )
        after = calls(client)
        node.settle(*answer.claimed)
        assert len(answer.claimed) == number
        return after - before

    cost(2)
    few, many = cost(2), cost(200)
    assert many <= few <= 40

"""Very many queues and hostile text in every field: every answer is bounded, and none holds the server up."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from millpond import App
from millpond.api.json_route import encoded
from millpond.api.overview import overview
from millpond.api.routes import metrics
from millpond.api.routes import overview as looking
from millpond.job import NewJob, Slot
from tests.api.acting import complete, die
from tests.api.asking import ADMIN, Client, gate_for
from tests.api.test_forged import paths

MANY = 1_000
MEBIBYTE = 1 << 20
HOSTILE = ("-eyJ", "://:", "a://ba://b", "token=[", "\x1b[2J", "\u202e", "[" * 40, '\\"', "a=", "\U0001f600")


def fill(app: App, text: str = "x") -> str:
    """A job in each of many queues, all with large hostile fields; returns a dead one."""
    payload = json.dumps({"path": (text * MEBIBYTE)[: MEBIBYTE // 4], text: [text] * 100}).encode()[:MEBIBYTE]
    jobs = [
        NewJob(
            id=f"01900000-0000-7000-8000-{number:012x}",
            task="resize",
            payload=b'{"path": "a"}',
            queue=f"q{number:04}",
        )
        for number in range(MANY)
    ]
    app.store.enqueue(jobs)
    app.store.enqueue(
        [NewJob(id="01900000-0000-7000-9000-000000000000", task="resize", payload=payload, queue="images")]
    )
    return die(app, message=text * 20_000, error=text[:20])


@pytest.fixture(params=HOSTILE[:3])
def full(request: pytest.FixtureRequest, app: App) -> tuple[App, str]:
    return app, fill(app, request.param)


async def test_every_route_answers_and_no_answer_is_without_bound(full):
    app, job = full
    client = Client(gate_for(app), ADMIN)
    for path in paths(job):
        answered = await client.get(path)
        assert answered.status in (200, 404), (path, answered.body[:200])
        assert len(answered.body) < MEBIBYTE, path
    for window in ("1h", "6h", "24h"):
        answered = await client.get("/api/v1/statistics", window=window)
        assert len(answered.body) < MEBIBYTE
    found = (await client.get(f"/api/v1/jobs/{job}")).json
    assert "more characters" in found["payload"]["path"]
    client.gate.close()


async def test_a_forged_row_with_a_mebibyte_in_each_of_its_names_is_shown_in_part(app):
    """No `enqueue` takes such names; whoever can write to the store can."""
    text = "-eyJ" * (MEBIBYTE // 4)
    app.store.enqueue(
        [
            NewJob(
                id=f"01900000-0000-7000-8000-{number:012x}",
                task=text,
                payload=b"{}",
                queue="images",
                unique=f"{number}{text}",
                slots=(Slot(f"{number}{text}", 1),),
            )
            for number in range(20)
        ]
    )
    job = die(app, message=text, error=text)
    client = Client(gate_for(app), ADMIN)
    for path in (*paths(job), "/api/v1/jobs?limit=500"):
        answered = await client.get(path)
        assert answered.status in (200, 404), path
        assert len(answered.body) < MEBIBYTE // 4, path
    client.gate.close()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/overview",
        "/api/v1/statistics",
        "/api/v1/queues",
        "/api/v1/queues/images",
        "/api/v1/jobs",
        "/api/v1/nodes",
        "/api/v1/workers",
        "/api/v1/pools",
        "/api/v1/decisions",
        "/api/v1/dead/causes",
        "/api/v1/events/recent",
        "/api/v1/recurring",
        "/api/v1/audit",
        "/api/v1/tasks",
        "/scale",
    ],
)
async def test_the_server_answers_others_while_a_document_is_made(app, monkeypatch, path):
    """Were it made on the event loop, nothing could be asked before it is done."""
    app.get_task("resize").enqueue("a")
    client = Client(gate_for(app), ADMIN)
    begun, may_end = threading.Event(), threading.Event()
    made = encoded

    def slow(content: Any) -> bytes:
        begun.set()
        assert may_end.wait(20), "something else was answered meanwhile"
        return made(content)

    monkeypatch.setattr("millpond.api.context.encoded", slow)
    asking = asyncio.create_task(client.get(path))
    assert await asyncio.to_thread(begun.wait, 20)
    assert (await client.get("/livez")).status == 200
    assert not asking.done()
    may_end.set()
    assert (await asking).status == 200
    client.gate.close()


async def test_the_overview_is_made_beside_the_loop_and_once_for_all_who_ask(app, monkeypatch):
    client = Client(gate_for(app))
    threads = []
    made = overview

    def watched(*args: Any, **kwargs: Any) -> Any:
        threads.append(threading.current_thread())
        return made(*args, **kwargs)

    monkeypatch.setattr("millpond.api.context.overview", watched)
    await asyncio.gather(*(client.get("/api/v1/queues") for _ in range(5)))
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
    client.gate.close()


async def test_statistics_have_columns_for_the_busiest_queues_and_one_for_the_others(app, monkeypatch):
    monkeypatch.setattr(looking, "MOST_QUEUES", 2)
    for queue, number in (("a", 1), ("b", 3), ("c", 2), ("d", 1)):
        for _ in range(number):
            app.get_task("resize").using(queue=queue).enqueue("x")
    complete(app, "d")
    client = Client(gate_for(app))
    found = (await client.get("/api/v1/statistics")).json
    assert sorted(found["queues"]) == ["b", "c"]
    assert sum(found["other"]["enqueued"]) == 2
    assert found["other"]["open"][-1] == 1
    assert sum(found["all"]["enqueued"]) == 7
    asked = (await client.get("/api/v1/statistics", queue=["a", "d"])).json
    assert sorted(asked["queues"]) == ["a", "d"]
    assert sum(asked["all"]["enqueued"]) == 2
    assert sum(asked["other"]["enqueued"]) == 0
    client.gate.close()


async def test_metrics_have_series_for_the_largest_queues_and_one_for_the_others(app, monkeypatch):
    monkeypatch.setattr(metrics, "MOST_QUEUES", 2)
    for queue, number in (("a", 1), ("b", 3), ("c", 2), ("d", 1)):
        for _ in range(number):
            app.get_task("resize").using(queue=queue).enqueue("x")
    client = Client(gate_for(app), ADMIN)
    text = (await client.get("/metrics")).body.decode()
    assert 'millpond_queue_jobs{queue="b",state="queued"} 3.0' in text
    assert 'millpond_queue_jobs{queue="(other)",state="queued"} 2.0' in text
    assert 'queue="a"' not in text
    client.gate.close()


async def test_a_listener_that_comes_while_things_change_misses_nothing(app, gate):
    """Its first words are put into bytes in a thread: what is told meanwhile is in line behind them."""
    client = Client(gate)
    async with client.listening() as first:
        await first.next("overview")
        async with client.listening() as second:
            app.get_task("resize").enqueue("a")
            seen = (await second.next("overview"))["data"]
            while not seen["queues"]:
                seen = {**seen, **(await second.next("delta"))["data"]}
            assert seen["queues"][0]["states"]["queued"] == 1

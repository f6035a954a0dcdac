"""The live stream: what is told, to how many, at what cost, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from millpond.api.security.gate import Gate
from millpond.api.stream import broadcaster as watching
from tests.api.asking import ADMIN, OLD, READ, Client, gate_for


async def test_a_listener_is_told_everything_first_and_changes_then(app, gate):
    app.get_task("resize").enqueue("a")
    async with Client(gate).listening() as reader:
        hello = await reader.next("hello")
        assert hello["data"]["session"]["scope"] == "none"
        overview = (await reader.next("overview"))["data"]
        assert overview["queues"][0]["states"]["queued"] == 1
        app.get_task("resize").enqueue("b")
        while True:
            delta = (await reader.next("delta"))["data"]
            if "queues" in delta:
                break
        assert delta["queues"][0]["states"]["queued"] == 2
        assert "pools" not in delta


async def test_events_are_told_with_their_numbers_and_resumed_after_the_last(app, gate):
    app.store.log("events", [b'{"kind":"NodeStarted","text":"one"}', b'{"kind":"NodeStarted","text":"two"}'])
    async with Client(gate).listening() as reader:
        first = [await reader.next("event") for _ in range(2)]
        assert [event["id"] for event in first] == ["1", "2"]
        app.store.log("events", [b'{"kind":"JobDied","text":"three"}'])
        assert (await reader.next("event"))["data"]["text"] == "three"
    async with Client(gate).listening({"last-event-id": "1"}) as reader:
        assert [(await reader.next("event"))["data"]["text"] for _ in range(2)] == ["two", "three"]
    async with Client(gate).listening(last_event_id=2) as reader:
        assert (await reader.next("event"))["id"] == "3"


async def test_a_line_of_the_log_cannot_begin_an_event_of_its_own(app, gate):
    app.store.log(
        "events", [b'{"text": "x\\n\\nevent: goodbye\\ndata: {}"}', b"not json\n\nevent: goodbye\n\n"]
    )
    async with Client(gate).listening() as reader:
        texts = [(await reader.next("event"))["data"]["text"] for _ in range(2)]
    assert texts == ["x\n\nevent: goodbye\ndata: {}", "not json\n\nevent: goodbye\n\n"]


async def test_an_admin_action_is_seen_by_those_who_look(app, gate):
    app.get_task("resize").enqueue("a")
    async with Client(gate).listening() as reader:
        await reader.next("overview")
        await Client(gate, ADMIN).post("/api/v1/queues/images/pause")
        found = (await reader.next("event"))["data"]
        assert (found["kind"], found["facts"]["action"]) == ("Action", "queue.pause")


async def test_many_listeners_cost_the_store_as_much_as_one(app):
    gate = gate_for(app, limits={"streams": 50, "streams_each": 50})
    async with asyncio.TaskGroup() as group, asyncio.timeout(30):
        stop = asyncio.Event()

        async def listen() -> None:
            async with Client(gate).listening() as reader:
                await reader.next("delta")
                await stop.wait()

        for _ in range(50):
            group.create_task(listen())
        while len(gate._desk.watch) < 50:  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.01)
        began, rounds = time.monotonic(), gate._desk.gathering.rounds
        async with Client(gate).listening(client="other") as reader:
            assert reader.status is None or reader.status != 200
            await asyncio.wait_for(reader.task, 5)
            assert reader.status == 503, "one too many"
        stop.set()
        assert gate._desk.gathering.rounds - rounds <= time.monotonic() - began + 2
    gate.close()


async def test_those_who_come_at_once_share_one_poller(app):
    gate = gate_for(app)
    pollers = set()
    async with contextlib.AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(Client(gate).listening()) for _ in range(10)]
        for reader in readers:
            await reader.next("overview")
        pollers = {task for task in asyncio.all_tasks() if "Watch._poll" in repr(task.get_coro())}
        app.store.log("events", [b'{"text":"one"}', b'{"text":"two"}'])
        for reader in readers:
            assert [(await reader.next("event"))["id"] for _ in range(2)] == ["1", "2"]
    assert len(pollers) == 1
    gate.close()


async def test_nobody_is_asked_while_nobody_listens(app, gate):
    async with Client(gate).listening() as reader:
        await reader.next("overview")
    task = gate._desk.watch._task
    assert task is not None
    await asyncio.wait_for(task, 5)
    rounds = gate._desk.gathering.rounds
    async with Client(gate).listening() as reader:
        await reader.next("overview")
    assert gate._desk.gathering.rounds <= rounds + 1


async def test_one_address_gets_only_its_share(app):
    gate = gate_for(app, limits={"streams_each": 2})
    async with Client(gate).listening() as one, Client(gate).listening() as two:
        await one.next("hello")
        await two.next("hello")
        async with Client(gate).listening() as three:
            await asyncio.wait_for(three.task, 5)
            assert three.status == 503
        async with Client(gate).listening(client="10.0.0.9") as four:
            await four.next("hello")
        async with Client(gate).listening(headers=await session_of(gate)) as five:
            await five.next("hello")
    assert len(gate._desk.watch) == 0
    gate.close()


async def session_of(gate: Gate) -> dict[str, str]:
    """A session counts by itself: several people may come from one address."""
    found = await Client(gate).post("/api/v1/session", {"token": ADMIN})
    return {"cookie": found.headers["set-cookie"].partition(";")[0]}


async def test_a_reader_that_does_not_keep_up_is_dropped(app, monkeypatch):
    monkeypatch.setattr(watching, "STILL", 0.0)
    gate = gate_for(app, limits={"behind": 2})
    gate._desk.gathering.every = 0.01
    async with Client(gate).listening() as reader:
        await reader.next("overview")
        reader.takes.clear()
        listener = next(iter(gate._desk.watch._listeners))
        for _ in range(5):
            listener.tell(b": more\n\n")
        await asyncio.wait_for(reader.task, 5)
        assert listener.reason == "slow"
    assert len(gate._desk.watch) == 0
    gate.close()


async def test_a_server_that_stops_says_goodbye(app):
    gate = gate_for(app)
    async with Client(gate).listening() as reader:
        await reader.next("overview")
        gate.close()
        assert (await reader.next("goodbye"))["data"] == {"reason": "shutdown"}
        await asyncio.wait_for(reader.task, 5)
    async with Client(gate).listening() as reader:
        await asyncio.wait_for(reader.task, 5)
        assert reader.status == 503


async def test_a_stream_ends_with_the_token_it_was_opened_with(app, monkeypatch):
    gate = gate_for(app, open_reads=False)
    for token, status in ((None, 401), (OLD, 401)):
        async with Client(gate, token).listening() as reader:
            await asyncio.wait_for(reader.task, 5)
            assert reader.status == status
    ends = time.time() + 0.3
    real = gate._desk.keyring.look
    monkeypatch.setattr(
        gate._desk.keyring, "look", lambda text, now: real(text, now)._replace(expires_at=ends)
    )
    async with Client(gate, READ).listening() as reader:
        await reader.next("overview")
        assert (await reader.next("goodbye"))["data"] == {"reason": "expired"}
    gate.close()


@pytest.mark.parametrize("said", ["-1", "x", "9" * 30, "1.5", "٣"])
async def test_a_last_event_id_that_is_none_is_passed_over(gate, said):
    async with Client(gate).listening({"last-event-id": said.encode().decode("latin-1")}) as reader:
        await reader.next("overview")

"""What a real node does for those who look at it from elsewhere: tells of itself, keeps a journal, obeys."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from millpond import App
from millpond.api.schemas import responses
from millpond.node.commands import Commands, grace_of, send
from millpond.node.node import Node
from millpond.node.observability.event_log import EACH, Journal
from millpond.node.observability.events import JobDied, NodeEvents
from millpond.store.open import open_store
from tests.api import program
from tests.api.asking import ADMIN, Client, gate_for
from tests.node.waiting import until


def app_at(folder: Path) -> App:
    """The app of the program, on a store of the test's own."""
    app = App(f"sqlite:///{folder / 'jobs.db'}")
    app.pool("default", workers=(1, 1), max_tasks_per_child=1000)
    for task in program.app.tasks.values():
        app.task(name=task.name)(task.function)
    return app


async def test_a_node_tells_of_its_workers_replaces_one_and_drains_when_told(tmp_path):
    app = app_at(tmp_path)
    client = Client(gate_for(app), ADMIN)
    node = Node(app)
    node.start()
    try:
        worker = (await _busy_worker(client, app, tmp_path))["pid"]
        (told,) = (await client.get("/api/v1/nodes")).json["nodes"]
        responses.Node.model_validate(told)
        assert (told["phase"], told["pid"], told["pools"]) == ("running", os.getpid(), ["default"])
        assert told["workers"][0]["recycle"]["jobs_left"] is not None
        path = f"/api/v1/nodes/{told['id']}"
        assert (await client.post(f"{path}/workers/{worker}/recycle")).status == 202
        until(
            lambda: (
                worker not in [w.pid for p in node.report().pools for w in p.workers if w.state != "draining"]
            )
        )
        (tmp_path / "go").touch()
        until(
            lambda: [w.pid for p in node.report().pools for w in p.workers if w.pid != worker],
            "another worker",
        )
        send(app.store, "other-1-00000000", "drain")
        assert (await client.post(f"{path}/drain", {"grace": 5})).status == 202
        until(lambda: node.wait(0.0), "the end of the node")
        assert node.told_to_drain == 5.0
    finally:
        node.stop(0.0)
    until(lambda: app.store.log("events"), "the journal")
    kinds = [json.loads(entry.data)["kind"] for entry in app.store.log("events")]
    assert kinds[0] == "NodeStarted"
    assert kinds[-1] == "NodeStopped"
    client.gate.close()
    app.store.close()


async def _busy_worker(client: Client, app: App, folder: Path) -> dict[str, Any]:
    """The worker that runs a job, once the dashboard has heard of it."""
    app.get_task("hold").enqueue(str(folder / "go"))
    until((folder / "go.begun").exists, "the job")
    while True:
        client.gate._desk.gathering.forget()
        busy = [w for w in (await client.get("/api/v1/workers")).json["workers"] if w["state"] == "busy"]
        if busy:
            return dict(busy[0])


def _fail(_: Any) -> None:
    raise RuntimeError("this one cannot be obeyed")


def test_only_the_very_incarnation_that_was_named_obeys_and_only_once(tmp_path):
    store = open_store("memory://")
    heard: list[Any] = []
    name = ["host-1-aaaa"]
    commands = Commands(store, lambda: name[0], {"drain": heard.append, "fail": _fail})
    send(store, "host-1-bbbb", "drain")
    store.log("commands", [b"nonsense", b"[]", b'{"node": "host-1-aaaa", "command": "explode"}'])
    send(store, "host-1-aaaa", "fail")
    number = send(store, "host-1-aaaa", "drain", grace=3)
    commands.look()
    commands.look()
    assert [line["grace"] for line in heard] == [3]
    assert number == 6
    name[0] = "host-1-bbbb"  # it was born again under that name: what was said before is over
    commands.look()
    assert len(heard) == 1
    store.close()


def test_a_grace_that_is_no_number_is_the_usual_one():
    strange: list[Any] = [None, "x", True, float("nan"), []]
    assert [grace_of({"grace": value}, 25.0) for value in strange] == [25.0] * 5
    assert grace_of({"grace": -5}, 25.0) == 0.0
    assert grace_of({"grace": 1e12}, 25.0) == 86_400.0


def test_a_storm_of_events_is_folded_in_the_journal():
    store = open_store("memory://")
    events = NodeEvents()
    journal = Journal(events, store, lambda: "host-1-aaaa")
    for number in range(1000):
        journal.take(
            JobDied(str(number), "resize", "images", 1, None, "error", "ValueError", "password=hunter2")
        )
    journal.flush()
    journal.flush()
    lines = [json.loads(entry.data) for entry in store.log("events")]
    assert len(lines) == EACH
    assert sum(line["folded"] for line in lines) == 1000 - EACH
    assert "hunter2" not in json.dumps(lines)
    journal.close()
    events.close()
    store.close()

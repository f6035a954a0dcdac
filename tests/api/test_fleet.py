"""Routes about queues, pools, nodes and workers, recurring tasks, statistics, and the audit of changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millpond import App
from millpond.api.schemas import responses
from millpond.api.series import recent
from millpond.node.commands import LOG
from millpond.node.scaling.overrides import read_bounds
from millpond.store.protocol import Filter, Minute
from tests.api.acting import complete, die, node_tells
from tests.api.asking import ADMIN, READ, Client, gate_for


async def test_the_overview_says_it_all_on_every_store(everywhere):
    app = everywhere
    client = Client(gate_for(app))
    for path in "abc":
        app.get_task("resize").enqueue(path)
    complete(app)
    die(app)
    node_tells(app)
    said = {"pool": "images", "node": "n", "before": 1, "after": 2, "sentence": "more", "binding": "memory"}
    app.store.log("decisions", [json.dumps(said).encode()])
    found = (await client.get("/api/v1/overview")).json
    responses.Overview.model_validate(found)
    (queue,) = found["queues"]
    assert queue["states"] == {
        "blocked": 0,
        "scheduled": 0,
        "queued": 1,
        "running": 0,
        "completed": 1,
        "dead": 1,
        "cancelled": 0,
    }
    assert (queue["max_wait"], queue["pools"], queue["nodes"]) == (10.0, ["images"], 1)
    assert (queue["recent"]["enqueued"], queue["recent"]["dead"]) == (3, 1)
    (pool,) = found["pools"]
    assert (pool["workers"], pool["busy"], pool["idle"], pool["waiting"], pool["wanted"]) == (2, 1, 1, 1, 2)
    decision = pool["decision"]
    assert (decision["from"], decision["to"], decision["capped"]) == (1, 2, "memory")
    assert (decision["current"], decision["target"], decision["action"]) == (1, 2, "grow")
    assert pool["policy"] == "ScaleForWait(max_wait=10)"
    assert pool["timeout"] == 30.0
    assert found["nodes"][0]["cpu"] == {"used": 1.25, "limit": 2}
    assert found["totals"]["workers"] == 2
    assert (found["totals"]["begun"], found["totals"]["claimed"]) == (1, 0)
    assert found["totals"]["per_minute"] == queue["recent"]["per_minute"] > 0
    assert 300 <= queue["recent"]["seconds"] < 360
    assert [alert["kind"] for alert in found["alerts"]] == ["dead"]
    assert found["store"]["ok"]
    client.gate.close()


async def test_statistics_are_columns_of_one_length_on_every_store(everywhere):
    app = everywhere
    client = Client(gate_for(app))
    for path in "abc":
        app.get_task("resize").enqueue(path)
    complete(app)
    for window, points in (("1h", 60), ("6h", 72), ("24h", 288)):
        found = (await client.get("/api/v1/statistics", window=window)).json
        responses.Statistics.model_validate(found)
        columns = found["queues"]["images"]
        assert {len(column) for column in columns.values()} == {points} == {len(found["times"])}
        assert sum(columns["enqueued"]) == 3
        assert sum(columns["completed"]) == 1
        assert columns["open"][-1] == 2
        assert columns["open"][0] == 0
        assert [value for value in columns["wait_p95"] if value is not None]
        assert found["all"] == columns
    assert (await client.get("/api/v1/statistics", window="1y")).status == 422
    client.gate.close()


async def test_jobs_that_were_replayed_were_not_open_before_they_came(everywhere):
    app = everywhere
    client = Client(gate_for(app))
    for path in "abc":
        app.get_task("resize").enqueue(path)
    die(app)
    die(app)
    app.store.replay(Filter())
    columns = (await client.get("/api/v1/statistics", window="1h")).json["all"]
    assert (columns["open"][0], columns["open"][-1]) == (0, 3)
    client.gate.close()


async def test_a_queue_is_paused_limited_and_resumed(app, admin):
    app.get_task("resize").enqueue("a")
    paused = await admin.post("/api/v1/queues/images/pause")
    responses.Queue.model_validate(paused.json)
    assert paused.json["paused"] is True
    assert app.store.counts().queues[0].paused
    assert (await admin.put("/api/v1/queues/images/rate", {"rate": 5})).json["rate"] == 5
    assert (await admin.put("/api/v1/queues/images/rate", {"rate": None})).json["rate"] is None
    assert (await admin.post("/api/v1/queues/images/resume")).json["paused"] is False
    assert (await admin.get("/api/v1/queues/images")).json["tasks"] == ["resize"]
    assert (await admin.post("/api/v1/queues/imagse/pause")).status == 404, "a typing error makes no queue"
    assert (await admin.post("/api/v1/queues/No%20Name/pause")).status == 422


async def test_a_pool_gets_other_bounds_and_its_own_back(app, admin):
    node_tells(app)
    found = await admin.put("/api/v1/pools/images/workers", {"min": 2, "max": 12})
    responses.Pool.model_validate(found.json)
    assert found.json["override"] == {"min": 2, "max": 12}
    assert read_bounds(app.store, "images") == (2, 12)
    shown = (await admin.get("/api/v1/pools/images")).json
    assert [worker["pid"] for worker in shown["worker_items"]] == [101, 102]
    assert (await admin.ask("DELETE", "/api/v1/pools/images/workers", {})).json["override"] is None
    assert read_bounds(app.store, "images") is None
    assert (await admin.put("/api/v1/pools/images/workers", {"min": 5, "max": 2})).status == 422
    assert (await admin.put("/api/v1/pools/nothing/workers", {"min": 1, "max": 2})).status == 404


async def test_nodes_tell_of_their_workers(app, admin):
    node_tells(app, worker_ids=[None, "host-1-aaaa/images/7"])  # the first as of an older version
    (node,) = (await admin.get("/api/v1/nodes")).json["nodes"]
    responses.Node.model_validate(node)
    assert (node["state"], node["phase"], node["worker_count"]) == ("live", "running", 2)
    assert node["workers"][0]["recycle"] == {"jobs_left": 60, "memory_left": 4000, "age_left": 30.0}
    busy, idle = node["workers"]
    assert (busy["id"], idle["id"]) == ("host-1-aaaa/images/pid-101", "host-1-aaaa/images/7")
    assert (busy["done"], busy["completed"], busy["failed"]) == (40, 38, 2)
    assert (busy["started_at"], busy["age"]) == ("2027-01-15T07:59:00.000000Z", 60.0)
    assert (busy["job_started_at"], idle["job_started_at"]) == ("2027-01-15T07:59:58.500000Z", None)
    assert busy["last_seen_at"] == "2027-01-15T07:59:59.900000Z"
    assert (await admin.get("/api/v1/nodes/host-1-aaaa")).json["id"] == "host-1-aaaa"
    assert (await admin.get("/api/v1/nodes/host-2")).status == 404
    workers = (await admin.get("/api/v1/workers")).json
    responses.Workers.model_validate(workers)
    assert len(workers["workers"]) == 2


@pytest.mark.parametrize(
    "info",
    [
        b"", b"[]", b"null", b"\xff", b'{"report": 5}', b'{"report": {"pools": 5}}',
        b'{"report": {"pools": [5, {}]}}',
        b'{"report": {"pools": [{"name": "x", "workers": [[1, 2], 5], "queues": 3, "least": "a"}]}}',
        b'{"pid": "x", "queues": [1], "report": {"at": "now", "age": true, "phase": 5}}',
    ],
)  # fmt: skip
async def test_a_node_that_tells_nonsense_is_shown_without_it(app, admin, info):
    app.store.renew("strange-1", "host", info)
    for path in ("/api/v1/nodes", "/api/v1/overview", "/api/v1/workers", "/api/v1/pools"):
        assert (await admin.get(path)).status == 200
    (node,) = (await admin.get("/api/v1/nodes")).json["nodes"]
    responses.Node.model_validate(node)


async def test_workers_beyond_the_list_are_counted(app, admin):
    states = {"busy": 250, "idle": 5, "starting": 2, "draining": 0, "dead": 1}
    node_tells(app, states=states, rss=1 << 30, running=250, claimed=400)
    found = (await admin.get("/api/v1/overview")).json
    (pool,) = found["pools"]
    assert (pool["workers"], pool["busy"], pool["idle"], pool["starting"]) == (257, 250, 5, 2)
    assert pool["memory"] == found["nodes"][0]["memory"]["used"] == 1 << 30
    assert found["nodes"][0]["worker_count"] == found["totals"]["workers"] == 257
    assert (found["totals"]["begun"], found["totals"]["claimed"]) == (250, 150)


async def test_the_throughput_follows_within_two_minutes(app, gate):
    def minute(number: int, completed: int) -> Minute:
        return Minute("images", number, {"completed": completed, "dead": completed // 10}, {}, {})

    minutes = [minute(5, 600), minute(9, 60), minute(10, 30)]
    found = recent(minutes, 10 * 60 + 30.0)
    assert (found["per_minute"], found["failed_per_minute"]) == (60.0, 6.0)
    assert (found["completed"], found["seconds"]) == (690, 330)
    assert recent(minutes, 12 * 60 + 1.0)["per_minute"] == 0


async def test_a_late_queue_that_is_limited_says_so(app, admin):
    app.store.configure(queue="images", rate=2.0)
    app.get_task("resize").enqueue("a")
    node_tells(app, max_wait=0.000001)
    (alert,) = (await admin.get("/api/v1/overview")).json["alerts"]
    assert alert["text"].endswith("longer than 0.0 s: it starts 2 a second at most")


async def test_commands_name_the_very_node_that_shall_obey(app, admin):
    node_tells(app)
    path = "/api/v1/nodes/host-1-aaaa"
    drained = await admin.post(f"{path}/drain", {"grace": 3})
    responses.Command.model_validate(drained.json)
    assert drained.status == 202
    assert (await admin.post(f"{path}/workers/101/recycle")).status == 202
    said = [json.loads(entry.data) for entry in app.store.log(LOG)]
    assert [(line["node"], line["command"]) for line in said] == [
        ("host-1-aaaa", "drain"),
        ("host-1-aaaa", "recycle"),
    ]
    assert said[0]["grace"] == 3
    assert said[1]["worker"] == 101
    assert (await admin.post(f"{path}/workers/999/recycle")).status == 404
    assert (await admin.post("/api/v1/nodes/host-2/drain")).status == 404
    assert len(app.store.log(LOG)) == 2


async def test_every_change_leaves_a_line_in_the_audit_log(app, gate, admin):
    node_tells(app)
    job = app.get_task("resize").enqueue("a").id
    dead = (app.get_task("send").enqueue(1).id, die(app, "mail"))[0]
    changes: list[tuple[str, str, Any, str]] = [
        ("POST", "/api/v1/jobs", {"task": "resize", "arguments": ["a"]}, "job.enqueue"),
        ("POST", f"/api/v1/jobs/{job}/cancel", {}, "job.cancel"),
        ("POST", f"/api/v1/jobs/{dead}/retry", {}, "job.retry"),
        ("POST", f"/api/v1/jobs/{job}/discard", {}, "job.discard"),
        ("POST", "/api/v1/jobs/bulk", {"action": "cancel", "filter": {"queue": "mail"}}, "jobs.bulk"),
        ("POST", "/api/v1/queues/images/pause", {}, "queue.pause"),
        ("POST", "/api/v1/queues/images/resume", {}, "queue.resume"),
        ("PUT", "/api/v1/queues/images/rate", {"rate": 1}, "queue.rate"),
        ("PUT", "/api/v1/pools/images/workers", {"min": 1, "max": 2}, "pool.resize"),
        ("DELETE", "/api/v1/pools/images/workers", {}, "pool.reset"),
        ("POST", "/api/v1/nodes/host-1-aaaa/drain", {}, "node.drain"),
        ("POST", "/api/v1/nodes/host-1-aaaa/workers/101/recycle", {}, "worker.recycle"),
        ("POST", "/api/v1/dead/replay", {"filter": {}, "all": True}, "dead.replay"),
        ("POST", "/api/v1/dead/discard", {"filter": {}, "all": True}, "dead.discard"),
        ("POST", "/api/v1/session", {"token": ADMIN}, "session.open"),
        ("POST", "/api/v1/queues/nowhere/pause", {}, "queue.pause"),
    ]
    for method, path, body, _ in changes:
        await admin.ask(method, path, body)
    lines = (await admin.get("/api/v1/audit")).json
    responses.Audit.model_validate(lines)
    assert [line["action"] for line in lines["audit"]] == [name for _, _, _, name in reversed(changes)]
    assert lines["audit"][0]["status"] == 404
    assert {line["who"] for line in lines["audit"]} == {"admin"}
    assert {line["from"] for line in lines["audit"]} == {"127.0.0.1"}
    assert ADMIN not in json.dumps(lines)
    assert (await Client(gate, READ).get("/api/v1/audit")).status == 403


async def test_a_change_that_was_refused_at_the_gate_leaves_no_line(app, gate):
    await Client(gate).post("/api/v1/queues/images/pause")
    await Client(gate, READ).post("/api/v1/queues/images/pause")
    await Client(gate).post("/api/v1/session", {"token": "wrong"})
    assert app.store.log("audit") == []


async def test_recurring_tasks_are_seen_triggered_and_switched(tmp_path):
    app = App("memory://")

    @app.recurring(every="1h", name="fetch")
    def fetch() -> None: ...

    @app.recurring(every="2h", name="process", depends_on=[fetch], blocks=[fetch])
    def process() -> None: ...

    client = Client(gate_for(app), ADMIN)
    listed = (await client.get("/api/v1/recurring")).json["recurring"]
    assert [task["name"] for task in listed] == ["fetch", "process"]
    assert listed[1]["depends_on"] == [{"name": "fetch", "mode": "success_since"}]
    assert listed[1]["blocks"] == ["fetch"]
    assert (await client.post("/api/v1/recurring/fetch/trigger")).json == {"name": "fetch", "triggered": True}
    assert (await client.post("/api/v1/recurring/fetch/trigger")).json["triggered"] is False
    assert (await client.post("/api/v1/recurring/fetch/disable")).json["enabled"] is False
    assert (await client.get("/api/v1/recurring/fetch")).json["disabled_by"] == "admin"
    assert (await client.post("/api/v1/recurring/fetch/enable")).json["enabled"] is True
    assert (await client.get("/api/v1/recurring/fetch/history")).status == 200
    for path in ("/api/v1/recurring/nothing", "/api/v1/recurring/nothing/history"):
        assert (await client.get(path)).json["type"].endswith("unknown-recurring")
    assert (await client.post("/api/v1/recurring/nothing/trigger")).status == 404
    assert (await client.get("/api/v1/overview")).json["recurring"]["total"] == 2
    client.gate.close()


async def test_the_store_being_away_is_said_and_overcome(app, gate, monkeypatch):
    from millpond.errors import StoreUnavailable

    client = Client(gate)
    assert (await client.get("/readyz")).status == 200
    real = app.store.counts

    def away(**_: Any) -> Any:
        raise StoreUnavailable("nobody there")

    monkeypatch.setattr(app.store, "counts", away)
    gate._desk.gathering.forget()
    assert (await client.get("/readyz")).status == 503
    assert (await client.get("/livez")).status == 200
    shown = (await client.get("/api/v1/overview")).json
    assert not shown["store"]["ok"]
    assert shown["alerts"][0]["kind"] == "store"
    monkeypatch.setattr(app.store, "counts", real)
    gate._desk.gathering.forget()
    assert (await client.get("/readyz")).status == 200


async def test_one_look_at_the_store_serves_everybody(app, gate):
    client = Client(gate)
    for path in ("overview", "queues", "pools", "nodes", "workers", "decisions", "events/recent") * 5:
        await client.get(f"/api/v1/{path}")
    assert gate._desk.gathering.rounds <= 3

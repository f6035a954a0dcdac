"""Routes about jobs and dead letters, on every store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from millpond import App
from millpond.api.schemas import responses
from millpond.job import JobState
from tests.api.acting import complete, die
from tests.api.asking import ADMIN, Client, gate_for

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e' OR 1=1; DROP TABLE jobs; --"


def resize(app: App, path: str = "a.png", **options: Any) -> str:
    return app.get_task("resize").using(**options).enqueue(path).id


def ids(found: Any) -> list[str]:
    assert found.status == 200, found.body
    responses.JobPage.model_validate(found.json)
    return [job["id"] for job in found.json["jobs"]]


async def test_jobs_are_listed_by_state_queue_task_id_time_and_text(everywhere):
    app = everywhere
    client = Client(gate_for(app))
    dead = (resize(app, "gone.png"), die(app))[0]
    first, second = resize(app, "b.png"), resize(app, HOSTILE)
    mail = app.get_task("send").enqueue(5).id
    listed = "/api/v1/jobs"
    assert ids(await client.get(listed)) == [mail, second, first, dead]
    assert ids(await client.get(listed, state="dead")) == [dead]
    assert ids(await client.get(listed, state=["dead", "queued"], queue="images")) == [second, first, dead]
    assert ids(await client.get(listed, task="send")) == [mail]
    assert ids(await client.get(listed, id=[first, mail])) == [mail, first]
    assert ids(await client.get(listed, text="GONE.png")) == [dead]
    assert ids(await client.get(listed, text="no such file")) == [dead]
    now = datetime.now(UTC)
    assert ids(await client.get(listed, created_before=(now - timedelta(hours=1)).isoformat())) == []
    assert len(ids(await client.get(listed, created_after=(now - timedelta(hours=1)).isoformat()))) == 4
    assert ids(await client.get(listed, created_after=(now + timedelta(hours=1)).isoformat())) == []
    shown = await client.get(f"/api/v1/jobs/{dead}")
    responses.Job.model_validate(shown.json)
    assert shown.json["attempts"][0]["traceback"].endswith("no such file")
    assert shown.json["can"] == {"cancel": False, "retry": True, "discard": True}
    assert "dead" in shown.json["why"]
    assert (await client.get(f"/api/v1/jobs/{second}")).json["payload"]["path"] == HOSTILE
    client.gate.close()


async def test_pages_follow_one_another_without_gap_or_repetition(everywhere):
    app = everywhere
    client = Client(gate_for(app, limits={"scan": 4}))
    made = [resize(app, f"{number}.png") for number in range(23)][::-1]
    for query in ({"limit": 5}, {"limit": 5, "text": "png"}, {"limit": 1, "queue": "images"}):
        seen, cursor, calls = [], None, 0
        while cursor is not None or not calls:
            found = await client.get(
                "/api/v1/jobs", **query, **({} if cursor is None else {"cursor": cursor})
            )
            seen += ids(found)
            cursor, calls = found.json["cursor"], calls + 1
            assert found.json["scanned"] <= 5
        assert seen == made, query
    client.gate.close()


async def test_jobs_are_enqueued_cancelled_retried_and_discarded(everywhere):
    app = everywhere
    client = Client(gate_for(app), ADMIN)
    options = {"priority": 3, "delay": "10m", "unique": "x"}
    said = {"task": "resize", "arguments": {"path": "a", "width": 5}, "options": options}
    made = await client.post("/api/v1/jobs", said)
    assert made.status == 201
    again = await client.post("/api/v1/jobs", said)
    assert (again.status, again.json) == (200, {"id": made.json["id"], "created": False, "task": "resize"})
    job = app.handle(made.json["id"])
    assert (job.job().state, job.job().priority) == (JobState.SCHEDULED, 3)
    path = f"/api/v1/jobs/{job.id}"
    assert (await client.post(f"{path}/retry")).status == 409
    assert (await client.post(f"{path}/discard")).status == 409
    assert (await client.post(f"{path}/cancel")).json == {"id": job.id, "cancelled": True}
    assert (await client.post(f"{path}/cancel")).status == 409
    assert job.job().state is JobState.CANCELLED
    assert (await client.post(f"{path}/discard")).status == 200
    assert (await client.get(path)).status == 404
    dead = (resize(app), die(app))[0]
    assert (await client.post(f"/api/v1/jobs/{dead}/retry")).json == {"id": dead, "replayed": True}
    assert app.handle(dead).job().state is JobState.QUEUED
    client.gate.close()


async def test_many_dead_jobs_are_replayed_by_cause_step_by_step(everywhere):
    app = everywhere
    client = Client(gate_for(app), ADMIN)
    files = [(resize(app), die(app, message=f"no such file: '{number}.png'"))[0] for number in range(7)]
    other = (resize(app), die(app, message="out of memory", error="MemoryError"))[0]
    causes = (await client.get("/api/v1/dead/causes")).json
    responses.Causes.model_validate(causes)
    assert [cause["count"] for cause in causes["causes"]] == [7, 1]
    assert causes["complete"]
    chosen = causes["causes"][0]["filter"]
    dry = await client.post("/api/v1/dead/replay", {"filter": chosen, "dry_run": True})
    responses.Changed.model_validate(dry.json)
    assert (dry.json["matched"], dry.json["changed"]) == (7, 0)
    cursor: str | None = None
    changed: list[int] = []
    while cursor is not None or not changed:
        found = await client.post("/api/v1/dead/replay", {"filter": chosen, "limit": 3, "cursor": cursor})
        cursor, changed = found.json["cursor"], [*changed, found.json["changed"]]
    assert sum(changed) == 7
    assert max(changed) == 3
    assert {app.handle(job).job().state for job in files} == {JobState.QUEUED}
    assert app.handle(other).job().state is JobState.DEAD
    assert ids(await client.get("/api/v1/dead", error="MemoryError")) == [other]
    gone = await client.post("/api/v1/dead/discard", {"filter": {"task": "resize"}})
    assert gone.json["changed"] == 1
    client.gate.close()


async def test_a_bulk_change_touches_nothing_but_what_was_chosen(app, admin):
    kept = [resize(app), app.get_task("send").enqueue(1).id]
    chosen = [resize(app, "x"), resize(app, "y")]
    found = await admin.post("/api/v1/jobs/bulk", {"action": "cancel", "ids": chosen})
    assert found.json["changed"] == 2
    found = await admin.post(
        "/api/v1/jobs/bulk", {"action": "discard", "filter": {"state": ["cancelled"]}, "all": True}
    )
    assert found.json["changed"] == 2
    assert [app.handle(job).job().state for job in kept] == [JobState.QUEUED, JobState.QUEUED]


@pytest.mark.parametrize(
    "said",
    [
        {"action": "cancel"},
        {"action": "cancel", "ids": []},
        {"action": "cancel", "filter": {}},
        {"action": "discard", "filter": {"state": ["dead"]}},
        {"action": "cancel", "filter": {"state": ["completed"]}, "all": True},
        {"action": "cancel", "ids": ["01900000-0000-7000-8000-000000000000"], "filter": {"queue": "images"}},
        {"action": "explode", "filter": {"queue": "images"}},
        {"action": "cancel", "filter": {"queue": "images", "state": ["queued"], "color": "red"}},
        {"action": "cancel", "ids": ["not an id"]},
        {"action": "cancel", "filter": {"queue": "images"}, "limit": 100_000},
    ],
)
async def test_a_choice_that_is_not_clear_changes_nothing(app, admin, said):
    job = resize(app)
    found = await admin.post("/api/v1/jobs/bulk", said)
    assert found.status == 422
    assert app.handle(job).job().state is JobState.QUEUED


async def test_secrets_in_jobs_are_hidden_everywhere(app, admin):
    secret = "hunter2-canary"
    said = {
        "task": "resize",
        "arguments": {"path": f"https://me:{secret}@host/x?token={secret}", "password": secret},
    }
    job = (await admin.post("/api/v1/jobs", said)).json["id"]
    complete(app, result=f'{{"api_key": "{secret}", "nested": [{{"secret": "{secret}"}}]}}'.encode())
    other = resize(app, f"password={secret}")
    die(app, message=f"cannot log in with password={secret}")
    app.store.log("audit", [b"{}"])
    for path in (
        "/api/v1/jobs", f"/api/v1/jobs/{job}", f"/api/v1/jobs/{other}", "/api/v1/dead", "/api/v1/dead/causes",
        "/api/v1/audit", "/api/v1/overview", "/api/v1/events/recent", "/metrics",
    ):  # fmt: skip
        found = await admin.get(path)
        assert found.status == 200, path
        assert secret.encode() not in found.body, path
    assert ids(await admin.get("/api/v1/jobs", text=secret)) == [], "nor can it be guessed by searching"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"task": "os.system", "arguments": ["true"]}, "unknown-task"),
        ({"task": "resize", "arguments": {}}, "invalid"),
        ({"task": "resize", "arguments": {"path": 5}}, "invalid"),
        ({"task": "resize", "arguments": {"path": "a", "more": 1}}, "invalid"),
        ({"task": "resize", "arguments": ["a"], "options": {"queue": "No Such Name"}}, "invalid"),
        ({"task": "resize", "arguments": ["a"], "options": {"delay": "soon"}}, "invalid"),
        (
            {"task": "resize", "arguments": ["a"], "options": {"delay": 1, "run_at": "2030-01-01T00:00:00Z"}},
            "invalid",
        ),
        ({"task": "resize", "arguments": ["a"], "options": {"id": "x" * 40}}, "invalid"),
        ({"task": "resize", "arguments": ["a"], "transaction": 1}, "invalid"),
        ({"arguments": ["a"]}, "invalid"),
    ],
)
async def test_an_enqueue_that_is_wrong_says_why_and_stores_nothing(app, admin, said, kind):
    found = await admin.post("/api/v1/jobs", said)
    assert found.json["type"] == f"urn:millpond:problem:{kind}"
    assert found.json["detail"]
    assert found.json["fix"]
    assert not app.store.counts().queues


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0}, {"limit": 501}, {"limit": "x"}, {"state": "asleep"}, {"queue": "No Such"},
        {"cursor": "x"}, {"cursor": "' OR 1=1"}, {"created_after": "yesterday"},
        {"created_after": "2026-01-01T00:00:00"},
        {"id": "x"}, {"text": ""}, {"colour": "red"}, {"task": "x" * 201},
        {"created_before": "9999-01-01T00:00:00Z"},
    ],
)  # fmt: skip
async def test_a_list_that_is_asked_for_wrongly_says_what_would_do(admin, query):
    found = await admin.get("/api/v1/jobs", **query)
    assert found.status == 422
    assert found.headers["content-type"] == "application/problem+json"


async def test_a_server_without_an_app_enqueues_nothing(app):
    gate = gate_for(app, knows_tasks=False)
    found = await Client(gate, ADMIN).post("/api/v1/jobs", {"task": "resize", "arguments": ["a"]})
    assert found.status == 409
    assert found.json["type"].endswith("no-app")
    assert (await Client(gate).get("/api/v1/tasks")).json == {"tasks": []}
    gate.close()


async def test_tasks_tell_what_they_take(admin):
    found = (await admin.get("/api/v1/tasks")).json
    responses.Tasks.model_validate(found)
    taken = {task["task"]: task for task in found["tasks"]}
    assert [line["name"] for line in taken["resize"]["parameters"]] == ["path", "width", "password"]
    assert taken["resize"]["parameters"][1] == {
        "name": "width",
        "annotation": "int",
        "required": False,
        "default": "100",
    }
    assert taken["send"]["kind"] == "async"


async def test_a_search_for_what_is_rare_is_bounded_and_goes_on_by_cursor(everywhere, monkeypatch):
    from millpond.store.redis import search

    monkeypatch.setattr(search, "MOST_LOOKED", 2)
    monkeypatch.setattr(search, "PAGE", 2)
    app = everywhere
    client = Client(gate_for(app))
    rare = app.get_task("send").enqueue(5).id
    for number in range(9):
        resize(app, f"{number}.png")
    seen: list[str] = []
    cursor, calls = None, 0
    while cursor is not None or not calls:
        found = await client.get(
            "/api/v1/jobs", task="send", **({} if cursor is None else {"cursor": cursor})
        )
        seen, cursor, calls = [*seen, *ids(found)], found.json["cursor"], calls + 1
    assert seen == [rare]
    client.gate.close()

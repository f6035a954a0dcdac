"""Strange lines in the store, damaged or forged: whoever looks sees everything else, on every route."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from millpond import App
from millpond.api.app import ROUTERS
from tests.api.acting import complete, die, node_tells
from tests.api.asking import ADMIN, Client, gate_for

NUMBERS = [
    "1e400",
    "-1e400",
    "1e308",
    "NaN",
    "Infinity",
    "-0.0",
    "1" + "0" * 400,
    "1" + "0" * 5_000,
    "9" * 18,
    "-1",
]
OTHERS = ['"\\ud800"', '"\\u0000"', "[]", "{}", "null", "true", '"x"', "[[[[]]]]", "[" * 3_000]
FIELDS = [
    "at",
    "age",
    "round_age",
    "unsettled",
    "settled",
    "rescued",
    "phase",
    "store_trouble",
    "cpu",
    "pools",
]
POOL = [
    "name", "queues", "kind", "least", "most", "concurrency", "claimed", "done", "max_wait", "status",
    "wanted", "reasons", "budgets", "count", "workers", "policy", "timeout",
]  # fmt: skip
LOGS = ["events", "decisions", "audit"]


def record(app: App, name: str, text: str) -> None:
    """A node whose record is this text."""
    app.store.renew(name, "host", text.encode("utf-8", "surrogatepass"), 15.0)


def forge_reports(app: App, value: str) -> None:
    for field in FIELDS:
        record(app, f"report-{field}", f'{{"pid": 1, "report": {{"at": 1, "age": 1, "{field}": {value}}}}}')
    record(app, "whole", value)
    record(
        app,
        "shares",
        f'{{"pools": [{{"name": "a", "queues": ["a"], "workers": {value}, "least": 1, "most": {value}, '
        f'"concurrency": {value}, "wanted": 1, "desired": {value}}}], "queues": {value}, "tasks": {value}}}',
    )


def forge_pools(app: App, value: str) -> None:
    for field in POOL:
        row = ", ".join([value] * 11)
        told = f'"name": "p-{field}", "queues": ["images"], "workers": [[{row}]], "{field}": {value}'
        record(
            app,
            f"pool-{field}",
            f'{{"pid": {value}, "queues": {value}, "budget": {value}, "report": {{"pools": [{{{told}}}]}}}}',
        )


def forge_logs(app: App, value: str) -> None:
    lines = [
        value,
        f'{{"text": {value}, "kind": {value}, "node": {value}, "level": {value}, "facts": {value}}}',
        f'{{"pool": {value}, "before": {value}, "after": {value}, "sentence": {value}, "binding": {value}}}',
        f'{{"number": {value}, "at": {value}, "who": {value}, "target": {value}}}',
    ]
    for log in LOGS:
        app.store.log(log, [line.encode("utf-8", "surrogatepass") for line in lines])


FORGERIES: dict[str, Callable[[App, str], None]] = {
    "reports": forge_reports,
    "pools": forge_pools,
    "logs": forge_logs,
}


def paths(job: str) -> list[str]:
    """Every path that can be looked at, with something in it for each name."""
    names = {"job_id": job, "queue": "images", "pool": "images", "node": "host-1-aaaa", "name": "nightly"}
    found = {
        route.path.format(**names)
        for router in ROUTERS
        for route in router.router.routes
        if "GET" in getattr(route, "methods", ()) and "path}" not in route.path
    }
    return sorted(found - {"/api/v1/events", "/", "/favicon.ico"})


@pytest.fixture
def filled(app: App) -> tuple[App, str]:
    for path in "abc":
        app.get_task("resize").enqueue(path)
    complete(app)

    @app.recurring(every="1h", name="nightly")
    def nightly() -> None: ...

    return app, die(app)


@pytest.mark.parametrize("what", FORGERIES)
async def test_a_forged_line_blinds_no_page(filled, what):
    app, job = filled
    for value in NUMBERS + OTHERS:
        FORGERIES[what](app, value)
        node_tells(app)
        client = Client(gate_for(app), ADMIN)
        for path in paths(job):
            answered = await client.get(path)
            assert answered.status == 200, (value[:20], path, answered.body[:300])
            if path.startswith("/api"):
                json.loads(answered.body, parse_constant=refused)
        nodes = (await client.get("/api/v1/nodes/host-1-aaaa")).json
        assert nodes["pools"] == ["images"]
        client.gate.close()


@pytest.mark.parametrize("what", FORGERIES)
async def test_a_forged_line_does_not_end_the_stream(filled, what):
    app, _ = filled
    for value in (*NUMBERS[:2], NUMBERS[6], OTHERS[0]):
        FORGERIES[what](app, value)
        node_tells(app)
    client = Client(gate_for(app), ADMIN)
    async with client.listening() as reader:
        overview = (await reader.next("overview"))["data"]
        assert "images" in [pool["pool"] for pool in overview["pools"]]
        FORGERIES[what](app, OTHERS[0])
        app.store.log("events", [b'{"kind": "Mine", "text": "after it", "level": "info"}'])
        while (await reader.next("event"))["data"].get("text") != "after it":
            pass
    client.gate.close()


def refused(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")

"""The OpenAPI document holds: requests made from it never break the server, and answers look as it says."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import openapi_spec_validator
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from millpond.api import asgi
from millpond.api.app import ROUTERS, document
from millpond.api.problems import SORTS
from millpond.api.schemas import responses
from tests.api.acting import die, node_tells
from tests.api.asking import ADMIN, HOST, Client, gate_for
from tests.api.conftest import with_tasks
from tests.docs.pages import ROOT, code, rows, section

TABLE: list[Any] = [
    route for part in ROUTERS for route in part.router.routes if route.path.startswith("/api")
]
TEXT = st.one_of(
    st.sampled_from(
        ["", "images", "mail", "resize", "..", "' OR 1=1 --", "<b>", "\x00", "%00", "😀", "x" * 300]
    ),
    st.uuids().map(str),
    st.text(max_size=40),
    st.integers().map(str),
)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def schema_of(made: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A part of the document, with what it refers to."""
    while "$ref" in part:
        part = made["components"]["schemas"][part["$ref"].rpartition("/")[2]]
    return part


@pytest.fixture(scope="module")
def client():
    app = with_tasks("memory://")
    app.get_task("resize").enqueue("a")
    die(app)
    app.get_task("resize").enqueue("b")
    node_tells(app)
    gate = gate_for(app, limits={"streams": 0})
    yield Client(gate, ADMIN)
    gate.close()
    app.store.close()


@pytest.fixture(scope="module")
def made(client: Client) -> dict[str, Any]:
    inner: Any = client.gate._inner
    return document(inner)


@st.composite
def requests(draw: st.DrawFn, made: dict[str, Any]) -> tuple[str, str, str, Any, dict[str, Any]]:
    """A request to some route: sometimes what it asks for, sometimes anything."""
    path = draw(st.sampled_from(sorted(made["paths"])))
    method = draw(st.sampled_from(sorted(made["paths"][path])))
    said = made["paths"][path][method]
    real, query = path, {}
    for parameter in said.get("parameters", ()):
        if parameter["in"] == "path":
            real = real.replace("{" + parameter["name"] + "}", draw(TEXT).replace("/", "_") or "x")
        elif draw(st.booleans()):
            query[parameter["name"]] = draw(TEXT)
    body = None
    if "requestBody" in said:
        wanted = schema_of(made, said["requestBody"]["content"]["application/json"]["schema"])
        names = sorted(wanted.get("properties", {}))
        body = draw(VALUE | st.dictionaries(st.sampled_from([*names, "more"]), VALUE, max_size=4))
    return path, method, real, body, query


def test_requests_made_from_the_document_never_break_the_server(client, made):
    @settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
    @given(request=requests(made))
    def check(request: Any) -> None:
        path, method, real, body, query = request
        data = None if method == "get" else json.dumps(body).encode()
        found = asyncio.run(
            client.ask(method.upper(), real, data, {"content-type": "application/json"}, **query)
        )
        said = made["paths"][path][method]["responses"]
        assert found.status < 500 or real == "/api/v1/events", (request, found)
        if found.status >= 400:
            assert found.headers["content-type"] == "application/problem+json"
            responses.Problem.model_validate(found.json)
            assert "4XX" in said or path == "/api/v1/events"
        elif "json" in found.headers.get("content-type", ""):
            _check(made, said, found)

    check()


def _check(made: dict[str, Any], said: dict[str, Any], found: Any) -> None:
    """Is the answer of the shape that the document gives it?"""
    answer = said[str(found.status)]
    reference = answer.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref")
    if reference is not None:
        TypeAdapter(getattr(responses, reference.rpartition("/")[2])).validate_python(found.json)


def test_the_document_refers_only_to_what_is_in_it(made):
    def references(part: Any) -> Any:
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"]
            for inner in part.values():
                yield from references(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from references(inner)

    for reference in set(references(made)):
        assert reference.startswith("#/components/schemas/")
        assert reference.rpartition("/")[2] in made["components"]["schemas"]


def test_every_operation_has_a_name_a_sentence_and_answers(made):
    names = []
    for methods in made["paths"].values():
        for said in methods.values():
            names.append(said["operationId"])
            assert re.fullmatch("[a-z]+(_[a-z]+)*", names[-1]), "a generated client has it as a method"
            assert said["description"]
            assert "200" in said["responses"] or "202" in said["responses"]
    assert len(names) == len(set(names))


def test_the_document_tells_how_to_be_let_in(made):
    schemes = made["components"]["securitySchemes"]
    assert schemes["session"]["in"] == "cookie"
    assert schemes["session"]["name"] == "millpond-session"
    named = {name for one in made["security"] for name in one}
    assert named == set(schemes)
    assert {} in made["security"], "a server on loopback shows what there is to everybody"
    assert {} not in made["paths"]["/api/v1/queues/{queue}/pause"]["post"]["security"]
    assert {} not in made["paths"]["/api/v1/audit"]["get"]["security"]


def test_ids_are_said_to_be_uuids_and_either_ids_or_a_filter_is_wanted(made):
    schemas = made["components"]["schemas"]
    assert schemas["JobRow"]["properties"]["id"]["format"] == "uuid"
    (parameter,) = made["paths"]["/api/v1/jobs/{job_id}"]["get"]["parameters"]
    assert parameter["schema"]["format"] == "uuid"
    assert schemas["Bulk"]["oneOf"] == [{"required": ["ids"]}, {"required": ["filter"]}]


async def test_a_method_that_a_path_has_not_is_refused_with_those_it_has(client, made):
    for path, methods in made["paths"].items():
        real = re.sub(r"{\w+}", "x", path)
        known = {method.upper() for method in methods} | ({"HEAD"} if "get" in methods else set())
        for method in {"POST", "PUT", "DELETE", "PATCH"} - known:
            found = await client.ask(method, real, {})
            assert found.status == 405, (method, real)
            allowed = set(found.headers["allow"].split(", "))
            assert known <= allowed, (method, real)  # "bulk" might be the id of a job, too
            assert method not in allowed, (method, real)


async def test_a_mistake_without_a_list_does_not_point_at_one(client):
    found = await client.post("/api/v1/jobs/bulk", {"action": "cancel"})
    assert (found.status, found.json["fix"]) == (422, "Correct what `detail` says")
    listed = await client.post("/api/v1/jobs/bulk", {"action": "burn"})
    assert listed.json["errors"]
    assert "errors" in listed.json["fix"]
    assert "audit log needs" in (await client.as_(None).get("/api/v1/audit")).json["detail"]


@pytest.mark.parametrize("moment", [0, 1.8e9, True, "0", "1800000000"])
async def test_a_moment_is_text_and_never_a_number(client, moment):
    """As seconds since 1970, `created_after: 0` meant every job there is."""
    body = {"filter": {"created_after": moment}}
    assert (await client.post("/api/v1/dead/discard", body)).status == 422
    assert (await client.get("/api/v1/jobs", created_after=str(moment))).status == 422


def test_a_moment_is_said_to_be_one(made):
    (found,) = (
        one
        for one in made["components"]["schemas"]["Filter"]["properties"]["created_after"]["anyOf"]
        if one["type"] != "null"
    )
    assert found == {"type": "string", "format": "date-time"}


def test_the_document_is_valid_openapi(made):
    openapi_spec_validator.validate(json.loads(json.dumps(made)))


def test_the_reference_names_every_route_and_every_problem():
    page = ROOT / "docs" / "reference" / "http-api.md"
    named = {code(row[0])[0] for row in rows(section(page, "## Routes"))}
    real = {f"{method} {route.path.removeprefix('/api/v1')}" for route in TABLE for method in route.methods}
    assert named == real
    told = [(kind, row[1]) for row in rows(section(page, "## Errors")) for kind in code(row[0])]
    assert {kind for kind, _ in told} == set(SORTS)
    assert all(str(SORTS[kind].status) in statuses for kind, statuses in told)


async def test_it_can_be_mounted_in_another_app(app):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    gate = asgi(app, admin_token=ADMIN, hosts=["jobs.example.com"])
    outer: Any = Starlette(routes=[Mount("/ops/jobs", gate)])
    client = Client(outer, ADMIN)
    named = {"host": "jobs.example.com"}
    app.get_task("resize").enqueue("a")
    assert (await client.get("/ops/jobs/api/v1/overview", headers=named)).status == 200
    assert (await client.as_(None).get("/ops/jobs/api/v1/overview", headers=named)).status == 401
    assert (await client.as_(None).get("/ops/jobs/livez", headers=named)).status == 200
    assert (await client.get("/ops/jobs/", headers=named)).status in {200, 503}, "the page may not be built"
    assert (await client.get("/ops/jobs/api/v1/overview", headers={"host": "evil.example"})).status == 421
    assert (await client.post("/ops/jobs/api/v1/queues/images/pause", headers={"host": HOST})).status == 200
    login = await client.as_(None).post("/ops/jobs/api/v1/session", {"token": ADMIN}, headers=named)
    assert "Path=/ops/jobs" in login.headers["set-cookie"]
    gate.close()
    bare = asgi(app)
    assert (await Client(bare).get("/api/v1/overview")).status == 401
    assert (await Client(bare, ADMIN).post("/api/v1/queues/images/pause")).status == 401
    bare.close()

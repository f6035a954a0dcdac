"""The gate: every route against every token, origin and name; what answers carry; how much is taken."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from typing import Any

import pytest

from millpond.api.app import ROUTERS, document
from millpond.api.routes.static_files import _file
from millpond.api.security.gate import Gate
from millpond.rules.http_access import need_of
from tests.api.asking import ADMIN, HOST, OLD, READ, Client, gate_for

PLACES = {
    "{job_id}": "01900000-0000-7000-8000-000000000000",
    "{queue}": "nowhere",
    "{pool}": "nowhere",
    "{node}": "nobody-1-00000000",
    "{pid}": "12345",
    "{name}": "nothing",
    "{name:path}": "nothing.js",
}
TOKENS = {"none": None, "read": READ, "admin": ADMIN, "wrong": "a-wrong-token-0123456789", "expired": OLD}
ORIGINS: dict[str, dict[str, str]] = {
    "no page": {},
    "own page": {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"},
    "another page": {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
    "another port": {"origin": "http://127.0.0.1:9999", "sec-fetch-site": "same-site"},
    "a sandbox": {"origin": "null"},
    "old browser's other page": {"sec-fetch-site": "cross-site"},
}
HOSTS = ["evil.example", "localhost.evil.example", "10.1.2.3", "127.0.0.1.nip.example:8640", ""]


TABLE: list[Any] = [route for part in ROUTERS for route in part.router.routes]


def routes() -> list[tuple[str, str]]:
    """Every route there is, from the table that serves them."""
    found = [("GET", "/api/v1/openapi.json")]
    for route in TABLE:
        path = route.path
        for name, value in PLACES.items():
            path = path.replace(name, value)
        assert "{" not in path, "give the parameter a value in PLACES"
        found += [(method, path) for method in sorted(route.methods)]
    return sorted(set(found))


ROUTES = routes()


def expected(method: str, path: str, who: str, origin: str, *, open_reads: bool) -> set[int] | None:
    """The refusals that must come; None: any answer but those."""
    need = need_of(method, path)
    if method != "GET" and origin not in ("no page", "own page"):
        return {403}
    is_data = path.startswith("/api/") or path in ("/metrics", "/scale")
    if is_data and origin not in ("no page", "own page", "a sandbox"):
        return {403}
    if path == "/api/v1/session" or need == "none":
        return None
    if who in ("wrong", "expired"):
        return {401, 429} if who == "wrong" else {401}
    if who == "admin":
        return None
    if need == "admin":
        return {403} if who == "read" else {401}
    is_open = open_reads and need == "read"
    return None if who == "read" or is_open else {401}


def test_there_are_many_routes():
    assert len(ROUTES) >= 40
    assert {method for method, _ in ROUTES} <= {"GET", "HEAD", "POST", "PUT", "DELETE"}


@pytest.mark.parametrize("open_reads", [True, False], ids=["loopback", "public"])
async def test_every_route_against_every_token_and_origin(app, open_reads):
    gate = gate_for(app, open_reads=open_reads, limits={"streams": 0})
    for method, path in ROUTES:
        for who, token in TOKENS.items():
            for origin, headers in ORIGINS.items():
                body: Any = None if method in ("GET", "HEAD") else {}
                found = await Client(gate, token).ask(method, path, body, headers)
                wanted = expected(method, path, who, origin, open_reads=open_reads)
                case = f"{method} {path} as {who} from {origin}: {found.status}"
                if wanted is not None:
                    assert found.status in wanted, case
                    assert found.headers["content-type"] == "application/problem+json", case
                else:
                    assert found.status not in (401, 403) or path == "/api/v1/session", case
    gate.close()


async def test_every_route_refuses_a_foreign_name_whoever_asks(gate):
    for method, path in ROUTES:
        for host in HOSTS:
            body: Any = None if method == "GET" else {}
            found = await Client(gate, ADMIN).ask(method, path, body, {"host": host})
            assert found.status == 421, f"{method} {path} for {host!r}"
            assert found.json["type"] == "urn:millpond:problem:wrong-host"


async def test_a_name_that_was_allowed_is_served(app):
    gate = gate_for(app, hosts=frozenset({"jobs.example.com"}))
    found = await Client(gate).get("/api/v1/queues", headers={"host": "jobs.example.com"})
    assert found.status == 200
    gate.close()


@pytest.mark.parametrize("method", ["OPTIONS", "PATCH", "TRACE", "CONNECT", "PROPFIND", "DELETEX"])
async def test_methods_are_an_allow_list(admin, method):
    found = await admin.ask(method, "/api/v1/queues", None, {"origin": f"http://{HOST}"})
    assert found.status == 405
    assert "access-control-allow-origin" not in found.headers


async def test_every_answer_carries_the_headers_that_protect_it(gate):
    asked = [
        await Client(gate).get("/"),
        await Client(gate).get("/api/v1/overview"),
        await Client(gate).get("/nothing"),
        await Client(gate).get("/static/../../etc/passwd"),
        await Client(gate).post("/api/v1/queues/mail/pause"),
        await Client(gate).get("/", headers={"host": "evil.example"}),
        await Client(gate).get("/livez"),
    ]
    for found in asked:
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["x-frame-options"] == "DENY"
        assert found.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in found.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../pages.py", "/static/..%2fpages.py", "/static//etc/passwd", "/static/....//x",
        "/static/%2e%2e/%2e%2e/etc/passwd", "/static/index.html/..", "/static/\x00", "/static/.env",
    ],
)  # fmt: skip
async def test_no_path_leads_out_of_the_built_files(gate, path):
    assert (await Client(gate).get(path)).status == 404


async def test_the_page_says_how_to_build_it_without_inline_code(app):
    gate = gate_for(app)
    inner: Any = gate._inner
    inner.state.files = {}
    found = await Client(gate).get("/")
    assert found.status == 503
    assert b"make web" in found.body
    assert b"<script" not in found.body
    assert b"style" not in found.body
    gate.close()


async def test_files_of_the_page_go_out_compressed_to_those_who_take_that(app):
    gate = gate_for(app)
    inner: Any = gate._inner
    text = b"body { color: teal }" * 500
    inner.state.files = {"app-0123456789.css": _file("app-0123456789.css", text)}
    client, path = Client(gate), "/static/app-0123456789.css"
    packed = await client.get(path, headers={"accept-encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(text) / 10
    assert gzip.decompress(packed.body) == text
    for accepted in ("", "identity", "gzip;q=0"):
        plain = await client.get(path, headers={"accept-encoding": accepted})
        assert (plain.body, plain.headers.get("content-encoding")) == (text, None)
        assert plain.headers["etag"] != packed.headers["etag"]
        assert plain.headers["vary"] == "Accept-Encoding"
    known = {"accept-encoding": "gzip", "if-none-match": packed.headers["etag"]}
    assert (await client.get(path, headers=known)).status == 304
    gate.close()


# --- bodies -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
async def test_a_change_is_told_in_json_only(admin, kind):
    found = await admin.ask("POST", "/api/v1/queues/mail/pause", b"{}", {"content-type": kind})
    assert found.status == 415


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b'{"more": 1}', b"\xff", b'{"a":' * 10_000])
async def test_a_body_that_is_not_what_was_asked_for_is_explained(admin, body):
    found = await admin.ask("POST", "/api/v1/queues/mail/pause", body, {"content-type": "application/json"})
    assert found.status in (400, 422)
    assert found.json["detail"]


async def refused_after(gate: Gate, headers: dict[str, str], token: str | None) -> tuple[int, int]:
    """The status, and how many bytes were taken of a body without end."""
    taken = 0
    sent: list[Any] = []

    async def receive() -> Any:
        nonlocal taken
        taken += 65_536
        return {"type": "http.request", "body": b"x" * 65_536, "more_body": True}

    async def send(part: Any) -> None:
        sent.append(part)

    client = Client(gate, token)
    scope = client.scope("POST", "/api/v1/jobs", headers, "127.0.0.1", {}, has_body=True)
    await gate(scope, receive, send)
    return sent[0]["status"], taken


async def test_a_body_that_says_it_is_too_large_is_not_read_at_all(gate):
    assert await refused_after(gate, {"content-length": "1000000000"}, ADMIN) == (413, 0)
    assert await refused_after(gate, {"content-length": "-1"}, ADMIN) == (413, 0)


async def test_a_body_without_end_is_read_up_to_the_bound(gate):
    status, taken = await refused_after(gate, {}, ADMIN)
    assert status == 413
    assert taken <= (1 << 20) + 65_536


async def test_the_body_of_who_may_not_ask_is_not_read_at_all(gate):
    assert await refused_after(gate, {}, None) == (401, 0)
    assert await refused_after(gate, {"origin": "https://evil.example"}, ADMIN) == (403, 0)


async def test_a_body_that_does_not_come_is_given_up(app):
    gate = gate_for(app, limits={"body_within": 0.05})
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(part: Any) -> None:
        sent.append(part)

    client = Client(gate, ADMIN)
    await gate(client.scope("POST", "/api/v1/jobs", {}, "127.0.0.1", {}, has_body=True), receive, send)
    assert sent[0]["status"] == 400
    gate.close()


async def test_a_header_that_comes_twice_is_refused(gate):
    client = Client(gate, ADMIN)
    for name in (b"host", b"authorization", b"origin", b"content-length"):
        scope = client.scope("GET", "/api/v1/queues", {name.decode(): "x"}, "1.2.3.4", {}, has_body=False)
        scope["headers"] += [(name, b"y")]
        sent: list[Any] = []

        async def send(part: Any, sent: list[Any] = sent) -> None:
            sent.append(part)

        await gate(scope, asyncio.Event().wait, send)
        assert sent[0]["status"] == 400


async def test_a_probe_may_ask_for_the_head_alone(gate):
    client = Client(gate)
    for path in ("/livez", "/readyz", "/", "/api/v1/overview"):
        head, whole = await client.ask("HEAD", path), await client.get(path)
        assert (head.status, head.body) == (200, b"")
        assert whole.body
    assert (await client.ask("HEAD", "/api/v1/events")).status == 405
    assert (await client.ask("HEAD", "/metrics")).status == 401


async def test_a_store_that_does_not_answer_is_not_waited_for(app, monkeypatch):
    gate = gate_for(app, limits={"request_within": 0.05, "threads": 1, "waiting": 1})
    client, answer = Client(gate), threading.Event()
    monkeypatch.setattr(app.store, "search", lambda *_: answer.wait(30))
    try:
        first = await client.get("/api/v1/jobs")
        assert (first.status, first.json["type"]) == (504, "urn:millpond:problem:timed-out")
        await client.get("/api/v1/jobs")
        third = await client.get("/api/v1/jobs")
        assert (third.status, third.json["type"]) == (503, "urn:millpond:problem:overloaded")
        assert (await client.get("/livez")).status == 200
    finally:
        answer.set()
        gate.close()


# --- the session -----------------------------------------------------------------------------------------
async def log_in(gate: Gate, token: str) -> dict[str, str]:
    found = await Client(gate).post("/api/v1/session", {"token": token})
    assert found.status == 200
    return {"cookie": found.headers["set-cookie"].partition(";")[0]}


async def test_a_browser_logs_in_works_and_logs_out(app):
    gate = gate_for(app, open_reads=False)
    client = Client(gate)
    assert (await client.get("/api/v1/session")).json["scope"] == "none"
    assert (await client.get("/api/v1/queues")).status == 401
    session = await log_in(gate, ADMIN)
    assert (await client.get("/api/v1/session", headers=session)).json["scope"] == "admin"
    assert (await client.get("/api/v1/queues", headers=session)).status == 200
    assert (
        await client.post("/api/v1/jobs", {"task": "resize", "arguments": ["a"]}, headers=session)
    ).status == 201
    assert (await client.ask("DELETE", "/api/v1/session", {}, session)).json["scope"] == "none"
    assert (await client.get("/api/v1/queues", headers=session)).status == 401
    gate.close()


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(app):
    gate = gate_for(app, behind_tls=True)
    found = await Client(gate).post("/api/v1/session", {"token": READ})
    cookie = found.headers["set-cookie"].lower()
    assert cookie.startswith("millpond-session-8640=")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" in cookie
    assert "domain" not in cookie
    assert READ.lower() not in cookie
    gate.close()


async def test_a_session_alone_does_not_let_another_page_change_things(gate):
    session = await log_in(gate, ADMIN)
    for origin, headers in ORIGINS.items():
        found = await Client(gate).post("/api/v1/queues/images/pause", headers={**session, **headers})
        assert (found.status == 403) == (origin not in ("no page", "own page")), origin


async def test_a_read_session_changes_nothing(gate):
    session = await log_in(gate, READ)
    assert (await Client(gate).post("/api/v1/queues/images/pause", headers=session)).status == 403


async def test_wrong_tokens_open_no_session_and_are_limited_by_address(gate):
    client = Client(gate)
    wrong = {"token": "wrong"}
    found = [await client.post("/api/v1/session", wrong, client="9.9.9.9") for _ in range(12)]
    assert [answered.status for answered in found] == [401] * 10 + [429] * 2
    assert found[-1].headers["retry-after"] == "60"
    assert (await client.post("/api/v1/session", wrong, client="8.8.8.8")).status == 401


async def test_wrong_bearer_tokens_are_limited_too(gate):
    client = Client(gate, "a-wrong-token-0123456789")
    found = [await client.get("/api/v1/queues", client="9.9.9.9") for _ in range(12)]
    assert [answered.status for answered in found] == [401] * 10 + [429] * 2


async def test_the_wrong_tokens_of_others_never_keep_a_right_one_out(gate):
    for _ in range(20):
        await Client(gate, "a-wrong-token-0123456789").get("/api/v1/queues")
        await Client(gate).post("/api/v1/session", {"token": "wrong"})
    session = await log_in(gate, ADMIN)
    assert (await Client(gate).get("/api/v1/audit", headers=session)).status == 200
    assert (await Client(gate, ADMIN).get("/api/v1/audit")).status == 200


async def test_an_expired_token_says_so(gate):
    found = await Client(gate).post("/api/v1/session", {"token": OLD})
    assert found.status == 401
    assert found.json["type"].endswith("expired-token")
    assert "--new-tokens" in found.json["fix"]


async def test_metrics_need_a_token_unless_they_were_opened(app):
    for path in ("/metrics", "/scale"):
        gate = gate_for(app, open_reads=True)
        assert (await Client(gate).get(path)).status == 401
        assert (await Client(gate, READ).get(path)).status == 200
        gate.close()
        gate = gate_for(app, open_metrics=True, open_reads=False)
        assert (await Client(gate).get(path)).status == 200
        gate.close()


async def test_a_token_is_taken_from_no_url(gate):
    for name in ("token", "access_token", "authorization", "key"):
        found = await Client(gate).post(f"/api/v1/queues/images/pause?{name}={ADMIN}")
        assert found.status == 401


async def test_a_web_socket_is_refused(gate):
    sent: list[Any] = []

    async def send(part: Any) -> None:
        sent.append(part)

    await gate({"type": "websocket", "path": "/api/v1/events", "headers": []}, asyncio.Event().wait, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


# --- what leaves the server -------------------------------------------------------------------------------
async def test_an_error_that_nobody_expected_tells_nothing(app, monkeypatch):
    gate = gate_for(app)

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret password=hunter2 in /etc/private")

    monkeypatch.setattr(app.store, "search", broken)
    found = await Client(gate).get("/api/v1/jobs")
    assert found.status == 500
    assert b"hunter2" not in found.body
    assert b"Traceback" not in found.body
    assert found.json["type"] == "urn:millpond:problem:internal"
    gate.close()


async def test_the_password_of_the_store_is_never_shown(app, monkeypatch):
    from millpond.errors import StoreUnavailable

    gate = gate_for(app)

    def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("postgresql://me:hunter2@db/jobs is away")

    monkeypatch.setattr(app.store, "search", away)
    found = await Client(gate).get("/api/v1/jobs")
    assert found.status == 503
    assert found.headers["retry-after"]
    assert b"hunter2" not in found.body
    gate.close()


def test_the_openapi_document_names_every_route(app):
    gate = gate_for(app)
    inner: Any = gate._inner
    made = document(inner)
    json.dumps(made)
    assert made["openapi"].startswith("3.1")
    shown = {path for path in made["paths"] if path.startswith("/api/v1")}
    assert shown == {route.path for route in TABLE if route.path.startswith("/api/v1")}
    gate.close()

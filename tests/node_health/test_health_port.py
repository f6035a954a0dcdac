"""The health port, asked over real sockets by clients that behave and by clients that do not."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from millpond.errors import OptionError
from millpond.node.health import server as health
from millpond.node.health.routes import HealthOptions
from millpond.node.health.server import HealthServer
from millpond.node.observability.report import NodeReport
from tests.node_health.reports import node

TOKEN = "k3y-of-sixteen-or-more-characters"
HERE = HealthOptions(port=0)


@contextmanager
def serving(
    report: NodeReport | Callable[[], NodeReport] | None = None, options: HealthOptions = HERE
) -> Iterator[HealthServer]:
    found = node() if report is None else report
    server = HealthServer(found if callable(found) else lambda: found, options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def ask(server: HealthServer, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(*server.address, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        response.body = response.read()  # type: ignore[attr-defined]
        return response
    finally:
        connection.close()


def body(response: http.client.HTTPResponse) -> bytes:
    return response.body  # type: ignore[attr-defined, no-any-return]


def raw(server: HealthServer, request: bytes) -> bytes:
    """What comes back for these bytes, up to the end of the connection."""
    with socket.create_connection(server.address, timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while data := connection.recv(65_536):
                answer += data
        except ConnectionResetError:
            pass
        return answer


# --- verdicts --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["/livez", "/readyz", "/readyz?verbose"])
def test_a_healthy_node_says_ok_and_nothing_else(path):
    with serving() as server:
        response = ask(server, path)
        assert response.status == 200
        assert body(response) == b'{"status":"ok"}\n'


def test_a_deaf_node_is_alive_but_not_ready():
    with serving(node(round_age=20.0)) as server:
        assert ask(server, "/livez").status == 200
        response = ask(server, "/readyz")
        assert response.status == 503
        assert json.loads(body(response)) == {"status": "no", "reason": "deaf"}


def test_the_answer_follows_the_node():
    states = iter(["starting", "running", "draining"])
    with serving(lambda: node(state=next(states))) as server:
        assert [ask(server, "/readyz").status for _ in range(3)] == [503, 200, 503]


def test_a_probe_shows_nothing_of_the_store_or_the_jobs():
    with serving(node(round_age=20.0, store_trouble="password of user is hunter2")) as server:
        assert json.loads(body(ask(server, "/readyz"))) == {"status": "no", "reason": "store"}


def test_how_long_a_node_may_be_deaf_can_be_set():
    with serving(node(round_age=20.0), HERE._replace(deaf_after=30.0)) as server:
        assert ask(server, "/readyz").status == 200


def test_a_node_that_cannot_report_is_not_well_and_the_port_goes_on(caplog):
    reports: Iterator[NodeReport | Exception] = iter([ZeroDivisionError(), node()])

    def report() -> NodeReport:
        item = next(reports)
        if isinstance(item, Exception):
            raise item
        return item

    with serving(report) as server:
        response = ask(server, "/livez")
        assert response.status == 503
        assert json.loads(body(response))["reason"] == "report"
        assert ask(server, "/livez").status == 200
    assert "report failed" in caplog.text


# --- methods and paths -----------------------------------------------------------------------------------
def test_head_gives_the_headers_of_get_without_a_body():
    with serving() as server:
        response = ask(server, "/livez", "HEAD")
        assert response.status == 200
        assert response.headers["Content-Length"] == str(len(b'{"status":"ok"}\n'))
        assert body(response) == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(method):
    with serving() as server:
        response = ask(server, "/livez", method)
        assert response.status == 405
        assert response.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/livez/", "/../livez", "/%6civez", "//livez", "/metrics/x", "/LIVEZ"])
def test_other_paths_are_not_found(path):
    with serving() as server:
        assert ask(server, path).status == 404


def test_answers_are_not_kept_and_not_sniffed():
    with serving() as server:
        headers = ask(server, "/livez").headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Connection"] == "close"


# --- who asks --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8650", "[::1]:8650", "127.0.0.2"])
def test_this_machine_may_be_asked_by_its_own_names(host):
    with serving() as server:
        assert ask(server, "/livez", Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "a b", "", "[::2]",
     "0x7f.1", "localhost:80:80", "user@localhost", "2130706433"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/livez", "/metrics", "/nothing"])
def test_a_name_that_somebody_pointed_here_is_refused_on_every_path(host, path):
    with serving(options=HERE._replace(open_metrics=True)) as server:
        assert ask(server, path, Host=host).status == 421


def test_a_port_beyond_loopback_may_be_asked_by_address_and_by_the_names_it_was_given():
    options = HERE._replace(host="0.0.0.0", hosts=("node-1.Internal",))
    with serving(options=options) as server:
        assert ask(server, "/livez", Host="10.1.2.3:8650").status == 200
        assert ask(server, "/livez", Host="node-1.internal").status == 200
        assert ask(server, "/livez", Host="node-2.internal").status == 421


def test_a_request_without_a_host_is_refused():
    with serving() as server:
        assert raw(server, b"GET /livez HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 421 ")


# --- metrics ---------------------------------------------------------------------------------------------
def test_metrics_need_the_token():
    with serving(options=HERE._replace(token=TOKEN)) as server:
        response = ask(server, "/metrics")
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
        for wrong in (
            "Bearer",
            "Bearer x",
            f"Basic {TOKEN}",
            TOKEN,
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
        ):
            assert ask(server, "/metrics", Authorization=wrong).status == 401
        response = ask(server, "/metrics", Authorization=f"bearer {TOKEN}")
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert b"millpond_node_ready 1.0" in body(response)


def test_the_token_is_not_taken_from_the_address():
    with serving(options=HERE._replace(token=TOKEN)) as server:
        assert ask(server, f"/metrics?token={TOKEN}").status == 401


def test_metrics_are_closed_where_there_is_no_token():
    with serving() as server:
        assert ask(server, "/metrics").status == 403
        assert ask(server, "/metrics", Authorization="Bearer ").status == 403


def test_metrics_are_open_when_asked_for():
    with serving(options=HERE._replace(open_metrics=True)) as server:
        assert ask(server, "/metrics").status == 200


@pytest.mark.parametrize(
    "changes",
    [{"token": "short"}, {"token": "sixteen letters or more with spaces"}, {"token": "x" * 1001},
     {"port": -1}, {"port": 65_536}, {"port": True}, {"port": "80"}],
)  # fmt: skip
def test_options_that_cannot_work_are_refused(changes):
    with pytest.raises(OptionError):
        HealthServer(node, HERE._replace(**changes))


# --- clients that misbehave ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "request_head",
    [b"", b"GET", b"GET /livez", b"GET /livez HTTP/2.0", b"GET  /livez HTTP/1.1", b"get /livez HTTP/1.1",
     b"GET livez HTTP/1.1", b"GET http://localhost/livez HTTP/1.1", b"GET /li\x00vez HTTP/1.1",
     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
     b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: other",
     b"GET /livez HTTP/1.1\r\nHost: localhost\r\n folded: x", b"GET /livez HTTP/1.1\r\nno colon",
     b"GET /livez HTTP/1.1\r\nHost : localhost", b"GET /livez HTTP/1.1\r\nHost: local\nhost",
     b"GET /" + b"x" * 1_001 + b" HTTP/1.1\r\nHost: localhost"],
)  # fmt: skip
def test_what_is_no_request_is_refused(request_head):
    with serving() as server:
        assert raw(server, request_head + b"\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert ask(server, "/livez").status == 200


def test_a_request_without_end_is_cut_off():
    start = b"GET /livez HTTP/1.1\r\nX: "
    with serving() as server:
        answer = raw(server, start + b"x" * (health.LONGEST_REQUEST + 1 - len(start)))
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert ask(server, "/livez").status == 200


def test_a_request_may_come_in_pieces():
    with serving() as server, socket.create_connection(server.address, timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")


def test_silent_clients_hold_up_nobody_and_the_oldest_has_to_go():
    with serving() as server:
        silent = [
            socket.create_connection(server.address, timeout=10) for _ in range(health.MOST_CLIENTS + 1)
        ]
        try:
            assert ask(server, "/livez").status == 200
            assert silent[0].recv(1) == b""
        finally:
            for connection in silent:
                connection.close()


def test_a_client_that_never_finishes_is_hung_up_on(monkeypatch):
    monkeypatch.setattr(health, "PATIENCE", 0.05)
    with serving() as server, socket.create_connection(server.address, timeout=10) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\n")
        assert connection.recv(1) == b""


def test_a_client_that_leaves_before_the_answer_disturbs_nobody():
    with serving() as server:
        for _ in range(20):
            with socket.create_connection(server.address, timeout=10) as connection:
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert ask(server, "/livez").status == 200


def test_a_client_that_does_not_read_a_long_answer_holds_up_nobody():
    many = node(*[node().pools[0]._replace(name=f"pool-{number}") for number in range(400)])
    with serving(many, HERE._replace(open_metrics=True)) as server, socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        lazy.connect(server.address)
        lazy.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert ask(server, "/livez").status == 200
        assert len(body(ask(server, "/metrics"))) > 1_000_000


# --- opening and closing ---------------------------------------------------------------------------------
def test_the_port_is_on_loopback_by_default():
    assert HealthOptions().host == "127.0.0.1"
    with serving() as server:
        assert server.address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_refused_with_a_hint():
    with serving() as server:
        other = HealthServer(node, HERE._replace(port=server.address[1]))
        with pytest.raises(OptionError, match="Give another"):
            other.start()


def test_a_host_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match="cannot listen"):
        HealthServer(node, HERE._replace(host="no.such.host.invalid")).start()


def test_ipv6_works_where_the_machine_has_it():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with serving(options=HERE._replace(host="::1")) as server:
        assert ask(server, "/livez").status == 200


def test_nothing_is_left_after_stop():
    before = set(threading.enumerate())
    with serving() as server:
        address = server.address
        assert ask(server, "/livez").status == 200
    server.stop()
    assert not set(threading.enumerate()) - before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=10)


def test_a_server_that_was_never_started_can_be_stopped():
    server = HealthServer(node, HERE)
    server.stop()
    with pytest.raises(RuntimeError):
        _ = server.address

"""The dashboard as a real process: its sockets, its limits, its end; alone and beside a node."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from millpond.api import server as serving
from millpond.cli import main
from tests.api.serving import Served, command, dashboard, environment
from tests.node.waiting import until

STREAM = "GET /api/v1/events HTTP/1.1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One dashboard for the tests that leave it as it was."""
    with dashboard(tmp_path_factory.mktemp("dashboard")) as found:
        yield found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def stream(served: Served) -> socket.socket:
    """An open event stream that has said hello."""
    connection = served.connect()
    connection.sendall(served.head(STREAM))
    text = b""
    while b"event: overview" not in text:
        data = connection.recv(65_536)
        assert data, text
        text += data
    return connection


def test_it_listens_on_loopback_alone(served):
    found = psutil.Process(served.process.pid).net_connections(kind="tcp")
    listening = [line.laddr.ip for line in found if line.status == psutil.CONN_LISTEN]
    assert listening == ["127.0.0.1"]


def test_it_runs_at_a_lower_priority(served):
    assert os.getpriority(os.PRIO_PROCESS, served.process.pid) > os.getpriority(os.PRIO_PROCESS, 0)


def test_a_job_goes_in_over_http_and_is_seen(served):
    answer = served.post("/api/v1/jobs", {"task": "quick", "arguments": [5]})
    assert status(answer) == 201
    job = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
    assert job.encode() in served.ask("GET /api/v1/jobs HTTP/1.1")
    assert status(served.ask("GET / HTTP/1.1")) == 200
    assert served.ask("HEAD /livez HTTP/1.1").endswith(b"\r\n\r\n")


def test_a_huge_body_is_refused_before_it_is_read(served):
    before = psutil.Process(served.process.pid).memory_info().rss
    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nAuthorization: Bearer {served.admin}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000000"
    )
    assert status(served.ask(head)) == 413
    chunked = head.replace("Content-Length: 1000000000", "Transfer-Encoding: chunked")
    with served.connect() as connection:
        connection.sendall(served.head(chunked))
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 1_000_000_000:
                connection.sendall(chunk)
                sent += len(chunk)
        assert sent < 100_000_000
    assert psutil.Process(served.process.pid).memory_info().rss - before < 32 << 20
    assert status(served.ask("GET /livez HTTP/1.1")) == 200


@pytest.mark.parametrize(
    "head",
    [
        "GET /livez HTTP/1.1\r\nX: " + "y" * 100_000,
        "GET /livez",
        "\x00\x01\x02",
        "GET /livez HTTP/1.1\r\nHost: twice",
        "G\tET /livez HTTP/1.1",
        "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6",
        "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked, chunked",
    ],
)
def test_a_head_that_is_no_head_is_refused(served, head):
    answer = served.ask(head)
    assert not answer or status(answer) in (400, 421, 431), answer
    assert status(served.ask("GET /livez HTTP/1.1")) == 200


def test_streams_beyond_the_limit_are_refused_and_the_others_go_on(served):
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(stream(served)) for _ in range(20)]
        answers = [served.ask(STREAM) for _ in range(5)]
        assert {status(answer) for answer in answers} == {503}
        assert b"Retry-After" in answers[0] or b"retry-after" in answers[0]
        assert streams[0].recv(65_536)
    assert until(lambda: status_of_one(served) == 200, "room for another stream")


def status_of_one(served: Served) -> int:
    with served.connect() as connection:
        connection.sendall(served.head(STREAM))
        return status(connection.recv(4_096))


def test_idle_connections_of_one_address_leave_room_for_others(served):
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(served.connect()) for _ in range(serving.MOST_OPEN + 50)]
        assert status(served.ask("GET /livez HTTP/1.1")) == 200, "from the same address"
        with served.connect("127.0.1.1") as other:
            other.sendall(served.head("GET /livez HTTP/1.1"))
            assert status(other.recv(4_096)) == 200
        assert not received(idle[0]), "the oldest made room"


def received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except ConnectionError:
        return b""


def test_connections_beyond_the_limit_are_turned_away_and_the_server_lives(served):
    with contextlib.ExitStack() as stack:
        for number in range(serving.MOST_CONNECTIONS + 20):
            stack.enter_context(served.connect(f"127.0.1.{number // 40 + 1}"))
        assert status(served.ask("GET /livez HTTP/1.1")) == 503
        for number in range(serving.MOST_OPEN - serving.MOST_CONNECTIONS):
            stack.enter_context(served.connect(f"127.0.2.{number // 40 + 1}"))
        assert served.ask("GET /livez HTTP/1.1") == b""
    assert until(lambda: status(served.ask("GET /livez HTTP/1.1")) == 200, "room again")
    assert psutil.Process(served.process.pid).memory_info().rss < 256 << 20


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(partial(connection.recv, 65_536), b""))


def test_a_signal_ends_it_though_streams_are_open(tmp_path):
    with dashboard(tmp_path) as served, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(stream(served)) for _ in range(3)]
        served.process.terminate()
        served.process.wait(5)  # it would never end while a stream is open
        for connection in streams:
            rest = everything(connection)
            assert b'event: goodbye\ndata: {"reason":"shutdown"}' in rest


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command that must fail; its one line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(*words: str, code: int) -> str:
        done = CliRunner().invoke(main, words)
        assert done.exit_code == code, done.output
        return done.stderr.strip().splitlines()[-1]

    return run


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "10.0.0.1:80"])
def test_a_public_address_without_a_token_is_refused(refused, address):
    said = refused("dashboard", "--store", "sqlite:///x.db", "--listen", address, code=2)
    assert "MILLPOND_DASHBOARD_TOKEN" in said


def test_a_memory_store_is_refused(refused):
    assert "only its own process" in refused(
        "dashboard", "--store", "memory://", "--listen", "127.0.0.1:0", code=1
    )
    assert "cannot see" in refused("run", "tests.api.program:app", "--dashboard", code=1)


def test_a_port_that_is_taken_is_told(refused, served):
    host, port = served.address
    assert "in use" in refused("dashboard", "--store", "sqlite:///x.db", "--listen", f"{host}:{port}", code=2)


def test_the_tokens_are_shown_to_their_owner_and_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def shown(*words: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(CliRunner().invoke(main, ["dashboard", *words, "--json"]).stdout)
        return found

    first = shown("--show-token")
    assert shown("--show-token") == first
    fresh = shown("--new-tokens")
    assert fresh["file"] == first["file"] == str(tmp_path / "millpond" / "dashboard.json")
    assert {fresh["admin"], fresh["read"]}.isdisjoint({first["admin"], first["read"]})


def test_it_runs_beside_a_node_is_started_again_and_ends_with_it(tmp_path):
    with beside_a_node(tmp_path) as served:
        until(lambda: b'"live"' in _asked(served, "/api/v1/nodes"), "the node in the dashboard")
        (first,) = dashboards(served)
        first.kill()
        (second,) = until(lambda: [one for one in dashboards(served) if one != first], "another dashboard")
        until(lambda: b"ok" in _asked(served, "/livez"), "its answer")
        path = f"/api/v1/nodes/{served.document['node']}/drain"
        until(lambda: status(served.post(path, {"grace": 5})) == 202, "the node in the new dashboard")
        assert served.process.wait(30) == 0, "it was told to stop, as by a signal"
        assert not second.is_running()


def test_it_does_not_outlive_a_node_that_was_killed(tmp_path):
    with beside_a_node(tmp_path) as served:
        until(lambda: b"ok" in _asked(served, "/livez"), "the dashboard")
        (child,) = dashboards(served)
        served.process.kill()
        served.process.wait()
        until(lambda: not child.is_running(), "the end of the dashboard")


def beside_a_node(folder: Path) -> AbstractContextManager[Served]:
    words = ("run", "tests.api.program:app", "--dashboard", "--listen", "127.0.0.1:0")
    return command(folder, f"sqlite:///{folder / 'jobs.db'}", *words)


def dashboards(served: Served) -> list[psutil.Process]:
    """The dashboards that a node has started and that live."""
    found = []
    for child in psutil.Process(served.process.pid).children():
        with contextlib.suppress(psutil.Error):
            if "dashboard" in child.cmdline():
                found.append(child)
    return found


def _asked(served: Served, path: str) -> bytes:
    with contextlib.suppress(OSError):
        return served.ask(f"GET {path} HTTP/1.1")
    return b""


def test_a_client_that_sends_nothing_is_cut_off(tmp_path):
    program = (
        "import sys; from millpond.api import server; server.HEAD = 0.2; server.IDLE = 1; "
        "from millpond.cli import main; main(sys.argv[1:])"
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            program,
            "dashboard",
            "tests.api.program:app",
            "--listen",
            "127.0.0.1:0",
            "--json",
        ],
        stdout=subprocess.PIPE,
        env=environment(tmp_path, f"sqlite:///{tmp_path / 'jobs.db'}"),
        cwd=tmp_path,
    )
    try:
        from tests.api.serving import _document

        served = Served(process, _document(process), "")
        for beginning in (
            b"",
            b"GET /livez HTTP/1.1\r\nHost: 127",
            b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /",
        ):
            with served.connect() as connection:
                connection.sendall(beginning)
                with contextlib.suppress(ConnectionError):
                    while connection.recv(4_096):
                        pass
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

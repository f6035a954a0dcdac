"""`millpond run` before the node starts: what is refused, how it is said, and what a start tells."""

from __future__ import annotations

import json
import signal
import socket
import subprocess

import pytest

from millpond.errors import SchemaOutdated, StoreBusy, StoreUnavailable
from millpond.store.sqlite.store import SQLiteStore
from tests.cli.conftest import URL, write_app
from tests.node_signals.programs import MILLPOND, clean_environment, program

NO_TASKS = "from millpond.app import App\napp = App('sqlite:///jobs.db')\n"


# --- what is refused ---------------------------------------------------------------------------------------
def test_an_app_must_be_named(run):
    assert "no app is named: give --app" in run("run", code=2).stderr


def test_an_app_that_cannot_be_imported(run, folder):
    assert "cannot import the app no.such:app" in run("run", "no.such:app", code=1).stderr
    name = write_app(folder, "raise RuntimeError('no licence')")
    assert "RuntimeError: no licence" in run("run", name, code=1).stderr


def test_an_attribute_that_is_no_app(run, folder):
    name = write_app(folder, "app = 3\n")
    assert "is of type int, not an App" in run("run", name, code=1).stderr


def test_an_app_without_tasks(run, folder):
    assert "has no tasks: decorate a function" in run("run", write_app(folder, NO_TASKS), code=1).stderr


def test_a_queue_nobody_has_a_task_for(run, app_name, monkeypatch):
    stderr = run("run", app_name, "--queue", "mail", "--queue", "imges", code=2).stderr
    assert "'imges', did you mean 'images'?" in stderr
    assert "come from --queue" in stderr
    monkeypatch.setenv("MILLPOND_QUEUES", "mail, imges")
    assert "come from MILLPOND_QUEUES" in run("run", app_name, code=2).stderr


def test_two_apps_are_one_too_many(run, app_name):
    stderr = run("run", app_name, "--app", "other:app", code=2).stderr
    assert "two apps are named" in stderr
    assert "contradict" in run("run", app_name, "--health", "h:1", "--no-health", code=2).stderr


def test_a_dashboard_that_strangers_could_reach_is_refused_before_the_node_starts(run, app_name):
    said = run("run", app_name, "--dashboard", "--listen", "0.0.0.0:0", code=2).stderr
    assert "MILLPOND_DASHBOARD_TOKEN" in said


def test_another_store_than_the_apps(run, app_name):
    assert "is not the store of" in run("run", app_name, "--store", "sqlite:///x.db", code=2).stderr


@pytest.mark.parametrize(("error", "code"), [(SchemaOutdated, 1), (StoreUnavailable, 69), (StoreBusy, 75)])
def test_a_store_that_cannot_be_used_is_told_before_the_start(run, app_name, monkeypatch, error, code):
    def refuse(*_: object) -> None:
        raise error("run `millpond migrate`")

    monkeypatch.setattr(SQLiteStore, "record", refuse)
    assert "run `millpond migrate`" in run("run", app_name, code=code).stderr


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--grace", "soon"], "--grace must be a duration"),
        (["--lease", "10ms"], "--lease must be from 1 second to 1 hour"),
        (["--health", "8080"], "--health must be HOST:PORT"),
        (["--health", ":8080"], "--health must be HOST:PORT"),
        (["--health", "localhost:99999"], "--health must be HOST:PORT"),
        (["--queue", "A b"], "--queue: queue must be 1 to 64 of"),
        (["--log-format", "xml"], "'xml' is not one of"),
        (["--log-level", "loud"], "'loud' is not one of"),
    ],
)
def test_a_wrong_flag_names_itself(run, app_name, flags, complaint):
    assert complaint in run("run", app_name, *flags, code=2).stderr


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("MILLPOND_GRACE", "soon", "MILLPOND_GRACE must be a duration"),
        ("MILLPOND_HEALTH", "x", "MILLPOND_HEALTH must be HOST:PORT"),
        ("MILLPOND_HEALTH_TOKEN", "hush", "must be text of 16 to 1000 characters"),
        ("MILLPOND_OPEN_METRICS", "perhaps", "must be true or false"),
        ("MILLPOND_LOG_LEVEL", "loud", "must be one of debug, info"),
    ],
)
def test_a_wrong_variable_is_a_wrong_setting(run, monkeypatch, name, value, complaint):
    monkeypatch.setenv(name, value)
    result = run("run", "jobs:app", code=3)
    assert complaint in result.stderr
    assert "hush" not in result.output


def test_a_token_is_never_shown(run, ask, monkeypatch):
    monkeypatch.setenv("MILLPOND_HEALTH_TOKEN", "very-secret-and-long")
    assert ask("config")["settings"]["health_token"]["value"] == "***"
    assert "very-secret" not in run("config").output


def test_a_health_port_that_is_taken_stops_the_start(run, app_name):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "cannot be opened" in run("run", app_name, "--health", f"127.0.0.1:{port}", code=2).stderr


# --- what a start tells ------------------------------------------------------------------------------------
def start(app_name, folder, *flags, **options):
    return program(str(MILLPOND), "run", app_name, *flags, cwd=folder, env=clean_environment(), **options)


def test_a_start_tells_what_is_served(app_name, folder):
    with start(app_name, folder, "--health", "127.0.0.1:0") as node:
        node.until("Ctrl-C drains within 25.0 s")
        node.send(signal.SIGTERM)
        assert node.code() == 0
    said = "\n".join(node.lines)
    assert f"app         {app_name}" in said
    assert f"store       {URL}" in said
    assert "durability  durable" in said
    assert "health      http://127.0.0.1:" in said
    rows = [line.split() for line in node.lines]
    assert ["images", "images", "process"] in [row[:3] for row in rows]
    assert ["mail", "mail", "async"] in [row[:3] for row in rows]


def test_a_start_tells_programs_what_is_served(app_name, folder):
    flags = ("--json", "--queue", "mail", "--grace", "2m")
    with start(app_name, folder, *flags, stderr=subprocess.DEVNULL) as node:
        while node.until("") != "}":
            pass
        node.send(signal.SIGTERM)
        assert node.code() == 0
    document = json.loads("\n".join(node.lines))
    assert (document["app"], document["store"], document["health"]) == (app_name, URL, None)
    assert document["grace"] == 120
    (pool,) = document["pools"]
    assert (pool["pool"], pool["queues"], pool["kind"]) == ("mail", ["mail"], "async")

"""`millpond nodes`: who has a lease, who fell silent, who is being rescued."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from millpond.node.commands import Commands
from millpond.store.protocol import Claim
from tests.cli.conftest import URL, add_job

SECONDS = 1_000_000


@pytest.fixture
def nodes(ask):
    return lambda: ask("nodes", "--store", URL)["nodes"]


def test_no_nodes_says_how_to_start_one(run, store):
    add_job(store)
    assert "start" in run("nodes", "--store", URL).stdout


def test_a_node_with_its_lease_and_its_jobs(run, nodes, store):
    add_job(store)
    store.renew("web-1-ab", "web", b'{"pid": 7, "boot": "x", "queues": ["default", "mail"]}', lease=60.0)
    store.exchange("web-1-ab", 1, claims=[Claim("default", 1)])
    (node,) = nodes()
    assert 0 < node.pop("lease_left") <= 60
    assert node == {
        "id": "web-1-ab",
        "host": "web",
        "state": "live",
        "running": 1,
        "info": {"pid": 7, "boot": "x", "queues": ["default", "mail"]},
    }
    shown = run("nodes", "--store", URL).stdout
    assert "pid=7 queues=default,mail" in shown
    assert "boot" not in shown


def test_a_node_that_did_not_renew_is_silent(run, nodes, store):
    store.renew("old", "web", lease=0.001)
    while nodes()[0]["lease_left"] > 0:
        pass
    assert nodes()[0]["state"] == "silent"
    shown = run("nodes", "--store", URL).stdout
    assert "over for" in shown
    assert "1 node did not renew in time" in shown


def test_what_a_node_says_of_itself_cannot_steer_the_terminal(run, nodes, store):
    store.renew("evil", "h\x1b[2J", b'{"note": "\\u001b[31m"}')
    store.renew("odd", "web", b"[1, 2]")
    shown = run("nodes", "--store", URL).stdout
    assert "\x1b" not in shown
    assert {node["id"]: node["info"] for node in nodes()}["odd"] == [1, 2]


def test_a_node_is_told_to_drain_by_the_beginning_of_its_id(run, ask, store):
    for name in ("web-1-aa", "web-2-bb"):
        store.renew(name, "web", lease=60.0)
    heard: list[Any] = []
    nodes = [
        Commands(store, partial(str, name), {"drain": heard.append}) for name in ("web-1-aa", "web-2-bb")
    ]
    assert ask("nodes", "drain", "web-2", "--grace", "1m", "--store", URL) == {
        "node": "web-2-bb", "command": "drain", "grace": 60.0,
    }  # fmt: skip
    for node in nodes:
        node.look()
    assert [(said["node"], said["grace"]) for said in heard] == [("web-2-bb", 60.0)]
    (line,) = [json.loads(entry.data) for entry in store.log("audit")]
    assert (line["action"], line["target"]) == ("node.drain", "web-2-bb")
    for said in ("web", "web-9", "nowhere"):
        assert "is not the id of one live node" in run("nodes", "drain", said, "--store", URL, code=1).stderr
    assert "--grace" in run("nodes", "drain", "web-1", "--grace", "soon", "--store", URL, code=2).stderr

"""`millpond nodes`: who has a lease, who fell silent, who is being rescued."""

from __future__ import annotations

import pytest

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

"""`millpond pools`: the pools of every node, why they have their size, and other bounds for one."""

from __future__ import annotations

import json

import pytest

from millpond.node.scaling.overrides import Bounds, read_bounds
from tests.cli.conftest import URL

POOL = {
    "name": "images",
    "queues": ["images", "thumbs"],
    "workers": 4,
    "least": 1,
    "most": 8,
    "concurrency": 1,
    "wanted": 6,
    "desired": 6,
    "sentence": "images 4 -> 6: oldest wait 3.1 s of 10 s",
}
LINE = {"node": "web-1-ab", "pool": "images", "sentence": "images 4 -> 6: capped by memory", "wanted": 6}


@pytest.fixture
def node(store):
    store.renew("web-1-ab", "web", json.dumps({"pid": 7, "pools": [POOL]}).encode(), lease=60.0)


def test_no_pools_says_how_to_get_some(run, store):
    assert "millpond run" in run("pools", "--store", URL).stdout


def test_the_pools_of_every_node_with_the_last_decision(run, ask, node):
    (pool,) = ask("pools", "--store", URL)["pools"]
    assert pool == {**POOL, "node": "web-1-ab", "host": "web", "shadow": False, "set": None}
    shown = run("pools", "--store", URL).stdout
    assert "images,thumbs" in shown
    assert "oldest wait 3.1 s of 10 s" in shown


def test_nodes_do_not_show_what_pools_shows(run, node):
    assert "oldest" not in run("nodes", "--store", URL).stdout


def test_the_last_decisions_with_all_their_terms(run, ask, store):
    assert "no decisions" in run("pools", "--decisions", "--store", URL).stdout
    store.log("decisions", [json.dumps({**LINE, "wanted": n}).encode() for n in range(30)] + [b"\xff", b"[]"])
    found = ask("pools", "--decisions", "--store", URL)["decisions"]
    assert [line["wanted"] for line in found] == list(range(10, 30))
    assert found[-1]["number"] == 30
    assert found[-1]["at"].endswith("Z")
    assert len(ask("pools", "--decisions", "--limit", "3", "--store", URL)["decisions"]) == 3
    assert "capped by memory" in run("pools", "--decisions", "--store", URL).stdout


def test_other_bounds_are_kept_until_they_are_reset(run, ask, store, node):
    assert ask("pools", "set", "images", "--workers", "2:12", "--store", URL) == {
        "pool": "images",
        "workers": [2, 12],
    }
    assert read_bounds(store, "images") == Bounds(2, 12)
    assert ask("pools", "--store", URL)["pools"][0]["set"] == [2, 12]
    assert "--reset" in run("pools", "--store", URL).stdout
    assert "4 to 4 workers" in run("pools", "set", "images", "--workers", "4", "--store", URL).stdout
    run("pools", "set", "images", "--reset", "--store", URL)
    assert read_bounds(store, "images") is None


def test_a_pool_that_no_node_has_is_refused_unless_it_is_meant(run, store, node):
    said = run("pools", "set", "imagse", "--workers", "1:2", "--store", URL, code=1).stderr
    assert "did you mean 'images'?" in said
    assert read_bounds(store, "imagse") is None
    run("pools", "set", "later", "--workers", "1:2", "--new", "--store", URL)
    assert read_bounds(store, "later") == Bounds(1, 2)
    run("pools", "set", "later", "--reset", "--store", URL)
    assert read_bounds(store, "later") is None, "what was set can be reset whether or not a node has it"


@pytest.mark.parametrize("said", ["8:2", "0:0", "-1:2", "many", "1:99999", "1:2:3"])
def test_bounds_that_cannot_be_are_refused(run, store, said):
    run("pools", "set", "images", f"--workers={said}", "--store", URL, code=2)
    assert read_bounds(store, "images") is None


@pytest.mark.parametrize("said", [(), ("--workers", "1:2", "--reset")])
def test_one_thing_must_be_said(run, store, said):
    run("pools", "set", "images", *said, "--store", URL, code=2)


def test_what_a_node_says_cannot_steer_the_terminal_or_break_the_list(run, ask, store):
    evil = {**POOL, "sentence": "\x1b[2J", "name": "\x1b[31m"}
    told = [evil, {"name": 3}, "x", {**POOL, "workers": "many"}]
    store.renew("evil", "web", json.dumps({"pools": told}).encode())
    store.renew("odd", "web", b'{"pools": 7}')
    assert "\x1b" not in run("pools", "--store", URL).stdout
    assert len(ask("pools", "--store", URL)["pools"]) == 1

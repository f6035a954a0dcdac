"""`/scale`: what the fleet would like to have, for KEDA and for Prometheus, and who may read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from millpond.config import KEYS, variable
from millpond.node.health.routes import HealthOptions
from millpond.node.observability.metrics import render
from millpond.node.scaling.fleet import PoolShare, scale_document, servers_of, shares_of, told
from millpond.store.protocol import NodeRecord
from tests.node_health.reports import node
from tests.node_health.test_health_port import TOKEN, ask, body, serving

DEPLOY = Path(__file__).parents[2] / "deploy"


def share(**changes: object) -> PoolShare:
    usual = {
        "name": "images", "queues": ("images",), "workers": 8, "least": 1, "most": 8, "concurrency": 1,
        "wanted": 8, "desired": 12, "node": "one", "host": "web",
    }  # fmt: skip
    return PoolShare(**{**usual, **changes})  # type: ignore[arg-type]


FLEET = (
    share(),
    share(node="two", desired=3, workers=3),
    share(name="mail", queues=("mail", "news"), concurrency=50, workers=1, most=2, desired=1),
)


def record(**changes: object) -> NodeRecord:
    usual = {
        "id": "one", "host": "web", "info": b"{}", "lease_left": 9.0, "sequence": 1, "sealed": False,
        "running": 0,
    }  # fmt: skip
    return NodeRecord(**{**usual, **changes})  # type: ignore[arg-type]


def test_the_sums_are_over_the_fleet_for_each_pool_and_queue():
    document = scale_document(FLEET)
    assert document["nodes"] == 2
    assert document["pools"]["images"] == {
        "desired_slots": 15,
        "desired_workers": 15,
        "slots": 11,
        "workers": 11,
        "desired_nodes": 3,
    }
    assert document["queues"]["news"]["desired_slots"] == 50
    assert (document["desired_slots"], document["desired_workers"], document["desired_nodes"]) == (65, 16, 3)


@pytest.mark.parametrize(("desired", "nodes"), [(0, 1), (8, 1), (9, 2), (14, 2), (15, 3), (72, 10)])
def test_as_many_nodes_as_hold_what_is_wanted_with_a_tenth_to_spare(desired, nodes):
    assert scale_document([share(desired=desired)])["desired_nodes"] == nodes


def test_nodes_that_have_nothing_to_do_ask_for_no_more_nodes():
    idle = [share(node=str(number), least=8, workers=8, wanted=8, desired=0) for number in range(5)]
    assert scale_document(idle)["desired_nodes"] == 1


def test_an_empty_fleet_wants_nothing():
    assert scale_document(()) == {
        "desired_slots": 0, "desired_workers": 0, "slots": 0, "workers": 0, "desired_nodes": 0, "nodes": 0,
        "pools": {}, "queues": {},
    }  # fmt: skip


# --- from one node to the others -------------------------------------------------------------------------
def test_what_a_node_tells_is_read_back_by_others():
    info = json.dumps({"queues": ["images"], "pools": told([share(sentence="why")])}).encode()
    assert shares_of([record(info=info)]) == [share(sentence="why")]
    assert servers_of([record(info=info), record(id="two", info=info)]) == {"images": 2}


@pytest.mark.parametrize("info", [b"", b"[]", b'{"pools": 3}', b'{"pools": [{"name": "x"}]}', b"\xff"])
def test_a_node_that_cannot_be_understood_has_no_pools(info):
    assert shares_of([record(info=info)]) == []


def test_a_node_without_a_lease_does_not_count():
    info = json.dumps({"queues": ["images"], "pools": told([share()])}).encode()
    gone = [record(info=info, lease_left=-1.0), record(info=info, sealed=True)]
    assert shares_of(gone) == []
    assert not servers_of(gone)


# --- over HTTP -------------------------------------------------------------------------------------------
def test_scale_is_one_json_document_behind_the_token_of_the_metrics():
    options = HealthOptions(port=0, token=TOKEN)
    with serving(node(fleet=FLEET), options) as server:
        assert ask(server, "/scale").status == 401
        assert ask(server, "/scale", Authorization="Bearer wrong").status == 401
        response = ask(server, "/scale", Authorization=f"Bearer {TOKEN}")
        assert response.status == 200
        assert response.getheader("Content-Type") == "application/json"
        assert json.loads(body(response))["queues"]["images"]["desired_workers"] == 15


def test_without_a_token_scale_is_shut_unless_it_is_opened():
    with serving(node(fleet=FLEET)) as server:
        assert ask(server, "/scale").status == 403
    with serving(node(fleet=FLEET), HealthOptions(port=0, open_metrics=True)) as server:
        assert ask(server, "/scale").status == 200


def test_a_name_of_the_service_may_be_allowed():
    options = HealthOptions(port=0, open_metrics=True, hosts=("millpond.jobs.svc",))
    with serving(node(fleet=FLEET), options) as server:
        assert ask(server, "/scale", Host="millpond.jobs.svc:8650").status == 200
        assert ask(server, "/scale", Host="evil.example").status == 421


def test_the_manifests_ask_for_what_there_is():
    manifests = {path.name: list(yaml.safe_load_all(path.read_text())) for path in DEPLOY.rglob("*.yaml")}
    _, scaled = manifests["keda.yaml"]
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["metadata"]["valueLocation"] in scale_document(FLEET)
    series = manifests["adapter.yaml"][0]["rules"]["external"][0]["seriesQuery"]
    assert series.partition("{")[0] in render(node(fleet=FLEET)).decode()
    variables = {
        one["name"] for one in manifests["nodes.yaml"][1]["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    ours = {name for name in variables if name.startswith("MILLPOND_")}
    assert ours <= {variable(key) for key in KEYS}


def test_the_same_numbers_are_metrics():
    page = render(node(fleet=FLEET)).decode()
    assert 'millpond_fleet_desired_slots{pool="mail"} 50.0' in page
    assert 'millpond_fleet_desired_workers{pool="images"} 15.0' in page

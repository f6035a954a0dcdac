"""The files to copy for Kubernetes and systemd: what a careful cluster wants, and what the docs show."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"


def documents(name: str) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all((KUBERNETES / name).read_text())}


def pod(kind: str) -> dict[str, Any]:
    return documents("nodes.yaml")[kind]["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def unit(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


UNIT = unit((ROOT / "deploy" / "systemd" / "millpond.service").read_text())


@pytest.mark.parametrize("kind", ["Job", "Deployment"])
def test_pods_pass_where_only_restricted_ones_may_run(kind):
    (container,) = pod(kind)["containers"]
    around, inside = pod(kind)["securityContext"], container["securityContext"]
    assert around["runAsNonRoot"] is True
    assert isinstance(around["runAsUser"], int)  # an image may name its user, which Kubernetes cannot check
    assert around["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["readOnlyRootFilesystem"] is True
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp"}
    assert pod(kind)["automountServiceAccountToken"] is False


def test_a_slow_import_is_waited_for():
    (container,) = pod("Deployment")["containers"]
    probe = container["startupProbe"]
    assert probe["httpGet"] == container["livenessProbe"]["httpGet"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 300


def test_a_node_of_the_cluster_that_is_emptied_takes_few_pods_with_it():
    (spread,) = pod("Deployment")["topologySpreadConstraints"]
    budget = documents("nodes.yaml")["PodDisruptionBudget"]["spec"]
    labels = documents("nodes.yaml")["Deployment"]["spec"]["selector"]
    assert spread["labelSelector"] == budget["selector"] == labels
    assert budget["maxUnavailable"] == 1


def test_the_migration_can_be_applied_for_every_image_and_goes_away():
    job = documents("nodes.yaml")["Job"]
    (container,) = pod("Job")["containers"]
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    assert job["metadata"]["name"].endswith("-" + container["image"].partition(":")[2])


def test_prometheus_is_given_the_token_that_metrics_want():
    metadata = documents("nodes.yaml")["Deployment"]["spec"]["template"]["metadata"]
    assert not any("prometheus" in name for name in metadata.get("annotations", ()))
    monitor = documents("podmonitor.yaml")["PodMonitor"]["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    (container,) = pod("Deployment")["containers"]
    (token,) = [one for one in container["env"] if one["name"] == "MILLPOND_HEALTH_TOKEN"]
    assert endpoint["authorization"]["credentials"] == token["valueFrom"]["secretKeyRef"]
    assert endpoint["port"] in [port["name"] for port in container["ports"]]
    assert monitor["selector"] == documents("nodes.yaml")["Deployment"]["spec"]["selector"]


def test_the_unit_takes_rights_away_and_hides_nothing_that_a_node_reads():
    service = UNIT["Service"]
    assert service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert not {"ProtectProc", "ProcSubset", "PrivatePIDs"} & set(service)


def test_the_unit_is_the_one_that_the_docs_show():
    page = (ROOT / "docs" / "howto" / "run-a-node.md").read_text()
    (shown,) = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    assert "ExecReload" not in UNIT["Service"]  # notify-reload does it
    for name in ("Type", "KillMode", "TimeoutStopSec", "WatchdogSec", "Restart"):
        assert UNIT["Service"][name] == unit(shown)["Service"][name], name

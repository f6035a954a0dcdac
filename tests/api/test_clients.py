"""Who asks: the address behind trusted proxies, and sessions that end for good when they are ended."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network
from typing import Any

import pytest

from millpond.api.security import session_ends
from millpond.errors import StoreUnavailable
from millpond.rules.http_access import client_of
from tests.api.asking import ADMIN, Client, gate_for
from tests.api.conftest import with_tasks
from tests.api.test_gate import log_in

# --- behind a proxy --------------------------------------------------------------------------------------
PROXIES = (ip_network("10.0.0.0/24"), ip_network("fd00::1"))


@pytest.mark.parametrize(
    ("peer", "said", "found"),
    [
        ("10.0.0.5", "9.9.9.9", "9.9.9.9"),
        ("10.0.0.5", "1.1.1.1, 9.9.9.9", "9.9.9.9"),
        ("10.0.0.5", "1.1.1.1, 9.9.9.9, 10.0.0.7", "9.9.9.9"),
        ("10.0.0.5", "10.0.0.9, 10.0.0.7", "10.0.0.9"),
        ("10.0.0.5", "", "10.0.0.5"),
        ("10.0.0.5", "nonsense", "10.0.0.5"),
        ("10.0.0.5", "9.9.9.9:4711", "9.9.9.9"),
        ("fd00::1", "[2001:db8::5]:4711", "2001:db8::5"),
        ("fd00::1", "2001:db8::5", "2001:db8::5"),
        ("8.8.8.8", "9.9.9.9", "8.8.8.8"),
        ("unknown", "9.9.9.9", "unknown"),
    ],
)
def test_a_forwarded_address_counts_only_from_a_trusted_proxy(peer, said, found):
    assert client_of(peer, said, PROXIES) == found
    assert client_of(peer, said, ()) == peer


async def test_behind_a_trusted_proxy_everybody_has_limits_of_their_own(app):
    gate = gate_for(app, proxies=PROXIES)
    client = Client(gate)
    stranger, other = {"x-forwarded-for": "9.9.9.9"}, {"x-forwarded-for": "8.8.8.8"}

    async def guess(headers: dict[str, str]) -> int:
        wrong = {"token": "wrong"}
        return (await client.post("/api/v1/session", wrong, headers=headers, client="10.0.0.5")).status

    assert [await guess(stranger) for _ in range(11)][-1] == 429
    assert await guess(other) == 401
    job = {"task": "resize", "arguments": ["a"]}
    await client.as_(ADMIN).post("/api/v1/jobs", job, headers=other, client="10.0.0.5")
    lines = (await client.as_(ADMIN).get("/api/v1/audit")).json["audit"]
    assert [line["from"] for line in lines if line["action"] == "job.enqueue"] == ["8.8.8.8"]
    gate.close()


# --- logging out -----------------------------------------------------------------------------------------
async def test_a_session_that_was_logged_out_stays_so_after_a_restart_and_at_other_dashboards(tmp_path):
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    here, there = (gate_for(with_tasks(url), open_reads=False) for _ in range(2))
    session, kept = await log_in(here, ADMIN), await log_in(here, ADMIN)
    assert (await Client(here).get("/api/v1/queues", headers=session)).status == 200
    await Client(here).ask("DELETE", "/api/v1/session", {}, session)
    restarted = gate_for(with_tasks(url), open_reads=False)
    for gate in (here, there, restarted):
        assert (await Client(gate).get("/api/v1/queues", headers=session)).status == 401
        assert (await Client(gate).get("/api/v1/queues", headers=kept)).status == 200
        gate.close()


async def test_another_dashboard_learns_of_it_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(session_ends, "FRESH", 0.0)
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    here, there = (gate_for(with_tasks(url), open_reads=False) for _ in range(2))
    session = await log_in(here, ADMIN)
    assert (await Client(there).get("/api/v1/queues", headers=session)).status == 200
    await Client(here).ask("DELETE", "/api/v1/session", {}, session)
    async with asyncio.timeout(20):
        while (await Client(there).get("/api/v1/queues", headers=session)).status == 200:
            pass  # each answer gives way to the look at the store
    here.close()
    there.close()


async def test_a_session_is_good_at_the_dashboards_of_one_store_only(gate, tmp_path):
    session = await log_in(gate, ADMIN)
    other = gate_for(with_tasks(f"sqlite:///{tmp_path / 'other.db'}"), open_reads=False)
    assert (await Client(gate).get("/api/v1/audit", headers=session)).status == 200
    assert (await Client(other).get("/api/v1/audit", headers=session)).status == 401
    other.close()


async def test_logging_out_says_so_when_it_cannot_be_remembered(gate, monkeypatch):
    session = await log_in(gate, ADMIN)
    monkeypatch.setattr(gate._desk.store, "record", refuse)
    assert (await Client(gate).ask("DELETE", "/api/v1/session", {}, session)).status == 503


def refuse(*_: Any) -> Any:
    raise StoreUnavailable("it is away")

"""Workers and nodes are killed, nodes are stopped past their lease and woken: nothing is lost or doubled."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.history.entries import Settled
from tests.history.evidence import read
from tests.proof_node.fleet import STORES, Fleet, Member, fleet_on
from tests.proof_node.load import fill


def ended_more(fleet: Fleet, before: int, more: int) -> bool:
    """Has the run gone on? Faults strike a fleet at work, not one that is still starting."""
    return fleet.in_state(ended=True) >= before + more or fleet.in_state(ended=False) == 0


def kill_a_worker(fleet: Fleet, member: Member) -> None:
    workers = member.workers()
    if workers:
        fleet.evidence.kill(random.choice(workers))


def kill_the_node(fleet: Fleet, member: Member) -> None:
    fleet.kill(member)
    fleet.start(wait=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", STORES)
def test_workers_and_nodes_are_killed_at_random(name: str, tmp_path: Path):
    """For long, and nothing else is done; a short form of it is a part of test_chaos.py."""
    number, faults = 20_000, 1000
    with fleet_on(name, tmp_path, lease=5.0, pools={"default": {"workers": [2, 3]}}) as fleet:
        fill(number)
        fleet.start()
        fleet.start()
        for turn in range(faults):
            before = fleet.in_state(ended=True)
            (kill_the_node if turn % 8 == 5 else kill_a_worker)(fleet, random.choice(fleet.living))
            more = random.randrange(max(2, number // faults))
            fleet.until(lambda: ended_more(fleet, before, more), "more ends", 600)  # noqa: B023
        fleet.drained(3600)
        fleet.judge()


@pytest.mark.parametrize("rounds", [1, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", STORES)
def test_a_node_is_stopped_past_its_lease_and_wakes_up_refused(name: str, rounds: int, tmp_path: Path):
    with fleet_on(name, tmp_path, lease=2.0) as fleet:
        fleet.start()
        fleet.start()
        for turn in range(rounds):
            fill(60, 0.05)
            victim = fleet.members[turn % 2]
            fleet.until(lambda: works(fleet, victim), "the victim is at work")  # noqa: B023
            known = nodes_of(fleet, victim)
            with fleet.stopped(victim):
                fleet.until(lambda: not known & nodes_of(fleet, victim), "it is rescued")  # noqa: B023
                fleet.until(lambda: fleet.in_state(ended=False) == 0, "the other has done it all")
            fleet.until(lambda: nodes_of(fleet, victim) - known, "it goes on under a new name")  # noqa: B023
        fleet.drained()
        fleet.judge()
        refused = [
            line for line in read(fleet.folder) if isinstance(line, Settled) and line.accepted is False
        ]
        assert refused or rounds == 1  # what one wakes up with is chance, over many rounds it is not


def works(fleet: Fleet, member: Member) -> bool:
    """Does the store know that it runs something?"""
    return any(
        node.running > 0 for node in fleet.store.counts().nodes if f"-{member.pid}-" in node.id
    ) or not fleet.in_state(ended=False)


def nodes_of(fleet: Fleet, member: Member) -> set[str]:
    return {node.id for node in fleet.store.counts().nodes if f"-{member.pid}-" in node.id}

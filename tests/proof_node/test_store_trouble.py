"""The store goes away, falls silent or does not answer: nothing is lost or doubled, and the nodes go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from millpond.errors import StoreError
from millpond.store.redis.scripts import script
from tests.history import Kind, read
from tests.history.entries import Settled
from tests.proof_node import jobs
from tests.proof_node.fleet import Fleet, fleet_on
from tests.proof_node.load import fill
from tests.proof_node.proxy import Proxy, Tells
from tests.proof_stores.test_crowd import locked
from tests.proof_stores.worlds import Server
from tests.stores.places import place

SERVERS = ("postgres", "redis")


def goes_on(fleet: Fleet, number: int = 20) -> None:
    """New work is done."""
    before = fleet.in_state(ended=True)
    jobs.work.enqueue_many([()] * number)
    fleet.until(lambda: fleet.in_state(ended=True) >= before + number, "the fleet goes on")


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_the_server_is_restarted_again_and_again(name: str, tmp_path: Path):
    """For long, and nothing else is done; a short form of it is a part of test_chaos.py."""
    number, restarts = 20_000, 50
    server = Server(name)
    try:
        with Fleet(server.url, tmp_path, lease=5.0) as fleet:
            fill(number)
            fleet.start()
            fleet.start()
            for turn in range(restarts):
                before = fleet.in_state(ended=True)
                fleet.until(lambda: fleet.in_state(ended=True) > before, "it works")  # noqa: B023
                with fleet.evidence.fault(Kind.STORE):
                    server.stop("crash" if turn % 2 else "orderly")
                    enqueue_in_vain()
                    server.process.start()
                jobs.work.enqueue_many([()] * 10)
            goes_on(fleet)
            fleet.drained(3600)
            fleet.judge()
    finally:
        server.process.server.remove()


def enqueue_in_vain() -> None:
    with pytest.raises(StoreError):
        jobs.work.enqueue()


@pytest.mark.parametrize(
    ("seconds", "lease"),
    [(4.0, 2.0), *(pytest.param(seconds, 15.0, marks=pytest.mark.slow) for seconds in (3.0, 60.0, 600.0))],
)
@pytest.mark.parametrize("name", SERVERS)
def test_nobody_can_reach_the_store_and_nobody_is_told(
    name: str, seconds: float, lease: float, tmp_path: Path
):
    """Shorter and longer than a lease. Nobody rescues anybody: they were all away."""
    with (
        place(name, tmp_path) as url,
        Proxy(url) as proxy,
        Fleet(url, tmp_path, way=proxy.url, lease=lease) as fleet,
    ):
        fill(200)
        fleet.start()
        fleet.start()
        fleet.until(lambda: fleet.in_state(ended=True) > 10, "it works")
        with fleet.evidence.fault(Kind.STORE):
            proxy.fall_silent()
            time.sleep(seconds)  # the fault itself, not a wait for something
            proxy.speak_again()
        goes_on(fleet)
        fleet.drained()
        fleet.judge()


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["redis", pytest.param("postgres", marks=pytest.mark.slow)])
def test_connections_that_never_answer_again_are_given_up(name: str, times: int, tmp_path: Path):
    """As when something on the way has forgotten them: nobody says so, only new ones work."""
    with (
        place(name, tmp_path) as url,
        Proxy(url) as proxy,
        Fleet(url, tmp_path, way=proxy.url, lease=15.0) as fleet,
    ):
        fleet.start()
        for _ in range(times):
            fill(100)
            fleet.until(lambda: fleet.in_state(ended=True) > 10, "it works")
            with fleet.evidence.fault(Kind.STORE):
                proxy.lose_all()
                goes_on(fleet)
        fleet.drained()
        fleet.judge()


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SERVERS)
def test_one_node_is_cut_off_and_another_does_its_work(name: str, rounds: int, tmp_path: Path):
    with place(name, tmp_path) as url, Proxy(url) as proxy, Fleet(url, tmp_path, lease=2.0) as fleet:
        fleet.start()
        fleet.way = proxy.url
        victim = fleet.start()
        for _ in range(rounds):
            fill(100)
            fleet.until(lambda: fleet.in_state(ended=True) > 10, "it works")
            with fleet.evidence.fault(Kind.CUT, node=victim.label):
                proxy.fall_silent()
                fleet.until(lambda: fleet.in_state(ended=False) == 0, "the other has done it all")
                proxy.speak_again()
            goes_on(fleet)
        fleet.drained()
        fleet.judge()


@pytest.mark.parametrize("times", [15, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SERVERS)
def test_the_answer_to_what_the_store_has_done_does_not_come(name: str, times: int, tmp_path: Path):
    """Only the claim loop's way is bad: a lease that is kept makes every rerun a bug."""
    with (
        place(name, tmp_path) as url,
        Proxy(url, asked(name)) as proxy,
        Fleet(url, tmp_path, way=proxy.url, environment={jobs.HEART: url}) as fleet,
    ):
        fleet.start()
        for answers, feed in swallowed(name):
            wanted = proxy.swallowed + times
            proxy.swallow(times, every=3, answers=answers)
            while proxy.swallowed < wanted:
                feed(fleet)
        goes_on(fleet)
        fleet.drained()
        fleet.judge()
        unknown = [line for line in read(fleet.folder) if isinstance(line, Settled) and line.accepted is None]
        assert unknown  # there were settlements in what was swallowed
        assert "rescued" not in fleet.said()


def asked(name: str) -> Tells:
    """What tells the request of an exchange."""
    digest = script("exchange").digest[:16].encode()  # as a function or as a script
    return lambda request: name != "redis" or digest in request


def swallowed(name: str) -> list[tuple[Tells, Callable[[Fleet], None]]]:
    """What tells the answers to exchanges that were done, one sort after the other, and what brings them."""
    if name == "redis":
        return [(lambda _: True, many)]
    # Several statements end with a commit; a claim alone is one statement, which answers with whole jobs
    return [(lambda answer: b"COMMIT\0" in answer, many), (is_claim_alone, one)]


def many(fleet: Fleet) -> None:
    """Enough to do that ends and claims go together."""
    fill(40, 0.01)
    fleet.until(lambda: fleet.in_state(ended=False) < 20, "most of them end")


def one(fleet: Fleet) -> None:
    """So little that a claim goes alone."""
    jobs.work.enqueue()
    fleet.until(lambda: not fleet.in_state(ended=False), "it ends")


def is_claim_alone(answer: bytes) -> bool:
    """Are these jobs from a statement outside a transaction? It has been committed then."""
    return b"unique_key\0" in answer and b"SELECT 0\0" not in answer and answer.endswith(b"Z\0\0\0\5I")


@pytest.mark.parametrize("seconds", [6.0, pytest.param(60.0, marks=pytest.mark.slow)])
def test_a_foreign_lock_on_the_file_is_waited_out(seconds: float, tmp_path: Path):
    """Longer than a call waits and longer than the lease."""
    with fleet_on("sqlite", tmp_path, lease=3.0) as fleet:
        fill(100)
        fleet.start()
        fleet.start()
        fleet.until(lambda: fleet.in_state(ended=True) > 10, "it works")
        with fleet.evidence.fault(Kind.STORE):
            foreign = locked(Path(urlsplit(fleet.url).path))
            time.sleep(seconds)  # the fault itself, not a wait for something
            foreign.close()
        goes_on(fleet)
        fleet.drained()
        fleet.judge()

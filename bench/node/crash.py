"""SIGKILL in the middle of a job: how long until the same job runs again.

Worker: the process that runs the handler is killed; the node is started again if its main process has
ended, as a service manager would. Node: two nodes run, and all processes of the one with the job are killed;
for Millpond once as nodes of one machine, once as of two.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from evidence import Mark, Stuck, count, quantile, read, wait_for
from peers import APART, Peer
from places import Place, Places
from processes import NodeUnderTest, feed
from sizes import START, Sizes

from millpond import App

PAUSE = 0.05  # seconds a job has run when its worker is killed
UP = 3.0  # seconds that a node started anew is given before the next kill
RESTART = 5.0  # seconds between two starts by the service manager
Result = dict[str, Any]
Scenario = Callable[..., Result]


def worker_killed(places: Places, peer: Peer, sizes: Sizes, cell: int = 0) -> Result:
    """Kill the process that runs the job, again and again."""
    place = places.fresh(peer.store, cell)
    feed(peer, place, "setup")
    nodes = [NodeUnderTest(peer, place, safe=True)]
    try:
        kills = sizes.kills if peer.name == "millpond" else sizes.peer_kills
        return _killed(peer, place, nodes, kills, sizes.cap, whole=False)
    finally:
        nodes[0].kill()


def node_killed(places: Places, peer: Peer, sizes: Sizes, cell: int = 0) -> Result:
    """Kill a whole node; another one is there."""
    place = places.fresh(peer.store, cell)
    feed(peer, place, "setup")
    nodes = [NodeUnderTest(peer, place, safe=True) for _ in range(2)]
    try:
        kills = sizes.node_kills if peer.name == "millpond" else sizes.peer_kills
        return _killed(peer, place, nodes, kills, sizes.cap, whole=True)
    finally:
        for node in nodes:
            node.kill()


def machine_lost(places: Places, peer: Peer, sizes: Sizes, cell: int = 0) -> Result:
    """The same for Millpond without what nodes of one machine see of each other: only the lease tells."""
    return node_killed(places, peer._replace(safe=APART), sizes, cell)


def side_by_side(places: Places, peers: Sequence[Peer], sizes: Sizes, scenario: Scenario) -> list[Result]:
    """All peers at once, each in a cell of its own: they mostly wait for their timers."""
    results: list[Result] = [{} for _ in peers]

    def one(cell: int, peer: Peer) -> None:
        try:
            results[cell] = scenario(places, peer, sizes, cell)
        except Exception as error:  # one peer's trouble must not end the others
            results[cell] = {"error": f"{type(error).__name__}: {error}"[-600:]}

    threads = [threading.Thread(target=one, args=each, daemon=True) for each in enumerate(peers)]
    for thread in threads:
        thread.start()
        time.sleep(1.0)  # a dozen interpreters that start at once would delay each other
    for thread in threads:
        thread.join()
    return results


# --- one kill after another ------------------------------------------------------------------------------
def _killed(
    peer: Peer, place: Place, nodes: list[NodeUnderTest], kills: int, cap: float, *, whole: bool
) -> Result:
    _warm(peer, place)
    enqueue = _enqueuer(peer, place)
    times: list[float] = []
    lost = 0
    for number in range(1, kills + 1):
        enqueue(number)
        first = _begun(place, number, 1, START)[0]
        time.sleep(PAUSE if peer.name == "millpond" else 1.5)
        place.marks.with_name(f"{place.marks.name}.{number}").touch()  # the second run ends at once
        begin = _kill(nodes, first, whole=whole)
        again = _again(place, nodes, number, cap)
        if again is None:
            lost += 1
            break  # where one job stays away, so do the next
        times.append((again.began - begin) / 1e9)
        time.sleep(UP if whole else 0.0)
    summary = {"p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "max": max(times)} if times else {}
    return {"kills": len(times) + lost, "lost": lost, "cap": cap, "times": times, **summary}


def _enqueuer(peer: Peer, place: Place) -> Callable[[int], object]:
    """How a job to be killed is enqueued: by the peer's producer, or from here a thousand times."""
    if peer.name != "millpond":
        return lambda number: feed(peer, place, "hold", number, safe=True)
    app = App(f"sqlite:///{place.url}" if place.store == "sqlite" else place.url)

    @app.task(name="hold")
    def hold(number: int, enqueued: int) -> None:
        """What runs is the task of that name in the node."""

    return lambda number: hold.enqueue(number, time.monotonic_ns())


def _warm(peer: Peer, place: Place) -> None:
    feed(peer, place, "enqueue", 5, safe=True)
    wait_for(lambda: count(place.marks) >= 5, f"{peer.key} begins", START)
    time.sleep(1.0)
    os.truncate(place.marks, 0)


def _begun(place: Place, number: int, times: int, patience: float) -> list[Mark]:
    found: list[Mark] = []

    def looked() -> bool:
        found[:] = [mark for mark in read(place.marks) if mark.number == number]
        return len(found) >= times

    wait_for(looked, f"job {number} begins for the {times}. time", patience)
    return found


def _kill(nodes: list[NodeUnderTest], mark: Mark, *, whole: bool) -> int:
    """Returns when, on the clock of the marks."""
    victim = next((node for node in nodes if node.has(mark.pid)), None)
    if victim is None:
        raise Stuck(f"process {mark.pid} belongs to no node")
    begin = time.monotonic_ns()
    if whole:
        victim.kill()
        victim.start()  # the next kill finds two nodes again
    else:
        os.kill(mark.pid, signal.SIGKILL)
    return begin


def _again(place: Place, nodes: list[NodeUnderTest], number: int, cap: float) -> Mark | None:
    """The second beginning of the job, or None; nodes whose main process ended are started again."""
    until, started = time.monotonic() + cap, 0.0
    while time.monotonic() < until:
        try:
            return _begun(place, number, 2, 0.2)[1]
        except Stuck:
            for node in nodes:
                if node.has_ended() and time.monotonic() - started > RESTART:
                    node.kill()
                    node.start()
                    started = time.monotonic()
    return None

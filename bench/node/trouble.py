"""The store goes away in the middle of work: how soon Millpond is at its old pace again once it answers.

Restarted: five times in ten seconds, orderly and by force in turn. Silent: nothing comes through for a
minute and no connection is closed. For servers; a file does not go away. The peers are not asked.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evidence import count, quantile, read, wait_for
from peers import Peer
from places import Place, Places
from processes import NodeUnderTest, feed
from sizes import START, Sizes

from millpond import App
from tests.proof_node.proxy import Proxy

JOBS = 10_000  # of a few milliseconds: more than are done meanwhile
CALM = 3.0  # seconds at work before anything happens
RHYTHM = 2.0  # seconds from one restart to the next
AFTER = 5.0  # seconds at work after the last trouble
WINDOW = 0.25  # seconds over which a pace is taken
PART = 0.9  # of the old pace
END = 300.0  # seconds in which all jobs are done
SECOND = 1_000_000_000
Result = dict[str, Any]


def store_restarted(places: Places, peer: Peer, sizes: Sizes) -> Result:
    """Stop and start the server again and again."""
    place = places.fresh(peer.store)
    feed(peer, place, "setup")
    return _troubled(peer, place, lambda: _restarts(places, peer.store, sizes.restarts))


def store_silent(places: Places, peer: Peer, sizes: Sizes) -> Result:
    """Let nothing through for a while, without a word."""
    place = places.fresh(peer.store)
    feed(peer, place, "setup")
    with Proxy(place.url) as proxy:
        way = {name: proxy.url if value == place.url else value for name, value in place.variables.items()}
        return _troubled(peer, place._replace(variables=way), lambda: [_silence(proxy, sizes.silence)])


def _restarts(places: Places, store: str, times: int) -> list[int]:
    """Returns when the server answered again, each time."""
    answered = []
    for number in range(times):
        next_at = time.monotonic() + RHYTHM
        places.restart(store, by_force=bool(number % 2))
        answered.append(time.monotonic_ns())
        time.sleep(max(0.0, next_at - time.monotonic()))
    return answered


def _silence(proxy: Proxy, seconds: float) -> int:
    proxy.fall_silent()
    time.sleep(seconds)
    proxy.speak_again()
    return time.monotonic_ns()


def _troubled(peer: Peer, place: Place, trouble: Callable[[], list[int]]) -> Result:
    """Work in calm, in trouble and after it, to the end of all jobs."""
    app = App(place.url)

    @app.task(name="brief")
    def brief(number: int, enqueued: int) -> None:
        """What runs is the task of that name in the node."""

    for first in range(0, JOBS, 1000):
        brief.enqueue_many([(number, time.monotonic_ns()) for number in range(first, first + 1000)])
    app.store.close()
    node = NodeUnderTest(peer, place)
    try:
        wait_for(lambda: count(place.marks) > 0, f"{peer.key} begins", START)
        time.sleep(CALM)
        began = time.monotonic_ns()
        answered = trouble()
        time.sleep(AFTER)
        wait_for(lambda: _distinct(place.marks) == JOBS, "all jobs are done", END, every=0.2)
    finally:
        node.kill()
    return _judged(sorted(mark.began for mark in read(place.marks)), began, answered)


def _distinct(path: Path) -> int:
    return len({mark.number for mark in read(path)}) if count(path) >= JOBS else 0


def _judged(beginnings: Sequence[int], began: int, answered: Sequence[int]) -> Result:
    """How long after each answer as many jobs begin as before."""
    calm = beginnings[bisect_left(beginnings, began - 2 * SECOND) : bisect_left(beginnings, began)]
    pace = len(calm) / 2.0
    times = [_back(beginnings, at, PART * pace) for at in answered]
    return {
        "pace": pace,
        "times": times,
        "p50": quantile(times, 0.5),
        "max": max(times),
        "troubles": len(times),
        "again": len(beginnings) - JOBS,
    }


def _back(beginnings: Sequence[int], since: int, pace: float) -> float:
    """Seconds from an instant until so many begin in a second again."""
    many = max(1, round(pace * WINDOW))
    for first in range(bisect_left(beginnings, since), len(beginnings) - many):
        if beginnings[first + many] - beginnings[first] <= WINDOW * SECOND:
            return (beginnings[first] - since) / SECOND
    raise RuntimeError("the old pace was not seen again")

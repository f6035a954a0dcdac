"""Why a job is where it is: one sentence for each situation."""

import json
from typing import Any, NamedTuple

import pytest

from millpond.job import ENDS, JobState
from millpond.rules.jobs.explain import why
from millpond.rules.jobs.known_tasks import live
from tests.jobs.jobs import HOUR, NOW, job

MINUTE = HOUR // 60


class Queue(NamedTuple):
    queue: str = "images"
    paused: bool = False
    rate: float | None = None
    states: dict[JobState, int] = {}  # noqa: RUF012 - nobody writes to it


class Facts(NamedTuple):
    queues: tuple[Queue, ...] = ()
    nodes: tuple[Any, ...] = ("a node",)


def parent(number, state):
    return job(id=f"p{number}", state=state)


SITUATIONS = {
    "claimed": (
        job(started_at=None),
        Facts(),
        "Node host-1-a has claimed it and begins it when a worker for it is free.",
    ),
    "running": (job(), Facts(), "It has run for 30 min on node host-1-a."),
    "ending": (
        job(cancelling=True),
        Facts(),
        "It has run for 30 min on node host-1-a; its end was asked for.",
    ),
    "scheduled": (
        job(state=JobState.SCHEDULED, attempt=0, run_at=NOW + MINUTE // 2),
        Facts(),
        "It is due in 30.0 s.",
    ),
    "to be retried": (
        job(state=JobState.SCHEDULED, run_at=NOW + 2 * HOUR + 5 * MINUTE),
        Facts(),
        "It is due in 2 h 5 min, attempt 3.",
    ),
    "overdue": (job(state=JobState.SCHEDULED, attempt=0, run_at=NOW - 5), Facts(), "It is due in 0.0 s."),
    "in line": (job(state=JobState.QUEUED), Facts(), "It has been in line in queue 'images' for 1 h 0 min."),
    "in a limited line": (
        job(state=JobState.QUEUED),
        Facts((Queue("other", paused=True), Queue(rate=2.5))),
        "It has been in line in queue 'images' for 1 h 0 min; the queue is limited to 2.5 a second.",
    ),
    "among many": (
        job(state=JobState.QUEUED),
        Facts((Queue(states={JobState.QUEUED: 1585}),)),
        "It has been in line in queue 'images' for 1 h 0 min, one of 1,585 jobs.",
    ),
    "among many in a limited line": (
        job(state=JobState.QUEUED),
        Facts((Queue(rate=2.0, states={JobState.QUEUED: 1585}),)),
        (
            "It has been in line in queue 'images' for 1 h 0 min, one of 1,585 jobs; the queue is limited to "
            "2 a second: so many take 13 min at least."
        ),
    ),
    "paused": (job(state=JobState.QUEUED), Facts((Queue(paused=True),)), "Its queue 'images' is paused."),
    "parked": (
        job(state=JobState.QUEUED, parked="t:7"),
        Facts(),
        "It waits for room at slot 't:7': as many jobs as it allows are running.",
    ),
    "nobody there": (
        job(state=JobState.QUEUED),
        Facts(nodes=()),
        "No node is running: start one with `millpond run` that serves queue 'images'.",
    ),
    "completed": (
        job(state=JobState.COMPLETED, finished_at=NOW - MINUTE),
        Facts(),
        "It completed 1 min ago.",
    ),
    "dead": (
        job(state=JobState.DEAD, reason="failed", finished_at=NOW),
        Facts(),
        "It ended dead (failed) 0.0 s ago after 2 attempts; replay it to run it again.",
    ),
    "dead at once": (
        job(state=JobState.DEAD, reason="failed", finished_at=NOW, attempt=1),
        Facts(),
        "It ended dead (failed) 0.0 s ago after 1 attempt; replay it to run it again.",
    ),
    "damaged": (
        job(state=JobState.DEAD, reason="damaged", finished_at=None),
        Facts(),
        "It ended dead (damaged) an unknown time ago.",
    ),
    "cancelled": (
        job(state=JobState.CANCELLED, reason="dependency", finished_at=NOW),
        Facts(),
        "It ended cancelled (dependency) 0.0 s ago.",
    ),
    "no reason": (
        job(state=JobState.CANCELLED, finished_at=NOW),
        Facts(),
        "It ended cancelled (no reason kept) 0.0 s ago.",
    ),
}


@pytest.mark.parametrize(("it", "facts", "sentence"), SITUATIONS.values(), ids=SITUATIONS)
def test_every_situation_has_its_sentence(it, facts, sentence):
    assert why(it, [], facts, NOW) == sentence


def test_every_state_is_explained():
    assert {it.state for it, _, _ in SITUATIONS.values()} == set(JobState) - {JobState.BLOCKED}


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        (["running", "completed"], "It waits for 1 of 2 jobs it depends on: p0."),
        (["queued"] * 5, "It waits for 5 of 5 jobs it depends on: p0, p1, p2 and 2 more."),
        (["completed"], "All it depends on has ended; it will be let go in a moment."),
    ],
)
def test_a_blocked_job_names_what_it_waits_for(states, sentence):
    parents = [parent(number, JobState(state)) for number, state in enumerate(states)]
    blocked = job(state=JobState.BLOCKED, depends_on=tuple(it.id for it in parents))
    assert why(blocked, parents, Facts(), NOW) == sentence
    assert all(it.state in ENDS for it in parents) == sentence.startswith("All")


class Node(NamedTuple):
    info: bytes
    lease_left: float = 15.0
    sealed: bool = False


def node_of(*pools: dict[str, Any]) -> Node:
    return Node(json.dumps({"queues": ["images"], "report": {"pools": pools}}).encode())


def pool_of(running: int, count: int, most: int, concurrency: int = 1) -> dict[str, Any]:
    told = {"running": running, "count": count, "most": most, "concurrency": concurrency}
    return {"name": "images", "queues": ["images"], "states": {"busy": 1}, **told}


AT_MOST = "and pool 'images' is at its maximum: `millpond pools set images --workers MIN:MAX` allows more."


@pytest.mark.parametrize(
    ("nodes", "ending"),
    [
        ([node_of(pool_of(1, 1, 4))], "; the one worker for it is busy, and up to 4 may be started."),
        ([node_of(pool_of(4, 4, 4))], f"; all 4 workers for it are busy, {AT_MOST}"),
        (
            [node_of(pool_of(40, 4, 4, 10)), node_of(pool_of(4, 4, 4))],
            f"; all 8 workers for it are busy, {AT_MOST}",
        ),
        ([node_of(pool_of(0, 0, 2))], "; no worker for it has started yet, and up to 2 may be started."),
        ([node_of(pool_of(39, 4, 4, 10))], "for 1 h 0 min."),
        ([node_of(pool_of(4, 4, 4)), node_of(pool_of(3, 4, 4))], "for 1 h 0 min."),
        ([Node(b'{"queues": ["images"], "report": {"pools": [{"name": 3}]}}')], "for 1 h 0 min."),
        ([Node(b'{"queues": ["images"], "report": []}')], "for 1 h 0 min."),
    ],
)
def test_a_job_behind_a_full_pool_is_told_so(nodes, ending):
    it = job(state=JobState.QUEUED)
    assert why(it, [], Facts(), NOW, live=live(nodes)).endswith(ending)


class Reported(NamedTuple):
    """A node's record, with one pool that is in trouble."""

    info: bytes
    lease_left: float = 10.0
    sealed: bool = False


STANDS_STILL = "worker 7 begins none of its tasks: it is stopped by a signal or a debugger"


@pytest.mark.parametrize(
    ("nodes", "ending"),
    [
        (1, f"has not begun it; its pool 'default' is degraded: {STANDS_STILL}."),
        (2, "begins it when a worker for it is free."),
    ],
)
def test_of_a_claimed_job_whose_worker_stands_still_it_is_not_told_that_it_begins_soon(
    nodes: int, ending: str
) -> None:
    pool = {"name": "default", "queues": ["images"], "status": "degraded", "reasons": [STANDS_STILL]}
    record = Reported(json.dumps({"report": {"pools": [pool]}}).encode())
    sentence = why(job(started_at=None), [], Facts(), NOW, live=live([record] * nodes))
    assert sentence == f"Node host-1-a has claimed it and {ending}"

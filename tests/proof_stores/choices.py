"""What the machine may ask for: small worlds, so that everything soon meets everything else."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from millpond.job import (
    Attempt,
    Cancelled,
    Crashed,
    Failure,
    Job,
    JobOptions,
    JobState,
    Lost,
    Outcome,
    Raised,
    Released,
    Returned,
    Settlement,
    Slot,
    Snoozed,
    TimedOut,
    UniqueFor,
)
from millpond.rules.jobs.lifecycle import settle as verdict_on
from millpond.store.protocol import Claim, Filter, Retention
from tests.stores.acting import id_of

QUEUES = ("default", "mail", "a.b-c_9")
TASKS = ("send", "Send", "weigh")
NODES = tuple(f"n{number}" for number in range(60))
HOSTS = {node: f"h{number % 2}" for number, node in enumerate(NODES)}
# Ids whose order as bytes is not that of their names in any language; and some of version 7, which Redis
# keeps by time, with others between them.
IDS = tuple(
    id_
    for number in range(7)
    for id_ in (
        *(id_of(f"{letter}{number}") for letter in ("a", "B", "á", "_")),
        f"019a7b{number}0-0000-7000-8000-000000000000",
        f"019a7b{number}0-4000-4000-8000-000000000000",
    )
)
SLOTS = ("tenant-1", "tenant-2", "printer")
FAILURE = Failure("ValueError", "no")

queues = st.sampled_from(QUEUES)
tasks = st.sampled_from(TASKS)
nodes = st.integers(0, 15)  # mostly one of those that live
ids = st.sampled_from(IDS)
some_slots = st.sampled_from(
    [
        (Slot("tenant-1", 1),),
        (Slot("tenant-1", 2),),
        (Slot("tenant-2", 1),),
        (Slot("tenant-2", 0),),
        (Slot("printer", 2),),
        (Slot("tenant-1", 1), Slot("printer", 1)),
        (Slot("tenant-2", 1), Slot("printer", 1)),
        (Slot("printer", 1), Slot("tenant-2", 2)),
    ]
)
slots = st.just(()) | some_slots
how_many_parents = st.sampled_from([0, 0, 0, 0, 1, 2])
durations = st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 1.0, 20.0, 3600.0])
expiries = st.sampled_from([None, None, None, None, None, None, None, None, 0.0, 0.5, 10.0, 600.0])
uniques = st.sampled_from([None, None, None, "k1", "k2", ""])
unique_fors: st.SearchStrategy[UniqueFor] = st.sampled_from(["waiting", "done", 0.5, 30.0])
options = st.sampled_from(
    [JobOptions(), JobOptions(), JobOptions(max_attempts=2, max_crashes=2, max_lost=2, retry_first=0.5)]
)
leases = st.sampled_from([5.0, 15.0, 15.0, 60.0])
# Halves of halves: a bucket that fills by them holds the same in every language.
moments = st.sampled_from([0.25, 0.5, 1.0, 1.0, 4.0, 5.0, 5.0, 14.0, 15.0, 16.0, 61.0, 3600.0, 86_400.0 * 8])
rates = st.sampled_from([None, None, 0.0, 0.0, 0.5, 1.0, 2.0, 5.0])
pauses = st.sampled_from([None, None, False, False, True])
retentions = st.sampled_from(
    [
        Retention(),
        Retention(completed=0.0),
        Retention(completed=10.0, cancelled=0.0, dead=3600.0, statistics=120.0),
        Retention(completed=0.0, cancelled=0.0, dead=0.0, statistics=0.0),
    ]
)
filters = st.one_of(
    st.builds(lambda chosen: Filter(ids=tuple(chosen)), st.lists(ids, min_size=1, max_size=3)),
    st.builds(
        lambda states, queue, task: Filter(states=tuple(states), queue=queue, task=task),
        st.lists(st.sampled_from(list(JobState)), min_size=1, max_size=2, unique=True),
        queues | st.none(),
        st.none() | tasks,
    ),
)
claims = st.lists(
    st.builds(
        Claim,
        queues,
        st.sampled_from([0, 1, 1, 2, 3, 10]),
        st.sampled_from([(), (), (), ("send",), TASKS[1:]]),
    ),
    min_size=1,
    max_size=3,
)
all_queues = st.builds(
    lambda limit: [Claim(queue, limit) for queue in QUEUES], st.sampled_from([1, 2, 10, 50])
)
outcomes = st.sampled_from(
    [
        Returned(b'"ok"'),
        Returned(None),
        Returned(refused="too large"),
        Raised(FAILURE),
        Raised(FAILURE, final=True),
        Raised(FAILURE, retry_in=0.0),
        Raised(FAILURE, retry_in=4.0),
        TimedOut(FAILURE),
        Crashed(FAILURE),
        Crashed(FAILURE, suspects=3),
        Lost(started=True),
        Lost(started=False),
        Snoozed(5.0),
        Snoozed(0.0),
        Cancelled(),
        Cancelled("gave up"),
        Released(),
    ]
)
# How far a token is from the current one: mostly not at all.
drifts = st.sampled_from([0, 0, 0, 0, -1, 1])
picks = st.lists(st.tuples(st.integers(0, 7), drifts), max_size=3)
settled = st.lists(st.tuples(st.integers(0, 7), drifts, outcomes), min_size=1, max_size=5)


def settlement(job: Job, drift: int, outcome: Outcome, now: int) -> Settlement:
    """A verdict such as a node would send, or one that comes too late."""
    verdict = verdict_on(job, outcome, now)
    kind = type(outcome).__name__.lower()
    attempt = Attempt(verdict.attempt, job.node or "nobody", kind, now, job.started_at, message="é\n'")
    line = b"" if kind == "released" else msgspec.json.encode(attempt)
    run = None if kind == "released" else 0.001 * (1 + len(kind))
    verdict = msgspec.structs.replace(verdict, line=line)
    return Settlement(job.id, job.token + drift, verdict, 0.5 * verdict.attempt, run)

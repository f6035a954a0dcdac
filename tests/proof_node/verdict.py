"""The judgement of a run in which everything happened at once: whatever is wrong with it, by name.

The history is judged by the evidence outside the store, the store by its own books. Nothing is excused but by
a deed that was noted before it was done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from millpond.job import ENDS, MICROSECONDS, Job, JobState
from tests.history import Entry, How, Kind, Rules, finals, judge, read
from tests.history.entries import Acknowledged, Fault, Over, Settled, Slow
from tests.history.faults import FOR_EVER, SECOND, Injected
from tests.history.timeline import Past, past_of
from tests.proof_node.books import left_over, miscounted
from tests.proof_node.crowd import LAPSE, Deeds
from tests.proof_node.mill import Mill

LONGEST = 2.0  # seconds that an exchange may take while the server is up
OWN_ENDS = {
    "failing": ("dead(failed)", "dead(crashed)", "dead(lost)"),
    "poison": ("dead(crashed)", "dead(lost)"),
    "poison_once": ("dead(crashed)", "dead(lost)"),
}


def problems(mill: Mill, deeds: Deeds) -> dict[str, Any]:
    """All that must not be; empty if there is none of it. Every job has ended and every node has left."""
    jobs = finals(mill.store)
    mill.name_the_nodes({line.node for job in jobs.values() for line in job.attempts})
    entries = read(mill.folder)
    rules = Rules(
        ends={job.id: ends_of(job, deeds) for job in jobs.values()},
        replayed=deeds.replayed,
        aftermath=2 * mill.lease + 5,
    )
    past = past_of(entries, rules.aftermath)
    found = {
        "history": [str(violation) for violation in judge(entries, jobs, rules)],
        "not ended": [job.id for job in jobs.values() if job.state not in ENDS],
        "rolled back, and there": sorted(deeds.rolled_back & (jobs.keys() | granted(past))),
        "ran out of order": list(out_of_order(jobs, past, deeds)),
        "unique keys held twice": list(doubled(jobs, deeds, entries)),
        f"exchanges above {LONGEST:g} s": list(late(entries)),
        "threads": [repr(error) for error in deeds.errors],
        "nodes' logs": list(tracebacks(mill)),
        **left_over(mill.url, mill.store, LAPSE),  # the last jobs may have ended sooner than that
        **miscounted(mill.store, jobs),
    }
    return {what: value for what, value in found.items() if value}


def ends_of(job: Job, deeds: Deeds) -> list[str]:
    """All the ends that this job may have."""
    allowed = list(OWN_ENDS.get(job.task.rpartition(".")[2], ("completed",)))
    if job.depends_on:
        allowed.append("cancelled(dependency)")
    if job.expires_at is not None:
        allowed.append("cancelled(expired)")
    if job.id in deeds.cancelled:
        allowed.append("cancelled(cancelled)")
    return allowed


def granted(past: Past) -> set[str]:
    return {job for job, story in past.stories.items() if story.granted or story.executions}


def out_of_order(jobs: Mapping[str, Job], past: Past, deeds: Deeds) -> Iterator[str]:
    """Jobs that ran before those they depend on had completed, or fell without one of those having fallen."""
    for job in jobs.values():
        parents = [jobs[parent] for parent in job.depends_on]
        if job.reason == "dependency" and all(
            parent.state is JobState.COMPLETED and parent.id not in deeds.replayed for parent in parents
        ):
            yield f"{job.id} was cancelled, and all that it depends on has completed"
        began = [run.began_at for run in past.stories[job.id].executions]
        for parent in parents:
            returned = [run.last_at for run in past.stories[parent.id].executions if run.how is How.RETURNED]
            if began and (not returned or min(returned) > min(began)):
                yield f"{job.id} ran before {parent.id} had returned"


def doubled(jobs: Mapping[str, Job], deeds: Deeds, entries: Sequence[Entry] = ()) -> Iterator[str]:
    """Two jobs of one task that had the same key at a time. One that came with a transaction has the time at
    which that began.

    When a job was made and when it ended are two processes' views of the store's clock. On a busy machine
    these differ by more than lies between an end and the next job. So where the evidence has both, its one
    clock decides: a job that was acknowledged after the end before it was sent has taken a free key.
    """
    acknowledged = {line.job: line.at for line in entries if isinstance(line, Acknowledged)}
    ended = {line.job: line.asked_at for line in entries if isinstance(line, Settled) and line.accepted}
    keyed: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in jobs.values():
        if job.unique is not None and not job.unique.startswith("waiting"):
            keyed[job.task, job.unique].append(job)
    for same in keyed.values():
        for earlier, later in pairwise(sorted(same, key=lambda job: job.created_at)):
            if later.id in deeds.in_transactions or later.created_at >= free_at(earlier):
                continue
            is_done = earlier.unique is not None and earlier.unique.startswith("done")
            if not is_done or acknowledged.get(later.id, 0) <= ended.get(earlier.id, FOR_EVER):
                yield f"{earlier.unique}: {later.id} was made while {earlier.id} had the key"


def free_at(job: Job) -> int:
    """When its unique key could be had again."""
    assert job.unique is not None
    assert job.finished_at is not None
    if job.unique.startswith("done"):
        return job.finished_at
    return job.created_at + round(LAPSE * MICROSECONDS)


def late(entries: Sequence[Entry]) -> Iterator[str]:
    """Exchanges that took too long although the server was up and the node not stopped."""
    faults = injected(entries)
    for line in entries:
        if not isinstance(line, Slow) or line.at - line.asked_at <= LONGEST * SECOND:
            continue
        if not any(excuses(fault, line) for fault in faults):
            yield f"{line.node}: {(line.at - line.asked_at) / SECOND:.1f} s"


def excuses(fault: Injected, line: Slow) -> bool:
    asleep = fault.kind in (Kind.STOPPED, Kind.FROZEN) and fault.node == line.node
    concerned = asleep or fault.kind is Kind.STORE
    return concerned and fault.since <= line.at and fault.until >= line.asked_at


def injected(entries: Iterable[Entry]) -> list[Injected]:
    over = {line.number: line.at for line in entries if isinstance(line, Over)}
    return [
        Injected(line.kind, line.at, over.get(line.number, FOR_EVER), line.pid, line.node)
        for line in entries
        if isinstance(line, Fault)
    ]


def tracebacks(mill: Mill) -> Iterator[str]:
    for member in mill.members:
        said = member.log.read_text()
        if "Traceback" in said:
            yield f"{member.label}: {said[said.index('Traceback') - 500 :][:4000]}"

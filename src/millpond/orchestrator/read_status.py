"""Reads what is stored about recurring tasks and puts it into records. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from millpond.job import ENDS, MICROSECONDS, Instant, Job, JobState, Slot
from millpond.orchestrator.ledger import Entry
from millpond.orchestrator.skip_log import KEEP, Skipped, log_name
from millpond.orchestrator.status import RecurringStatus, State, TickRecord
from millpond.orchestrator.switches import Switch
from millpond.orchestrator.tick_ids import tick_id
from millpond.orchestrator.tick_results import error_of, started_at
from millpond.recurring import RecurringTask
from millpond.rules.recurring import breaker as breakers
from millpond.rules.recurring import continuous
from millpond.rules.recurring.cadence import next_after, recent
from millpond.rules.recurring.dependencies import Verdict
from millpond.rules.recurring.explain import IN_THE_CODE, Facts, why_recurring
from millpond.store.protocol import Store

MOST = 500  # instants looked up for a history


class Scene(NamedTuple):
    """What must be known to tell how a task stands."""

    now: Instant
    switches: Mapping[str, Switch]
    jobs: Mapping[str, Job]  # those of unfinished ticks, by id
    nodes: frozenset[str]  # the ids of those that live


def status_of(name: str, task: RecurringTask[..., Any] | None, entry: Entry, scene: Scene) -> RecurringStatus:
    """One task; without a task it is no longer in the code."""
    jobs = [job for at in entry.unfinished if (job := scene.jobs.get(tick_id(name, at))) is not None]
    running = [job for job in jobs if job.started_at is not None and job.node in scene.nodes and _runs(job)]
    waiting = [job for job in jobs if job.state not in ENDS and job not in running]
    enabled = is_enabled(task, scene.switches.get(name))
    phase = breakers.phase(entry.breaker, scene.now)
    facts = _facts((name, task, entry), scene, running, waiting)
    return RecurringStatus(
        name=name,
        mode="" if task is None else task.mode,
        cadence="" if task is None else task.described(),
        state=_state(task, enabled, phase, running=bool(running), waiting=bool(waiting or entry.waiting)),
        enabled=enabled,
        running=len(running),
        waiting=len(waiting) + len(entry.waiting),
        breaker=phase,
        consecutive_failures=entry.breaker.failures,
        last_run_at=max([entry.started_at or 0, *(job.started_at or 0 for job in running)]) or None,
        last_success_at=entry.succeeded_at,
        last_failure_at=entry.failed_at,
        last_error=entry.error,
        last_job=entry.job,
        last_skip=entry.skipped,
        late=entry.late,
        next_due_at=_next_run(facts, entry, scene.now) if enabled else None,
        why=why_recurring(facts, scene.now),
    )


def _runs(job: Job) -> bool:
    return job.state is JobState.RUNNING


def _next_run(facts: Facts, entry: Entry, now: Instant) -> Instant | None:
    """When its next tick is due to run: while the breaker is open, not before one is let through to see."""
    begin = breakers.runs_from(entry.breaker, now)
    return None if begin is None or facts.next_due_at is None else max(begin, facts.next_due_at)


def is_enabled(task: RecurringTask[..., Any] | None, switch: Switch | None) -> bool:
    """What a person said last; else what the code says."""
    if switch is not None:
        return switch.enabled
    return task is not None and task.is_enabled


def _state(
    task: RecurringTask[..., Any] | None, enabled: bool, phase: str, *, running: bool, waiting: bool
) -> State:
    if task is None:
        return "retired"
    if running:
        return "running"
    if not enabled:
        return "disabled"
    if phase == "open":
        return "open"
    return "waiting" if waiting else "idle"


def _facts(
    about: tuple[str, RecurringTask[..., Any] | None, Entry],
    scene: Scene,
    running: list[Job],
    waiting: list[Job],
) -> Facts:
    name, task, entry = about
    switch = scene.switches.get(name)
    breaker = entry.breaker
    if not is_enabled(task, switch):
        at, by = (switch.at, switch.by) if switch else (scene.now, IN_THE_CODE)
        breaker = breakers.disable(breaker, at, by)
    held = entry.waiting[0] if entry.waiting else None
    restart = None
    if task is not None and task.mode == "continuous" and not (running or waiting):
        restart = continuous.next_start(entry.restarts, task.restart_rule, name)
    return Facts(
        name=name,
        kind="scheduled" if task is None else task.mode,
        breaker=breaker,
        retired=task is None,
        running_since=running[0].started_at if running else None,
        enqueued_at=waiting[0].created_at if waiting else None,
        parked=_parked(waiting),
        holders=_holders(waiting, scene),
        verdict=None if held is None else Verdict("wait", held.reason or "it is its turn soon"),
        cursor=entry.cursor,
        next_due_at=next_due(task, entry, scene.now),
        restart=restart,
        nodes=len(scene.nodes),
        dispute=entry.dispute,
    )


def _parked(waiting: list[Job]) -> Slot | None:
    """The slot that the first of these found full."""
    name = waiting[0].parked if waiting else None
    if name is None:
        return None
    return next((slot for slot in waiting[0].slots if slot.name == name), Slot(name))


def _holders(waiting: list[Job], scene: Scene) -> tuple[str, ...]:
    """Whose ticks hold it, as far as the scene shows."""
    name = waiting[0].parked if waiting else None
    running = (job for job in scene.jobs.values() if name is not None and job.state is JobState.RUNNING)
    return tuple(sorted(job.task for job in running if any(slot.name == name for slot in job.slots)))


def next_due(task: RecurringTask[..., Any] | None, entry: Entry, now: Instant) -> Instant | None:
    """When its next tick is due."""
    if task is None or task.cadence is None:
        return None
    at = next_after(task.cadence, max(entry.cursor, now - task.offset) if entry.cursor else now)
    return None if at is None else at + task.offset


# --- history ---------------------------------------------------------------------------------------------
def history_of(
    store: Store, name: str, task: RecurringTask[..., Any] | None, entry: Entry, limit: int
) -> list[TickRecord]:
    """What came of the last ticks, the newest first. Those of a cadence are found by their instants, however
    many; of others, and of runs begun by hand, as many as are remembered."""
    offset, instants = 0, set()
    if task is not None and task.cadence is not None:
        offset, instants = task.offset, set(recent(task.cadence, 0, entry.cursor, min(limit, MOST)))
    lines = [*_ran(store, name, offset, entry, instants), *_held(entry), *_skipped(store, name)]
    found = {line.at: line for line in reversed(lines)}  # one that took over may have said it again
    return sorted(found.values(), key=lambda line: line.at, reverse=True)[:limit]


def _ran(store: Store, name: str, offset: int, entry: Entry, also: set[Instant]) -> Iterator[TickRecord]:
    results = {tick.at: tick.result for tick in entry.recent}
    instants = sorted({*results, *entry.unfinished, *also})
    jobs = store.get([tick_id(name, at) for at in instants]) if instants else []
    for at, job in zip(instants, jobs, strict=True):
        if job is not None:
            late = max(0, job.created_at - at - offset) / MICROSECONDS
            error = error_of(job) if job.state is JobState.DEAD else job.reason or ""
            yield TickRecord(at, job.state.value, error, job.id, started_at(job), job.finished_at, late, 1)
        elif results.get(at, "gone") != "gone":  # its job has been deleted since
            yield TickRecord(at, results[at], "", None, None, None, None, 1)


def _skipped(store: Store, name: str) -> Iterator[TickRecord]:
    for line in store.log(log_name(name), limit=KEEP):
        try:
            said = msgspec.json.decode(line.data, type=Skipped)
        except msgspec.MsgspecError:
            continue
        yield TickRecord(said.at, "skipped", said.reason, None, None, None, None, said.count)


def _held(entry: Entry) -> Iterator[TickRecord]:
    for tick in entry.waiting:
        yield TickRecord(tick.at, "waiting", tick.reason, None, None, None, None, 1)

"""Recording outcomes: every write about a running job matches (node, token), or it is stale.

Ends are written at once under that fence, and what was written says which were current. A job that is to
run again is looked at first: its end may have been asked for.

A job that another transaction has locked is passed over. A user's transaction that enqueued a job behind it
may stay open for hours; waiting for it would keep every other job of the node from being settled, and the
node from claiming. Shown by tests/stores/test_locks.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from millpond.job import ENDS, Instant, JobState, Settlement, Transition
from millpond.rules.jobs.lifecycle import instead_if_cancelling
from millpond.store.protocol import Progress, Started
from millpond.store.sql import after_end
from millpond.store.sql.after_end import Ending
from millpond.store.sql.job_counts import moves, tell
from millpond.store.sql.query import Hint, Many, Query, Row, Steps
from millpond.store.sql.rows import Damaged, slot_names
from millpond.store.sql.statistics import Increments, count, durations

Key = tuple[str, int]  # the id and the token that a verdict is about


class HeldRow(NamedTuple):
    """What must be known of a running job to settle it."""

    id: str
    token: int
    cancelling: bool
    task: str
    queue: str
    unique: str | None
    slots: str | None
    has_children: bool


class Done(msgspec.Struct, frozen=True, gc=False):
    """A verdict that was carried out, and what may follow from it."""

    id: str
    token: int  # the one it was held under
    task: str
    queue: str
    unique: str | None
    slots: str | None
    has_children: bool
    state: str


class Refused(NamedTuple):
    """What was not written: stale, or locked by another transaction and still this node's."""

    stale: list[str]
    deferred: list[str]


NONE_REFUSED = Refused([], [])


def settle(node: str, settlements: Sequence[Settlement], now: Instant) -> Steps[Refused]:
    """Apply the verdicts that are current; returns the ids of the others."""
    first: dict[Key, Settlement] = {}
    for settlement in settlements:  # a second verdict on the same job is stale
        first.setdefault((settlement.id, settlement.token), settlement)
    final = {key: item.transition for key, item in first.items() if item.transition.state in ENDS}
    again = {key: item.transition for key, item in first.items() if key not in final}
    done = yield from _finish(node, final, now)
    if again:
        rows = yield Query("held_rows", (node, [key[0] for key in again]))
        held = [HeldRow(*row) for row in rows if row[:2] in again]
        done += yield from apply(node, [(row, again[row.id, row.token]) for row in held], now)
    current = {(item.id, item.token): item.queue for item in done}
    yield from conclude(done, now, durations((queue, first[key]) for key, queue in current.items()))
    if len(current) == len(settlements):
        return NONE_REFUSED
    left = [item for item in settlements if not _counts(item, first, current)]
    return (yield from _refused(node, left, first))


def _refused(
    node: str, left: Sequence[Settlement | Started | Progress], first: Mapping[Key, object] | None = None
) -> Steps[Refused]:
    """Which of these that were not written are still held under their token: another transaction has those
    locked. A second verdict on one job is stale in any case."""
    rows = (yield Query("still_held", (node, sorted({item.id for item in left})))) if left else []
    still = {(row[0], row[1]) for row in rows}
    stale: list[str] = []
    deferred: list[str] = []
    for item in left:
        key = (item.id, item.token)
        is_held = key in still and (first is None or first[key] is item)
        (deferred if is_held else stale).append(item.id)
    return Refused(stale, deferred)


def _counts(item: Settlement, first: Mapping[Key, Settlement], current: Mapping[Key, str]) -> bool:
    return (item.id, item.token) in current and first[item.id, item.token] is item


def apply(
    node: str, verdicts: Iterable[tuple[HeldRow, Transition]], now: Instant, raise_token: int = 0
) -> Steps[list[Done]]:
    """Write verdicts on jobs that are known to be held; what follows from them is for `conclude`."""
    final: dict[Key, Transition] = {}
    again: list[Row] = []
    done: list[Done] = []
    for row, verdict in verdicts:
        transition = instead_if_cancelling(verdict) if row.cancelling else verdict
        if transition.state in ENDS:
            final[row.id, row.token] = transition
        else:
            again.append(_requeue_row(row, transition, raise_token))
            done.append(Done(row.id, row.token, *row[3:], transition.state))
    if again:
        yield Many("requeue", again)
        yield Hint(frozenset(item.queue for item in done if item.state == JobState.QUEUED))
    return done + (yield from _finish(node, final, now, raise_token))


def _finish(
    node: str, final: Mapping[Key, Transition], now: Instant, raise_token: int = 0
) -> Steps[list[Done]]:
    """Write ends; only those are done that this node held under the verdict's token."""
    if not final:
        return []
    rows = [
        (
            job,
            token,
            verdict.state.value,
            verdict.reason,
            verdict.result,
            verdict.attempt,
            verdict.errors,
            verdict.crashes,
            verdict.lost,
            _text(verdict.line),
        )
        for (job, token), verdict in final.items()
    ]
    done = yield Many("finish", rows, (node, now, raise_token))
    return [Done(*row) for row in done]


def conclude(done: Sequence[Done], now: Instant, tally: Increments) -> Steps[None]:
    """What follows from verdicts that were carried out; all of it is counted together."""
    freed: Counter[str] = Counter()
    followed: dict[str, list[Ending]] = {state: [] for state in sorted(ENDS)}
    for item in done:
        if item.slots is not None:
            freed.update(_slots(item))
        if item.state in followed and (item.unique is not None or item.has_children):
            ending = Ending(item.id, item.task, item.queue, item.unique, bool(item.has_children), None)
            followed[item.state].append(ending)
    if freed:
        rows = yield Many("free_slots", sorted(freed.items()))
        if any(row[0] for row in rows):  # jobs are parked there: nearly always of the same queues
            yield Hint(frozenset(item.queue for item in done if item.slots is not None))
    for state, endings in followed.items():
        tally.update((yield from after_end.after(endings, JobState(state), now)))
    states = Counter((item.queue, item.state) for item in done)
    for (queue, state), number in states.items():
        tally[queue, state if state in followed else "retried", 0] += number
    yield from count(tally, now)
    yield from tell(moves((queue, "running", state, n) for (queue, state), n in states.items()), now)


def _requeue_row(row: HeldRow, transition: Transition, raise_token: int) -> Row:
    return (
        row.id,
        transition.state.value,
        transition.rank,
        transition.run_at,
        transition.attempt,
        transition.errors,
        transition.crashes,
        transition.lost,
        transition.alone,
        _text(transition.line),
        raise_token,
    )


def _text(line: bytes) -> str:
    return line.decode() + "\n" if line else ""


def _slots(item: Done) -> list[str]:
    try:
        return slot_names(item.slots)
    except Damaged:
        return []  # it could not have been claimed; whoever broke it since has broken the slot's count


def start(node: str, started: Sequence[Started], now: Instant) -> Steps[Refused]:
    """Note which jobs have begun; returns the ids of those that were not noted."""
    rows = yield Many("start", [(item.id, node, item.token, now) for item in started])
    return (yield from _refused(node, _left(started, rows)))


def progress(node: str, reports: Sequence[Progress]) -> Steps[Refused]:
    """Note how far jobs have come; returns the ids of those that were not noted."""
    latest = {(item.id, item.token): item.data for item in reports}
    rows = yield Many("progress", [(job, node, token, data) for (job, token), data in latest.items()])
    return (yield from _refused(node, _left(reports, rows)))


def _left(items: Sequence[Started] | Sequence[Progress], rows: Sequence[Row]) -> list[Started | Progress]:
    accepted = {(row[0], row[1]) for row in rows}
    return [item for item in items if (item.id, item.token) not in accepted]

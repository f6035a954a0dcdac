"""The life of a job: every outcome has its transition, every budget its own count."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.job import (
    DAY,
    ENDS,
    MICROSECONDS,
    WAITING,
    Cancelled,
    Crashed,
    Failure,
    JobState,
    Lost,
    Outcome,
    OutOfMemory,
    Raised,
    Released,
    Returned,
    Snoozed,
    TimedOut,
    Unsatisfiable,
)
from millpond.rules.jobs.lifecycle import STEPS, first_state, instead_if_cancelling, may_become, rank, settle
from millpond.rules.jobs.retry import delay_after
from tests.jobs.jobs import NOW, job

calm = settings(deadline=None)
ERROR = Failure("ValueError", "no", "Traceback ...")
QUEUED, SCHEDULED, RUNNING = JobState.QUEUED, JobState.SCHEDULED, JobState.RUNNING
COMPLETED, DEAD, CANCELLED = JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED

# From attempt 2, errors 1, crashes 1, lost 1, with the usual budgets: 5 attempts, 3 crashes, 10 lost.
TABLE: dict[str, tuple[Outcome, dict[str, int], JobState, str | None, tuple[int, ...]]] = {
    "returned": (Returned(b"1"), {}, COMPLETED, None, (3, 1, 1, 1)),
    "returned nothing": (Returned(), {}, COMPLETED, None, (3, 1, 1, 1)),
    "a result that cannot be stored": (Returned(refused="too large"), {}, DEAD, "result", (3, 1, 1, 1)),
    "raised": (Raised(ERROR), {}, SCHEDULED, None, (3, 2, 1, 1)),
    "raised, again at once": (Raised(ERROR, retry_in=0.0), {}, QUEUED, None, (3, 2, 1, 1)),
    "raised for the last time": (Raised(ERROR), {"errors": 4}, DEAD, "failed", (3, 5, 1, 1)),
    "raised for good": (Raised(ERROR, final=True), {}, DEAD, "failed", (3, 2, 1, 1)),
    "final beats a delay": (Raised(ERROR, final=True, retry_in=1.0), {}, DEAD, "failed", (3, 2, 1, 1)),
    "timed out": (TimedOut(ERROR), {}, SCHEDULED, None, (3, 2, 1, 1)),
    "timed out for the last time": (TimedOut(ERROR), {"errors": 4}, DEAD, "timeout", (3, 5, 1, 1)),
    "crashed": (Crashed(ERROR), {}, QUEUED, None, (3, 1, 2, 1)),
    "crashed for the last time": (Crashed(ERROR), {"crashes": 2}, DEAD, "crashed", (3, 1, 3, 1)),
    "crashed among others": (Crashed(ERROR, suspects=2), {"crashes": 2}, QUEUED, None, (3, 1, 2, 1)),
    "stopped with another": (Crashed(ERROR, suspects=0), {"crashes": 2}, QUEUED, None, (3, 1, 2, 1)),
    "killed for memory": (OutOfMemory(ERROR), {}, QUEUED, None, (3, 1, 2, 1)),
    "killed for memory for the last time": (OutOfMemory(ERROR), {"crashes": 2}, DEAD, "memory", (3, 1, 3, 1)),
    "stopped for memory": (OutOfMemory(ERROR, preempted=True), {"crashes": 2}, QUEUED, None, (3, 1, 2, 2)),
    "stopped for memory too often": (
        OutOfMemory(ERROR, preempted=True),
        {"lost": 9},
        DEAD,
        "memory",
        (3, 1, 1, 10),
    ),
    "had all the memory": (OutOfMemory(ERROR, preempted=True, final=True), {}, DEAD, "memory", (3, 1, 1, 2)),
    "needs more than there is": (Unsatisfiable(ERROR), {}, DEAD, "resources", (2, 1, 1, 1)),
    "lost": (Lost(started=True), {}, QUEUED, None, (3, 1, 1, 2)),
    "lost for the last time": (Lost(started=True), {"lost": 9}, DEAD, "lost", (3, 1, 1, 10)),
    "lost before it began": (Lost(started=False), {"lost": 9}, QUEUED, None, (2, 1, 1, 9)),
    "snoozed": (Snoozed(60.0), {"errors": 4}, SCHEDULED, None, (2, 4, 1, 1)),
    "snoozed for no time": (Snoozed(0.0), {}, QUEUED, None, (2, 1, 1, 1)),
    "cancelled": (Cancelled(), {}, CANCELLED, "cancelled", (3, 1, 1, 1)),
    "cancelled for a reason": (Cancelled("expired"), {}, CANCELLED, "expired", (3, 1, 1, 1)),
    "released": (Released(), {"errors": 4, "crashes": 2, "lost": 9}, QUEUED, None, (2, 4, 2, 9)),
}


@pytest.mark.parametrize(("outcome", "changes", "state", "reason", "counts"), TABLE.values(), ids=TABLE)
def test_every_outcome_has_its_transition(outcome, changes, state, reason, counts):
    after = settle(job(**changes), outcome, NOW)
    assert (after.state, after.reason) == (state, reason)
    assert (after.attempt, after.errors, after.crashes, after.lost) == counts
    assert after.result == (b"1" if outcome == Returned(b"1") else None)
    assert may_become(RUNNING, after.state)


def test_every_step_of_a_running_job_is_taken_by_some_outcome():
    taken = {settle(job(**row[1]), row[0], NOW).state for row in TABLE.values()}
    assert taken == {after for before, after in STEPS if before is RUNNING}


KEEPS = [
    *(Crashed(ERROR, suspects=number) for number in (0, 1, 3)),
    *(Lost(started=started) for started in (True, False)),
    Released(),
]


@pytest.mark.parametrize("outcome", KEEPS)
def test_crash_loss_and_release_keep_the_place_in_line(outcome):
    before = job()
    after = settle(before, outcome, NOW)
    assert (after.rank, after.run_at) == (before.rank, before.run_at)


@pytest.mark.parametrize(
    ("outcome", "delay"),
    [(Raised(ERROR), None), (TimedOut(ERROR), None), (Snoozed(5.0), 5.0), (Raised(ERROR, retry_in=7.0), 7.0)],
)
def test_retry_and_snooze_take_a_new_place(outcome, delay):
    before = job(priority=3)
    after = settle(before, outcome, NOW)
    wanted = delay_after(before.options, before.id, 2) if delay is None else delay
    assert after.run_at == NOW + round(wanted * MICROSECONDS)
    assert after.rank == after.run_at - 3 * DAY


@pytest.mark.parametrize(
    ("outcome", "was", "becomes"),
    [
        (Crashed(ERROR, suspects=2), False, True),
        (Crashed(ERROR, suspects=0), False, False),
        (Crashed(ERROR, suspects=0), True, True),
        (Crashed(ERROR), True, True),
        (Crashed(ERROR), False, False),
        (Lost(started=True), True, True),
        (Lost(started=False), True, True),
        (Released(), True, True),
        (Raised(ERROR), True, False),
        (Snoozed(1.0), True, False),
    ],
)
def test_a_suspect_must_run_alone_until_it_has(outcome, was, becomes):
    assert settle(job(alone=was), outcome, NOW).alone is becomes


def test_a_job_whose_end_was_asked_for_only_ends():
    again = settle(job(), Raised(ERROR), NOW)
    ended = instead_if_cancelling(again)
    assert (ended.state, ended.reason) == (CANCELLED, "cancelled")
    assert (ended.attempt, ended.errors) == (again.attempt, again.errors)
    completed = settle(job(), Returned(b"1"), NOW)
    assert instead_if_cancelling(completed) is completed


def test_the_first_state_follows_from_time_and_dependencies():
    assert first_state(NOW, NOW, blocked=False) is QUEUED
    assert first_state(NOW + 1, NOW, blocked=False) is SCHEDULED
    assert first_state(NOW - 1, NOW, blocked=True) is JobState.BLOCKED
    for state in WAITING:
        assert may_become(state, CANCELLED)


def test_the_table_has_no_dead_ends_but_the_ends():
    assert {before for before, _ in STEPS} == set(JobState) - {COMPLETED, CANCELLED}
    assert {after for _, after in STEPS} == set(JobState) - {JobState.BLOCKED}
    assert all(STEPS.values())
    assert not may_become(COMPLETED, QUEUED)
    assert [after for before, after in STEPS if before in ENDS] == [QUEUED]


# --- properties ----------------------------------------------------------------------------------------
outcomes = st.one_of(
    st.builds(Returned, st.just(b"1"), st.none() | st.text()),
    st.builds(Raised, st.just(ERROR), st.booleans(), st.none() | st.floats(0, 1e9)),
    st.just(TimedOut(ERROR)),
    st.builds(Crashed, st.just(ERROR), st.integers(1, 9)),
    st.builds(Lost, st.booleans()),
    st.builds(Snoozed, st.floats(0, 1e9)),
    st.just(Cancelled()),
    st.just(Released()),
)


@calm
@given(
    outcomes,
    st.lists(st.integers(0, 12), min_size=4, max_size=4),
    st.integers(0, 9),
    st.integers(0, 2**53),
)
def test_a_transition_is_a_step_of_the_table_and_counts_never_shrink(outcome, counts, priority, now):
    attempt, errors, crashes, lost = counts
    before = job(attempt=attempt, errors=errors, crashes=crashes, lost=lost, priority=priority)
    after = settle(before, outcome, now)
    assert (RUNNING, after.state) in STEPS
    assert attempt <= after.attempt <= attempt + 1
    charged = (after.errors - errors) + (after.crashes - crashes) + (after.lost - lost)
    assert 0 <= charged <= 1
    assert charged <= after.attempt - attempt
    assert (after.reason is None) == (after.state not in {DEAD, CANCELLED})
    assert after.state is not SCHEDULED or after.run_at > now


def lived(outcome, **options):
    """How many attempts a job takes that always ends this way."""
    current, attempts = job(attempt=0, errors=0, crashes=0, lost=0, options=options), 0
    while attempts < 1000:
        after = settle(current, outcome, NOW)
        attempts += 1
        if after.state in ENDS:
            return attempts, after.reason
        current = job(
            attempt=after.attempt,
            errors=after.errors,
            crashes=after.crashes,
            lost=after.lost,
            options=options,
        )
    return None


@calm
@given(st.integers(1, 20))
def test_each_budget_is_worth_its_number_of_attempts(budget):
    assert lived(Raised(ERROR), max_attempts=budget) == (budget, "failed")
    assert lived(TimedOut(ERROR), max_attempts=budget) == (budget, "timeout")
    assert lived(Crashed(ERROR), max_crashes=budget) == (budget, "crashed")
    assert lived(Lost(started=True), max_lost=budget) == (budget, "lost")
    assert lived(Snoozed(1.0), max_attempts=1, max_crashes=1, max_lost=1) is None
    assert lived(Lost(started=False), max_lost=1) is None


@calm
@given(st.integers(0, 2**53), st.integers(0, 9), st.integers(0, 2**53), st.integers(0, 9))
def test_a_step_of_priority_is_worth_a_day(first, high, second, low):
    assert (rank(first, high) < rank(second, low)) == (first - second < (high - low) * DAY)

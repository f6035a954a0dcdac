"""What live nodes know, and how long a job waits for one that knows its task."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from millpond.job import DAY, MICROSECONDS, Failure, JobState, Released, Unknown, Unread
from millpond.rules.jobs import known_tasks
from millpond.rules.jobs.explain import why
from millpond.rules.jobs.known_tasks import Known, Sighting
from millpond.rules.jobs.lifecycle import rank, settle
from tests.jobs.jobs import HOUR, NOW, job

FAILURE = Failure("UnknownTask", "no")


class Node(NamedTuple):
    info: bytes
    lease_left: float = 10.0
    sealed: bool = False


class Facts(NamedTuple):
    queues: tuple[()] = ()
    nodes: tuple[str, ...] = ("a node",)


def test_only_nodes_with_a_lease_count_and_one_that_cannot_be_read_may_know_everything() -> None:
    told = b'{"queues":["mail"],"tasks":["a"],"code":"x","pid":7}'
    nodes = [Node(told), Node(told, lease_left=-1), Node(told, sealed=True), Node(b"{"), Node(b"{}")]
    assert known_tasks.live(nodes) == [Known(("mail",), ("a",), 0, "x"), Known(), Known()]
    assert known_tasks.is_known([Known()], "b")
    assert not known_tasks.is_known(known_tasks.live(nodes[:1]), "b")


def test_the_names_in_a_record_are_bounded_and_what_was_left_out_may_be_known() -> None:
    names = [f"task{number:05}" for number in range(3000)]
    facts = known_tasks.facts(reversed(names), "x")
    kept = facts["tasks"]
    assert isinstance(kept, list)
    assert kept == names[: len(kept)]
    assert len("".join(kept)) < known_tasks.MOST_TEXT
    assert facts["tasks_left_out"] == 3000 - len(kept)
    assert Known(tasks=tuple(kept), tasks_left_out=1).may_know("task02999")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Known(("images",), ("resize",), 0, "own"), False),
        (Known(("images",), ("resize",), 0, "other"), True),
        (Known(("mail",), ("resize",), 0, "other"), False),
        (Known(("images",), ("another",), 0, "other"), False),
        (Known(), True),
    ],
)
def test_other_code_counts_where_it_can_get_the_job(node: Known, expected: bool) -> None:
    it = job(queue="images", task="resize")
    assert known_tasks.runs_other_code([node], "own", it) is expected


def test_a_job_that_is_given_back_for_a_while_keeps_its_rank_and_costs_nothing() -> None:
    it = job(priority=2, rank=rank(NOW - HOUR, 2), run_at=NOW - HOUR)
    after = settle(it, Released(2.5), NOW)
    assert (after.state, after.run_at) == (JobState.SCHEDULED, NOW + round(2.5 * MICROSECONDS))
    assert (after.rank, after.attempt, after.errors) == (it.rank, it.attempt, it.errors)
    assert known_tasks.due_since(it) == NOW - HOUR
    assert settle(it, Released(), NOW).state is JobState.QUEUED


def test_a_job_whose_task_was_unknown_for_too_long_is_dead_without_a_charge() -> None:
    it = job()
    after = settle(it, Unknown(FAILURE), NOW)
    assert (after.state, after.reason, after.attempt, after.errors) == (
        JobState.DEAD, "unknown", it.attempt, it.errors
    )  # fmt: skip
    assert settle(it, Unread(FAILURE), NOW).errors == it.errors + 1


def test_a_job_is_offered_to_others_three_times_and_then_comes_less_often() -> None:
    delays = [known_tasks.back_off(job(), times) for times in range(1, 12)]
    assert all(2 <= delay < 2.5 for delay in delays[:3])
    assert delays[3] >= 4
    assert delays[-1] <= 75
    assert [known_tasks.rest(2.0, times) for times in (1, 3, 4)] == [3.5, 3.5, 0.0]


def test_a_sighting_goes_on_unless_the_task_was_not_met_for_an_hour() -> None:
    assert known_tasks.sighted(None, NOW) == Sighting(NOW, NOW)
    assert known_tasks.sighted(Sighting(NOW - DAY, NOW - HOUR // 2), NOW) == Sighting(NOW - DAY, NOW)
    assert known_tasks.sighted(Sighting(NOW - DAY, NOW - 2 * HOUR), NOW) == Sighting(NOW, NOW)
    assert known_tasks.is_given_up(NOW - DAY, NOW, 86_400)
    assert not known_tasks.is_given_up(NOW - DAY + 1, NOW, 86_400)


def test_why_says_which_nodes_are_missing() -> None:
    it = job(state=JobState.QUEUED, queue="images", task="resize")
    serving, other = Known(("images",), ("send",)), Known(("mail",), ("resize",))
    assert "No live node serves queue 'images'" in why(it, [], Facts(), NOW, live=[other])
    assert "knows task 'resize'" in why(it, [], Facts(), NOW, live=[other, serving])
    fine = Known(("images",), ("resize",))
    assert why(it, [], Facts(), NOW, live=[fine]).startswith("It has been in line")

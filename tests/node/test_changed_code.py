"""Nodes of two versions of an app on one store: a job waits for code that can run it, and pays nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from millpond import App, Node, Retry
from millpond.job import JobState
from tests.node.waiting import ended, until
from tests.stores.places import STORES, place

ONCE = Retry(attempts=1)
START = Callable[..., Node]


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store that two apps can share."""
    with place(request.param, tmp_path) as found:
        app = App(found)
        app.store.migrate()
        app.store.close()
        yield found


@pytest.fixture
def version() -> Iterator[Callable[[str], App]]:
    """Make apps, each of which is one version of the code."""
    made: list[App] = []

    def make(url: str) -> App:
        app = App(url)
        app.pool("default", workers=(1, 1))
        made.append(app)
        return app

    yield make
    for app in made:
        app.store.close()


def plain(app: App, **options: Any) -> Any:
    """A task that every version has."""

    def double(number: int) -> int:
        return 2 * number

    return app.task(name="double", retry=ONCE, **options)(double)


def added(app: App, **options: Any) -> Any:
    """A task that only the new version has."""

    def triple(number: int) -> int:
        return 3 * number

    return app.task(name="triple", retry=ONCE, **options)(triple)


def test_a_node_gives_back_a_task_it_does_not_know_and_charges_nothing(
    url: str, version: Callable[[str], App], start: START
) -> None:
    """The old node claims it, gives it back, and goes on with what it knows; the new one runs it."""
    old, new = version(url), version(url)
    known, unknown = plain(old), added(new)
    plain(new)
    node = start(old)
    handles = unknown.enqueue_many([(number,) for number in range(20)])
    assert known.enqueue(4).result(timeout=30) == 8
    until(lambda: node._released() >= 1, "a job given back")
    jobs = [handle.job() for handle in handles]
    assert {job.state for job in jobs} <= {JobState.QUEUED, JobState.SCHEDULED, JobState.RUNNING}
    assert [job.attempt for job in jobs] == [0] * 20
    start(new)
    assert [handle.result(timeout=30) for handle in handles] == [3 * number for number in range(20)]
    ended_as = [handle.job() for handle in handles]
    assert [(job.attempt, job.errors, len(job.attempts)) for job in ended_as] == [(1, 0, 1)] * 20


def test_a_node_does_not_claim_again_and_again_what_it_does_not_know(
    url: str, version: Callable[[str], App], start: START
) -> None:
    """Every claim raises the token: after the first it names the task as one that it must not get."""
    old, new = version(url), version(url)
    known = plain(old)
    handle = added(new).enqueue(1)
    node = start(old)
    until(lambda: node._released() >= 1, "the job given back")
    for number in range(30):
        assert known.enqueue(number).result(timeout=30) == 2 * number
    assert handle.job().token <= 2


def test_more_unknown_tasks_than_a_claim_can_name_do_not_keep_a_node_busy(
    tmp_path: Path, version: Callable[[str], App], start: START, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that cannot be left out of a claim are due again only after a while."""
    monkeypatch.setattr("millpond.node.jobs.unknown_tasks.MOST", 3)
    old, new = version(f"sqlite:///{tmp_path / 'jobs.db'}"), version(f"sqlite:///{tmp_path / 'jobs.db'}")
    known = plain(old)
    handles = [new.task(name=f"task{number}")(lambda: None).enqueue() for number in range(8)]
    start(old)
    until(lambda: sum(handle.job().state is JobState.SCHEDULED for handle in handles) == 5, "those put off")
    for number in range(10):
        assert known.enqueue(number).result(timeout=30) == 2 * number
    assert [handle.job().attempt for handle in handles] == [0] * 8
    assert max(handle.job().token for handle in handles) <= 3


def measured(app: App, *, takes_unit: bool, **options: Any) -> Any:
    """A task whose signature was changed."""

    def weigh(grams: int) -> str:
        return f"{grams} g"

    def weigh_anew(grams: int, unit: str) -> str:
        return f"{grams} {unit}"

    return app.task(name="weigh", **options)(weigh_anew if takes_unit else weigh)


def test_arguments_that_this_code_cannot_read_are_given_back_while_other_code_is_at_work(
    url: str, version: Callable[[str], App], start: START
) -> None:
    """The old node's workers refuse the new call; it is not charged, and the new node runs it."""
    old, new = version(url), version(url)
    measured(old, takes_unit=False, retry=ONCE)
    weigh = measured(new, takes_unit=True, retry=ONCE)
    node = start(old)
    other = start(new, lease=60)
    other.hold()  # so that the old one gets the job first
    handle = weigh.enqueue(5, "kg")
    until(lambda: node._released() >= 1, "the job given back")
    job = handle.job()
    assert (job.attempt, job.errors, job.attempts) == (0, 0, ())
    other.go_on()
    assert handle.result(timeout=30) == "5 kg"
    assert handle.job().attempt == 1


def test_arguments_that_no_live_node_can_read_fail_the_job(
    tmp_path: Path, version: Callable[[str], App], start: START
) -> None:
    """With one version of the code there is nothing to wait for."""
    old, new = version(f"sqlite:///{tmp_path / 'jobs.db'}"), version(f"sqlite:///{tmp_path / 'jobs.db'}")
    weigh = measured(new, takes_unit=True, retry=ONCE)
    measured(old, takes_unit=False, retry=ONCE)
    start(old)
    job = ended(weigh.enqueue(5, "kg"))
    assert (job.state, job.reason, job.attempt) == (JobState.DEAD, "failed", 1)
    assert job.attempts[-1].error == "millpond.errors.ArgumentsRefused"


def test_a_task_that_no_live_node_knows_is_dead_only_after_unknown_after(
    url: str, version: Callable[[str], App], start: START
) -> None:
    """While a live node knows it, even one that does not serve its queue, the job waits."""
    old, new = version(url), version(url)
    plain(old)
    handle = added(new, queue="default").enqueue(1)
    new.task(name="elsewhere", queue="elsewhere")(lambda: None)
    knowing = start(new, queues=["elsewhere"])
    node = start(old, unknown_after="1s")
    until(lambda: node._state.unknown._met, "the task to be met")
    met = node._state.unknown._met["triple"]
    until(lambda: met.look_at > met.at + 2, "some looks at it")
    assert handle.job().state is JobState.QUEUED
    assert "No live node that serves queue 'default' knows task 'triple'" in handle.why()
    knowing.stop()
    job = ended(handle)
    assert (job.state, job.reason, job.attempt, job.errors) == (JobState.DEAD, "unknown", 0, 0)
    assert "aliases=['triple']" in (job.attempts[-1].message or "")


def test_a_node_that_knows_a_task_ends_the_time_for_which_it_was_unknown(
    tmp_path: Path, version: Callable[[str], App], start: START
) -> None:
    """A day without any node means a day in one piece."""
    old, new = version(f"sqlite:///{tmp_path / 'jobs.db'}"), version(f"sqlite:///{tmp_path / 'jobs.db'}")
    plain(old)
    triple = added(new)
    triple.enqueue(1)
    node = start(old)
    document = "tasks/unknown"
    until(lambda: b"triple" in old.store.record(document).value, "the sighting")
    node.stop()
    start(new)
    until(lambda: b"triple" not in old.store.record(document).value, "the sighting to be forgotten")


def test_why_names_a_queue_that_no_live_node_serves(
    tmp_path: Path, version: Callable[[str], App], start: START
) -> None:
    """Another node being up is no reason to be silent about it."""
    app = version(f"sqlite:///{tmp_path / 'jobs.db'}")
    task = plain(app)
    start(app)
    handle = task.using(queue="oldqueue").enqueue(1)
    assert "No live node serves queue 'oldqueue'" in handle.why()
    assert "app.pool(" in handle.why()


def test_a_renamed_task_runs_the_jobs_of_its_old_name_and_upgrades_their_arguments(
    url: str, version: Callable[[str], App], start: START
) -> None:
    """Jobs stored by the old version are run by the new one alone."""
    old, new = version(url), version(url)
    first = measured(old, takes_unit=False).enqueue(7)

    def upgrade(arguments: dict[str, Any]) -> dict[str, Any]:
        return {**arguments, "unit": arguments.get("unit", "g")}

    def scale(grams: int, unit: str) -> str:
        return f"{grams} {unit}!"

    task = new.task(name="scale", aliases=["weigh"], upgrade=upgrade)(scale)
    start(new)
    assert first.result(timeout=30) == "7 g!"
    assert task.enqueue(1, "kg").result(timeout=30) == "1 kg!"


def test_an_error_in_upgrade_is_an_error_of_the_job(
    tmp_path: Path, version: Callable[[str], App], start: START
) -> None:
    """It is charged, told, and subject to the retry rules like any other."""
    old, new = version(f"sqlite:///{tmp_path / 'jobs.db'}"), version(f"sqlite:///{tmp_path / 'jobs.db'}")
    handle = measured(old, takes_unit=False, retry=Retry(attempts=2, first=0)).enqueue(7)

    def upgrade(arguments: dict[str, Any]) -> dict[str, Any]:
        raise LookupError(f"no unit for {arguments['grams']}")

    measured(new, takes_unit=True, upgrade=upgrade)
    start(new)
    job = ended(handle)
    assert (job.state, job.reason, job.errors) == (JobState.DEAD, "failed", 2)
    assert job.attempts[-1].message == "no unit for 7"

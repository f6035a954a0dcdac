"""One end that the store does not take, for whatever reason, holds up no other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import msgspec
import psycopg
import pytest

from millpond import App
from millpond.errors import OutcomeUnknown, StoreBusy, StoreUnavailable
from millpond.job import JobState
from millpond.rules.node.health import is_ready
from millpond.store.open import open_store
from millpond.store.protocol import Exchanged
from tests.node.waiting import all_ended, ended, until
from tests.stores.places import address_and_name, place

WORDS = "was locked for too long; nothing happened"


class Choosy:
    """A store that does not take the settlements of some jobs."""

    exchange_meanwhile = None
    works_elsewhere = False

    def __init__(self, store: Any) -> None:
        self._store = store
        self.refused: set[str] = set()
        self.error: Callable[[], Exception] | None = lambda: StoreBusy(WORDS)
        self.is_away = False
        self.tries = 0
        self.together: list[int] = []  # how many refused settlements came at once

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def exchange(self, node: str, sequence: int, **said: Any) -> Exchanged:
        if self.is_away:
            raise StoreUnavailable("connection refused")
        found = [one for one in said.get("settlements", ()) if one.id in self.refused]
        self.tries += bool(found)
        if found and self.error is not None:
            raise self.error()
        if found:
            self.together.append(len(found))
            said["settlements"] = [one for one in said["settlements"] if one.id not in self.refused]
        answer: Exchanged = self._store.exchange(node, sequence, **said)
        return msgspec.structs.replace(answer, deferred=tuple(one.id for one in found))


@pytest.fixture
def choosy(local: App) -> Choosy:
    """The store of the app, which has two tasks. What is refused never reaches the store."""
    return made_choosy(local)


@pytest.fixture
def any_choosy(app: App) -> Choosy:
    """The same on each sort of store."""
    return made_choosy(app)


def made_choosy(app: App) -> Choosy:
    made = Choosy(app.store)
    app.store = made
    app.pool("default", workers=2)
    app.task(name="double")(_double)
    app.task(name="quick")(_quick)
    return made


def _double(number: int) -> int:
    return 2 * number


def _quick() -> None: ...


def refuse(app: App, choosy: Choosy, number: int = 1) -> list[Any]:
    """Enqueue jobs whose ends the store will not take."""
    app.store.configure(queue="default", paused=True)
    handles = app.tasks["double"].enqueue_many([(one,) for one in range(number)])
    choosy.refused.update(handle.id for handle in handles)
    app.store.configure(queue="default", paused=False)
    return handles


def test_a_settlement_that_the_store_never_takes_holds_up_no_other(app, any_choosy, start, caplog):
    choosy, node = any_choosy, start(app)
    (bad,) = refuse(app, choosy)
    jobs = all_ended(app.tasks["quick"].enqueue_many([()] * 200))
    assert {(job.state, job.token) for job in jobs} == {(JobState.COMPLETED, 1)}
    assert bad.job().state is JobState.RUNNING
    tries = until(lambda: node._loop.trouble is None and choosy.tries, "it is set apart")
    until(lambda: choosy.tries > tries, "it is tried again")
    report = until(lambda: (told := node.report()).unrecorded and told, "the report tells of it")
    assert report.unrecorded[0].startswith(f"job {bad.id}: its end cannot be recorded: {WORDS}; tried ")
    assert (report.quarantined, report.unsettled, report.store_trouble) == (1, 1, None)
    assert report.unsettled_bytes > 0
    assert is_ready(report)[:2] == (True, "unrecorded")
    until(lambda: f"its end cannot be recorded: {WORDS}" in bad.why(), "the job itself tells")
    assert caplog.text.count(f"Job {bad.id}: its end cannot be recorded") == 1
    choosy.refused.clear()
    job = ended(bad)
    assert (job.state, job.token) == (JobState.COMPLETED, 1)
    until(lambda: node.report().quarantined == len(node._state.line) == 0, "nothing is left")


def test_the_culprit_of_a_batch_is_found_and_the_rest_of_it_is_settled(local, choosy, start):
    local.store.configure(queue="default", paused=True)
    node = start(local)
    handles = local.tasks["quick"].enqueue_many([()] * 150)
    choosy.refused.update(handle.id for handle in (handles[3], handles[70], handles[71]))
    local.store.configure(queue="default", paused=False)
    good = [handle for handle in handles if handle.id not in choosy.refused]
    assert {job.state for job in all_ended(good)} == {JobState.COMPLETED}
    until(lambda: node.report().quarantined == 3, "the three are set apart")
    choosy.refused.clear()
    assert {(job.state, job.token) for job in all_ended(handles)} == {(JobState.COMPLETED, 1)}


def test_a_store_that_is_away_sends_no_settlement_to_the_quarantine(local, choosy, start, tmp_path):
    node = start(local)
    handles = local.tasks["quick"].enqueue_many([()] * 20)
    until(
        lambda: len(node._state.line) or all(handle.job().state is JobState.COMPLETED for handle in handles)
    )
    choosy.is_away = True
    more = local.tasks["quick"].enqueue_many([()] * 20)
    before = sum(node._loop.troubles.values())
    until(lambda: sum(node._loop.troubles.values()) > before + 3, "it has tried often")
    assert node.report().quarantined == 0
    assert node.report().store_trouble == "connection refused"
    choosy.is_away = False
    assert {job.token for job in all_ended(handles + more)} == {1}
    assert node.report().quarantined == 0


def test_settlements_that_another_transaction_keeps_out_are_sent_again_together(local, choosy, start):
    choosy.error = None
    node = start(local)
    bad = refuse(local, choosy, 5)
    until(lambda: node.report().quarantined == 5, "all are set apart")
    assert {job.state for job in all_ended(local.tasks["quick"].enqueue_many([()] * 50))} == {
        JobState.COMPLETED
    }
    assert node.report().store_errors == {}
    assert node.report().unrecorded == ()  # a lock that is held for a moment is nothing to worry about
    until(lambda: choosy.together[-1] == 5, "they are tried together")
    choosy.refused.clear()
    assert {(job.state, job.token) for job in all_ended(bad)} == {(JobState.COMPLETED, 1)}


def test_a_settlement_whose_outcome_is_never_known_is_set_apart_too(local, choosy, start):
    choosy.error = lambda: OutcomeUnknown("the server has not answered")
    node = start(local)
    (bad,) = refuse(local, choosy)
    jobs = all_ended(local.tasks["quick"].enqueue_many([()] * 50))
    assert {(job.state, job.token) for job in jobs} == {(JobState.COMPLETED, 1)}
    until(lambda: node.report().quarantined == 1, "it is set apart")
    tries = choosy.tries
    until(lambda: choosy.tries > tries, "it is tried again")
    choosy.refused.clear()
    assert (ended(bad).state, bad.job().token) == (JobState.COMPLETED, 1)


def test_a_node_that_drains_tries_it_again_until_its_time_is_over(local, choosy, start):
    node = start(local)
    (bad,) = refuse(local, choosy)
    until(lambda: node.report().quarantined, "it is set apart")
    node.drain(30.0)
    tries = choosy.tries
    until(lambda: choosy.tries > tries + 1, "it is tried again and again")
    choosy.refused.clear()
    node.wait()
    assert (bad.job().state, bad.job().token) == (JobState.COMPLETED, 1)


def test_a_node_that_was_rescued_forgets_it(local, choosy, start):
    node = start(local)
    (bad,) = refuse(local, choosy)
    until(lambda: node.report().quarantined, "it is set apart")
    old = node._state.identity.id
    local.store.renew("other", node._state.identity.host)
    local.store.rescue("other", [old])
    until(lambda: node._state.identity.id != old, "it goes on under a new name")
    choosy.refused.clear()
    job = ended(bad)
    assert (job.state, job.token > 1) == (JobState.COMPLETED, True)
    until(lambda: node.report().quarantined == 0, "nothing is left")


def test_an_open_transaction_that_locks_a_job_holds_up_its_end_alone(start, tmp_path):
    """On PostgreSQL, with a row lock of another program's."""
    with place("postgres", tmp_path) as url:
        app = App(url)
        app.store = open_store(url, patience=1.0)
        app.store.migrate()
        app.pool("default", workers=2)
        app.task(name="quick")(_quick)
        go = tmp_path / "go"

        @app.task(name="wait_for")
        def wait_for(path: str) -> None:
            while not os.path.exists(path):
                time.sleep(0.005)

        node = start(app)
        bad = wait_for.enqueue(str(go))
        until(lambda: bad.job().started_at, "it runs")
        address, schema = address_and_name(url)
        with psycopg.connect(address) as other:
            other.execute(f"SELECT * FROM {schema}.jobs WHERE id = %s FOR UPDATE".encode(), (bad.id,))
            go.touch()
            until(lambda: node.report().quarantined, "its end is set apart")
            jobs = all_ended(app.tasks["quick"].enqueue_many([()] * 50))
            assert {job.state for job in jobs} == {JobState.COMPLETED}
            other.rollback()
        assert (ended(bad).state, bad.job().token) == (JobState.COMPLETED, 1)
        node.stop(0.0)
        app.store.close()


def test_a_store_that_goes_away_after_a_lost_answer_is_no_failure_of_the_round(app, start, caplog):
    """The end whose answer was lost is known to be taken; then an exchange without any end fails."""
    app.pool("default", workers=1)
    task = app.task(name="quick")(_quick)
    app.store = store = Forgetful(app.store)
    node = start(app)
    ended(task.enqueue())
    until(lambda: not store.left, "the lost answer, and the failure after it")
    ended(task.enqueue())
    node.stop(0.0)
    assert "A claim round failed" not in caplog.text


class Forgetful(Choosy):
    """A store whose answer to the first settlement is lost; the next claim fails."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.left: list[tuple[str, Exception]] = [
            ("settlements", OutcomeUnknown("the answer was lost")),
            ("claims", StoreUnavailable("connection refused")),
        ]

    def exchange(self, node: str, sequence: int, **said: Any) -> Exchanged:
        error = self.left.pop(0)[1] if self.left and said.get(self.left[0][0]) else None
        if isinstance(error, StoreUnavailable):  # nothing happened
            raise error
        answer = super().exchange(node, sequence, **said)
        if error is not None:
            raise error
        return answer

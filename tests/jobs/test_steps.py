"""Every step in the table of states is taken by some job, on a real store; none is taken beside it."""

import pytest

from millpond import App, Cancel, JobState, Retry, RetryAfter, Snooze
from millpond.rules.jobs.lifecycle import STEPS
from millpond.store.protocol import Filter
from millpond.testing import Testing


class Watched(Testing):
    """Remembers the steps of its jobs by looking at them after everything that is done."""

    def __init__(self, app):
        super().__init__(app)
        self.last = {}
        self.steps = set()

    def look(self):
        for job in self._all():
            before = self.last.get(job.id)
            if before not in (None, job.state):
                self.steps.add((before, job.state))
            self.last[job.id] = job.state

    def _exchange(self, **what):
        answer = super()._exchange(**what)
        self.look()
        return answer


@pytest.fixture
def app():
    return App("memory://")


@pytest.fixture
def jobs(app):
    with Watched(app) as jobs:
        yield jobs


@pytest.fixture
def work(app):
    says = {
        "fail": ValueError("no"),
        "snooze": Snooze("1m"),
        "cancel": Cancel(),
        "at once": RetryAfter(0),
    }

    @app.task(name="work", retry=Retry(attempts=2))
    def work(name: str) -> None:
        if name in says:
            raise says[name]

    return work


def counted(app, queue):
    return next(it.states for it in app.store.counts().queues if it.queue == queue)


def test_every_step_is_taken_and_no_other(app, jobs, work):
    parent = work.using(delay="1m").enqueue("parent")
    work.using(depends_on=[parent]).enqueue("child")
    work.using(depends_on=[parent], delay="1h").enqueue("later child")
    for name in ("fail", "cancel", "at once"):
        work.enqueue(name)
    doomed = [
        work.using(depends_on=[parent]).enqueue("x"),
        work.using(delay=5).enqueue("x"),
        work.enqueue("x"),
    ]
    snoozing = work.using(queue="snoozing").enqueue("snooze")
    work.using(queue="paused", delay="1s").enqueue("x")
    app.store.configure(queue="paused", paused=True)
    jobs.look()
    assert all(handle.cancel() for handle in doomed)
    jobs.look()
    jobs.run_due()
    snoozing.cancel()
    jobs.run_until_idle()
    app.store.replay(Filter(states=(JobState.DEAD,)))
    jobs.look()
    damaged = work.using(queue="damaged").enqueue("x")
    jobs.look()
    app.store._open().execute("UPDATE millpond_jobs SET options = '?' WHERE id = ?", (damaged.id,))
    jobs.run_until_idle()
    jobs.steps |= {(JobState.QUEUED, state) for state in counted(app, "damaged")}  # it cannot be read
    unseen = {(JobState.SCHEDULED, JobState.RUNNING)}  # promoted and claimed in one step of the store
    assert jobs.steps - unseen == set(STEPS)

"""Enqueueing: a job carries what decorator and `using()` say; what they cannot say is refused at the edge."""

import asyncio
import pickle
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from millpond import App, JobState, Priority, Resources, Retry
from millpond.errors import (
    ArgumentsRefused,
    JobError,
    MillpondError,
    OptionError,
    OutcomeUnknown,
    PayloadRefused,
    UnknownJob,
)
from millpond.job import JobOptions, Slot


@pytest.fixture
def app():
    return App("memory://")


@pytest.fixture
def resize(app):
    @app.task(queue="images", name="resize")
    def resize(path: str, width: int) -> str:
        return f"{path}@{width}"

    return resize


def test_a_job_carries_what_the_decorator_says(app):
    @app.task(
        name="work",
        queue="mail",
        priority=Priority.HIGH,
        timeout="30s",
        expires="1h",
        retry=Retry(attempts=7, first="1s", factor=3, cap="5m", max_crashes=2, max_lost=4),
        resources=Resources(cpu=2),
        key="{user}-{flag}",
        limit=3,
    )
    def work(user: int, flag: bool = False): ...

    job = work.enqueue(7).job()
    assert (job.task, job.queue, job.priority, job.payload) == ("work", "mail", 2, b'{"user":7}')
    assert job.options == JobOptions(30.0, 7, 2, 4, 1.0, 3.0, 300.0, {"cpu": 2.0})
    assert job.slots == (Slot("work:7-False", 3),)
    assert job.expires_at == job.created_at + 3600 * 10**6


def test_a_key_may_be_computed(app):
    @app.task(name="work", key=lambda user: user["id"], limit=1)
    def work(user: dict[str, int]): ...

    assert work.enqueue({"id": 5}).job().slots == (Slot("work:5", 1),)


def test_a_key_that_comes_to_nothing_is_refused(app):
    @app.task(name="work", key="{user}", limit=1)
    def work(user: str): ...

    @app.task(name="other", key=lambda user: user.get("id"), limit=1)
    def other(user: dict[str, int]): ...

    @app.task(name="third", key="{user[id]}", limit=1)
    def third(user: dict[str, int]): ...

    with pytest.raises(OptionError, match="the key of work must be text of 1 to 500"):
        work.enqueue("")
    with pytest.raises(OptionError, match=r"the key of other must be text .* not None"):
        other.enqueue({})
    with pytest.raises(OptionError, match="of third cannot be filled: 'id'"):
        third.enqueue({})
    assert third.enqueue({"id": 5}).job().slots == (Slot("third:5", 1),)


def test_using_changes_one_job_and_not_the_task(app, resize):
    at = datetime(2200, 1, 1, tzinfo=UTC)
    parent = resize.enqueue("p", 1)
    wanted = str(uuid.uuid4())
    special = resize.using(queue="mail", priority=9, timeout=None, id=wanted.upper()).using(
        expires=5, unique="u", at=at, depends_on=[parent]
    )
    handle = special.enqueue("a", 1)
    job = handle.job()
    assert (handle.id, handle.created) == (wanted, True)
    assert (job.queue, job.priority, job.options.timeout) == ("mail", 9, None)
    assert (job.unique, job.depends_on, job.state) == ("u", (parent.id,), JobState.BLOCKED)
    assert job.run_at == int(at.timestamp()) * 10**6
    assert resize.enqueue("a", 1).job().queue == "images"


def test_a_delay_counts_from_now(resize):
    job = resize.using(delay="10m").enqueue("a", 1).job()
    assert job.state is JobState.SCHEDULED
    assert job.run_at - job.created_at == 600 * 10**6


BAD_USING = {
    "queue": ({"queue": "no spaces"}, "queue"),
    "priority": ({"priority": -1}, "priority"),
    "negative delay": ({"delay": -5}, "delay must be a duration of zero or more"),
    "negative timedelta": ({"delay": timedelta(-1)}, "zero or more"),
    "endless delay": ({"delay": float("inf")}, "delay"),
    "beyond a century": ({"delay": "999999999999999999d"}, "100 years"),
    "at without zone": ({"at": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001
    "at that is no datetime": ({"at": "tomorrow"}, "at must be a datetime"),
    "at too far": ({"at": datetime(2256, 1, 1, tzinfo=UTC)}, "1970 to 2254"),
    "at too long ago": ({"at": datetime(1, 1, 2, tzinfo=UTC)}, "1970 to 2254"),
    "at and delay": ({"at": datetime.now(UTC), "delay": 1}, "not both"),
    "wrong id": ({"id": "5"}, "must be a UUID"),
    "unique empty": ({"unique": ""}, "unique must be text"),
    "unique too long": ({"unique": "u" * 501}, "1 to 500"),
    "unique with NUL": ({"unique": "a\0"}, "NUL"),
    "unique with a surrogate": ({"unique": "\ud800"}, "surrogates"),
    "unique number": ({"unique": 5}, "unique must be text"),
    "unique_for": ({"unique": "u", "unique_for": "ever"}, "unique_for"),
    "unique_for alone": ({"unique_for": "done"}, "give unique="),
    "a bare parent": ({"depends_on": "abc"}, r"such as \[handle\]"),
    "a parent that is none": ({"depends_on": [5]}, "must be a UUID"),
    "depends on nothing iterable": ({"depends_on": 5}, "list of handles"),
    "timeout": ({"timeout": 0}, "above zero"),
    "expires": ({"expires": -1}, "expires"),
}


@pytest.mark.parametrize(("options", "said"), BAD_USING.values(), ids=BAD_USING)
def test_impossible_options_are_refused_before_anything_is_stored(app, resize, options, said):
    with pytest.raises(OptionError, match=said) as refusal:
        resize.using(**options).enqueue("a", 1)
    assert isinstance(refusal.value, MillpondError | ValueError)
    assert not app.store.counts().queues


def test_bad_arguments_are_refused_before_anything_is_stored(app, resize):
    with pytest.raises(ArgumentsRefused, match=r"resize\(path: str, width: int\) -> str: missing"):
        resize.enqueue("a")
    with pytest.raises(ArgumentsRefused, match="width: expected `int`, got `str`"):
        resize.enqueue("a", "wide")
    with pytest.raises(PayloadRefused, match="resize: path is text with a NUL"):
        resize.enqueue("a\0", 1)
    with pytest.raises(JobError):
        resize.enqueue_many([("a", 1), ("b",)])
    assert not app.store.counts().queues


def test_many_jobs_are_stored_in_one_step(resize):
    handles = resize.enqueue_many([("a", 1), {"path": "b", "width": 2}])
    assert [handle.job().payload for handle in handles] == [
        b'{"path":"a","width":1}',
        b'{"path":"b","width":2}',
    ]
    assert resize.enqueue_many([]) == []
    with pytest.raises(ArgumentsRefused, match=r"not str: write \('a',\)"):
        resize.enqueue_many(["a"])
    with pytest.raises(OptionError, match="for one job"):
        resize.using(id=str(uuid.uuid4())).enqueue_many([("a", 1)])


async def test_async_code_enqueues_too(resize):
    handle = await resize.aenqueue("a", 1)
    handles = await resize.aenqueue_many([("a", 1), ("b", 2)])
    assert {await asyncio.to_thread(lambda it: it.job().state, it) for it in (handle, *handles)} == {
        JobState.QUEUED
    }


async def test_a_transaction_goes_to_the_store_as_it_is(app, resize):
    given = []

    class Joining:
        url = "joining://"

        def exchange(self): ...

        def enqueue(self, jobs, transaction=None):
            given.append(("sync", transaction))
            return app.store.enqueue(jobs)

        async def aenqueue(self, jobs, transaction):
            given.append(("async", transaction))
            return app.store.enqueue(jobs)

    class Connection:
        async def execute(self): ...

    mine, theirs = object(), Connection()
    other = App(Joining())  # type: ignore[arg-type]
    task = other.task(name="t")(lambda: None)
    task.using(transaction=mine).enqueue()
    await task.using(transaction=mine).aenqueue()
    await task.using(transaction=theirs).aenqueue()
    await task.aenqueue()
    assert given == [("sync", mine), ("sync", mine), ("async", theirs), ("sync", None)]


async def test_an_unknown_outcome_tells_the_ids(app, resize, monkeypatch):
    sent: list[str] = []
    shared = OutcomeUnknown("the line went dead")

    def fail(jobs, transaction=None):
        sent.extend(job.id for job in jobs)
        raise shared

    async def afail(jobs, transaction):
        fail(jobs)

    class Connection:
        async def execute(self): ...

    monkeypatch.setattr(app.store, "enqueue", fail)
    monkeypatch.setattr(app.store, "aenqueue", afail, raising=False)
    with pytest.raises(OutcomeUnknown, match="the line went dead") as unknown:
        resize.enqueue_many([("a", 1), ("b", 1)])
    assert unknown.value.ids == tuple(sent)
    for more in (resize, resize.using(transaction=Connection())):
        sent.clear()
        with pytest.raises(OutcomeUnknown) as unknown:
            await more.aenqueue("a", 1)
        assert unknown.value.ids == tuple(sent)
        assert pickle.loads(pickle.dumps(unknown.value)).ids == tuple(sent)
    assert shared.ids == ()
    monkeypatch.undo()
    assert resize.using(id=sent[0]).enqueue("a", 1).created


def test_a_unique_job_is_made_once(resize):
    first = resize.using(unique="a").enqueue("a", 1)
    second = resize.using(unique="a", unique_for="1h").enqueue("a", 1)
    assert (first.created, second.created) == (True, False)
    assert first == second
    assert len({first, second}) == 1
    assert first != resize.enqueue("a", 1)
    assert first != first.id


def test_the_same_id_is_stored_once(resize):
    wanted = str(uuid.uuid4())
    assert [resize.using(id=wanted).enqueue("a", 1).created for _ in range(2)] == [True, False]


def test_an_unknown_parent_is_refused(resize):
    with pytest.raises(UnknownJob):
        resize.using(depends_on=[str(uuid.uuid4())]).enqueue("a", 1)

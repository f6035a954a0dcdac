"""App and tasks: still functions, registered by name, enqueued with options that are checked at the edge."""

import pickle
import subprocess
import sys
from typing import Any

import pytest

from millpond import App, Fixed, JobHandle, Resources, Retry, Task, current_job, pickling
from millpond.errors import (
    OptionError,
    UnknownTask,
)
from millpond.task import AsyncTask
from millpond.testing import Testing

shop = App("memory://", name="shop")


@shop.task
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def app():
    return App("memory://")


@pytest.fixture
def resize(app):
    @app.task(queue="images", name="resize")
    def resize(path: str, width: int) -> str:
        return f"{path}@{width}"

    return resize


# --- tasks ---------------------------------------------------------------------------------------------
def test_a_task_is_still_its_function():
    assert add(1, 2) == 3
    assert add.__qualname__ == "add"
    assert add.__doc__ == "Add two numbers."
    assert add.name == "tests.jobs.test_app.add"
    assert repr(add) == "<Task tests.jobs.test_app.add on queue 'default'>"
    assert shop.get_task(add.name) is add


def test_a_task_is_pickled_as_a_function_is():
    assert pickle.loads(pickle.dumps(add)) is add


SCRIPT = """
from millpond import App, Pool

app = App("memory://")
factor = 3

@app.task
def triple(number: int) -> int:
    return factor * number

if __name__ == "__main__":
    with Pool(1) as pool:
        print(pool.submit(triple, 4).result(), triple.name)
"""


def test_a_task_of_a_script_runs_in_a_pool(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout == "12 script.triple\n", done.stderr


async def test_an_async_task_gives_its_coroutine(app):
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    assert isinstance(double, AsyncTask)
    assert double.is_async
    assert await double(2) == 4


def test_a_script_names_its_tasks_as_those_who_import_it(app, monkeypatch):
    def work(): ...

    work.__module__ = "__main__"
    work.__qualname__ = "work"
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.setattr(main, "__file__", "/srv/jobs.py", raising=False)
    assert app.task(work).name == "jobs.work"
    monkeypatch.delattr(main, "__file__")
    assert Task(app, work, {}).name == "__main__.work"
    monkeypatch.setattr(main, "__spec__", type("Spec", (), {"name": "pkg.__main__"}))
    assert Task(app, work, {}).name == "pkg.work"


def test_a_name_belongs_to_one_function(app):
    @app.task(name="work")
    def first(): ...

    with pytest.raises(OptionError, match="two tasks are called 'work'"):

        @app.task(name="work")
        def second(): ...

    assert app.get_task("work") is first


def test_a_function_defined_anew_takes_its_own_place(app):
    def define():
        @app.task
        def work(): ...

        return work

    define()
    again = define()
    assert app.get_task(again.name) is again


def test_an_unknown_task_is_named_with_its_nearest(app, resize):
    with pytest.raises(UnknownTask, match="no task is called 'resise', did you mean 'resize'"):
        app.get_task("resise")
    with pytest.raises(UnknownTask, match="there are: resize"):
        app.get_task("zzz")
    with pytest.raises(UnknownTask, match=r"no task is called 'x'$"):
        App("memory://").get_task("x")


def generator():
    yield 1


async def async_generator():
    yield 1


class Nameless:
    def __call__(self): ...


BAD_TASKS = {
    "not a function": (5, {}, "needs a function"),
    "a generator": (generator, {}, "return a list"),
    "an async generator": (async_generator, {}, "return a list"),
    "without a signature": (max, {}, "wrap it in a function"),
    "a lambda": (lambda: 1, {}, r"give name='\.\.\.'"),
    "nameless": (Nameless(), {}, r"give name='\.\.\.'"),
    "queue in capitals": (add, {"queue": "Mail"}, "a-z"),
    "queue too long": (add, {"queue": "q" * 65}, "1 to 64"),
    "queue empty": (add, {"queue": ""}, "1 to 64"),
    "queue with a newline": (add, {"queue": "mail\n"}, "queue"),
    "queue that is no text": (add, {"queue": 5}, "queue"),
    "priority": (add, {"priority": 10}, "from 0"),
    "priority True": (add, {"priority": True}, "from 0"),
    "timeout zero": (add, {"timeout": 0}, "above zero"),
    "timeout negative": (add, {"timeout": -1}, "zero or more"),
    "timeout text": (add, {"timeout": "soon"}, "timeout must be a duration"),
    "timeout for ever": (add, {"timeout": "99999999d"}, "100 years"),
    "expires": (add, {"expires": "0s"}, "above zero"),
    "retry": (add, {"retry": 5}, r"retry must be Retry\(\.\.\.\)"),
    "resources": (add, {"resources": {"cpu": 1}}, "resources must be Resources"),
    "key without limit": (add, {"key": "{a}"}, "belong together"),
    "limit without key": (add, {"limit": 1}, "belong together"),
    "limit zero": (add, {"key": "{a}", "limit": 0}, "limit must be"),
    "limit True": (add, {"key": "{a}", "limit": True}, "limit must be"),
    "key of an unknown parameter": (add, {"key": "{aa}", "limit": 1}, "no parameter 'aa', did you mean 'a'"),
    "key that is no format": (add, {"key": "{a", "limit": 1}, "cannot be read"),
    "key that is a number": (add, {"key": 5, "limit": 1}, "key must be text"),
    "name too long": (add, {"name": "n" * 201}, "name must be text"),
    "name with NUL": (add, {"name": "a\0"}, "name must be text"),
}


@pytest.mark.parametrize(("function", "options", "said"), BAD_TASKS.values(), ids=BAD_TASKS)
def test_a_task_with_an_impossible_option_is_refused(app, function, options, said):
    with pytest.raises(OptionError, match=said):
        app.task(**options)(getattr(function, "function", function))
    assert not app.tasks


def test_an_unknown_option_is_named_with_its_nearest(app, resize):
    with pytest.raises(TypeError, match="a task has no option 'que', did you mean 'queue'"):

        @app.task(que="mail")
        def work(): ...

    with pytest.raises(TypeError, match=r"using\(\) has no option 'dealy', did you mean 'delay'"):
        resize.using(dealy=5)
    with pytest.raises(TypeError, match="there are: at, delay"):
        resize.using(zzz=5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"attempts": 0}, "attempts"),
        ({"attempts": 2.5}, "attempts"),
        ({"first": -1}, "first"),
        ({"cap": "soon"}, "cap"),
        ({"factor": 0.5}, "factor"),
        ({"factor": float("nan")}, "factor"),
        ({"never": ValueError}, "never"),
        ({"never": (5,)}, "never"),
        ({"after": {5: 1}}, "after"),
        ({"after": {ValueError: -1}}, "after"),
        ({"max_crashes": 0}, "max_crashes"),
        ({"max_lost": True}, "max_lost"),
    ],
)
def test_an_impossible_retry_is_refused(options, said):
    with pytest.raises(OptionError, match=said):
        Retry(**options)


def test_impossible_resources_are_refused():
    for needs in ({"cpu": -1}, {"memory": "512M"}, {"gpu": "one"}, {"cpu": True}):
        with pytest.raises(OptionError, match="Resources"):
            Resources(**needs)
    assert Resources(cpu=1, memory="1MB", gpu=2).needs == {"cpu": 1.0, "memory": 1e6, "gpu": 2.0}
    assert repr(Resources(cpu=1)) == "Resources(cpu=1)"


# --- the app -------------------------------------------------------------------------------------------
def test_an_app_takes_a_url_or_a_store(app):
    assert repr(app) == "<App 'app' on memory://, 0 tasks>"
    assert App(app.store).store is app.store
    for store in ("nowhere://", "jobs.db", "sqlite:///jobs.db?mode=ro", 5):
        with pytest.raises(OptionError, match=r"sqlite:///jobs\.db"):
            App(store)  # type: ignore[arg-type]


def test_a_handle_is_found_by_its_id(app, resize):
    handle = resize.enqueue("a", 1)
    assert app.handle(handle.id.upper()) == handle
    assert isinstance(app.handle(handle.id), JobHandle)
    with pytest.raises(OptionError, match="must be a UUID"):
        app.handle("5")


def test_pools_are_described_by_queue(app):
    app.pool("mail", workers=(1, 2))
    assert app.pools["mail"][:4] == ("mail", ("mail",), 1, 2)
    with pytest.raises(OptionError):
        app.pool("No")


def timeout_of(jobs: Testing, handle: JobHandle[Any]) -> float | None:
    (job,) = [job for job in jobs._all() if job.id == handle.id]
    return job.options.timeout


def test_the_timeout_of_a_pool_is_that_of_tasks_without_one(app):
    """`using`, else the task, else the pool of the queue that the job goes to, else an hour."""
    before = app.task(queue="images", name="before")(lambda: None)
    app.pool("pictures", queues=["images", "films"], timeout="30s")
    after = app.task(queue="films", name="after")(lambda: None)
    own = app.task(queue="images", name="own", timeout="2m")(lambda: None)
    endless = app.task(queue="images", name="endless", timeout=None)(lambda: None)
    plain = app.task(name="plain")(lambda: None)
    tick = app.recurring(every="1m", queue="films", name="tick")(lambda: None)
    listens = app.recurring(mode="continuous", queue="films", name="listens")(lambda: None)
    with app.testing() as jobs:
        assert [timeout_of(jobs, task.enqueue()) for task in (before, after, tick)] == [30.0] * 3
        assert [timeout_of(jobs, task.enqueue()) for task in (own, endless, plain)] == [120.0, None, 3600.0]
        assert timeout_of(jobs, listens.enqueue()) is None, "it runs for ever"
        assert timeout_of(jobs, plain.using(queue="films").enqueue()) == 30.0
        assert timeout_of(jobs, before.using(queue="default").enqueue()) == 3600.0
        assert timeout_of(jobs, before.using(timeout=5, delay=1).enqueue()) == 5.0
        assert timeout_of(jobs, before.using(timeout=None).enqueue()) is None
        assert timeout_of(jobs, before.enqueue_many([()])[0]) == 30.0
        jobs.advance("1m")
        jobs.run_due()
        assert {job.job.options.timeout for job in jobs.enqueued(tick)} == {30.0}
    assert (before.timeout, own.timeout, plain.timeout) == (30.0, 120.0, 3600.0)


def test_a_pool_that_is_described_anew_gives_its_new_timeout_from_then_on(app):
    task = app.task(queue="images", name="task")(lambda: None)
    app.pool("images", timeout=30)
    with app.testing() as jobs:
        first = task.enqueue()
        app.pool("images", workers=2)
        assert timeout_of(jobs, task.enqueue()) == 3600.0
        assert timeout_of(jobs, first) == 30.0


@pytest.mark.parametrize("nonsense", [0, -1, "soon", True, [30], "101y", float("nan"), None])
def test_nonsense_is_no_timeout_of_a_pool(app, nonsense):
    with pytest.raises(OptionError, match="timeout"):
        app.pool("images", timeout=nonsense)
    assert "images" not in app.pools


def test_the_timeout_of_a_pool_travels_with_an_app_that_no_module_holds(tmp_path, monkeypatch):
    """A job that enqueues another, from a notebook."""
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("images", timeout="30s", policy=Fixed(2))
    made = pickle.dumps(app)
    monkeypatch.setattr(pickling, "_rebuilt", {})  # as in another process
    there = pickle.loads(made)
    assert there is not app
    assert there.task(queue="images", name="there")(lambda: None).timeout == 30.0


def test_outside_a_job_there_is_no_current_one():
    with pytest.raises(LookupError, match="inside a task"):
        current_job()


def test_an_app_without_a_store_takes_the_one_of_the_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert App().store.url == "sqlite:///millpond.db"
    monkeypatch.setenv("MILLPOND_STORE", "memory://")
    assert App().store.url == "memory://"
    assert App("sqlite:///mine.db").store.url == "sqlite:///mine.db"


def test_a_job_cannot_depend_on_itself(resize):
    own = "01890000-0000-7000-8000-000000000001"
    with pytest.raises(OptionError, match="itself"):
        resize.using(id=own, depends_on=[own]).enqueue("a", 1)


def test_an_alias_finds_its_task_and_belongs_to_one_task_only():
    app = App("memory://")
    resize = app.task(name="resize", aliases=["shrink"])(lambda: None)
    assert app.get_task("shrink") is resize
    assert app.knows("shrink")
    assert not app.knows("grow")
    with pytest.raises(OptionError, match=r"the alias 'shrink' of 'crop' belongs to 'resize' already"):
        app.task(name="crop", aliases=["shrink"])(lambda: 1)
    with pytest.raises(OptionError, match=r"the alias 'resize' of 'crop' belongs to 'resize' already"):
        app.task(name="crop", aliases=["resize"])(lambda: 1)
    with pytest.raises(OptionError, match=r"'shrink' is a task and an alias of 'resize'"):
        app.task(name="shrink")(lambda: 1)
    with pytest.raises(OptionError, match="is the name of the task itself"):
        app.task(name="crop", aliases=["crop"])(lambda: 1)
    with pytest.raises(OptionError, match="aliases must be a list of names"):
        app.task(name="crop", aliases="old")(lambda: 1)
    with pytest.raises(OptionError, match="upgrade must be a function of a dict"):
        app.task(name="crop", upgrade={})(lambda: 1)  # type: ignore[call-overload]

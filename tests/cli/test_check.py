"""`millpond check`: what is there, what is wrong, and what to do about it."""

from __future__ import annotations

import psycopg
import pytest

from millpond.cli import stored_jobs
from millpond.rules.store import dead_rows
from millpond.store.sqlite.store import SQLiteStore
from tests.cli.conftest import APP, URL, add_job, write_app
from tests.stores.acting import opened
from tests.stores.places import address_and_name, place


def finding(said, name):
    return next(found for found in said["findings"] if found["name"] == name)


def test_an_app_that_is_well(run, ask, app_name):
    said = ask("check", "--app", app_name)
    assert said["ok"] is True
    assert [task["name"] for task in said["tasks"]] == ["resize", "send"]
    assert said["queues"] == ["images", "mail"]
    assert said["pools"]["mail"]["kind"] == "async"
    assert said["pools"]["mail"]["queues"] == ["mail"]
    assert {found["name"] for found in said["findings"]} == {
        "app", "store", "schema", "durability", "SQLite", "clock", "nodes", "jobs"
    }  # fmt: skip
    assert "synchronous FULL" in finding(said, "durability")["text"]
    shown = run("check", "--app", app_name).stdout
    assert "all is well" in shown
    assert "WRONG" not in shown


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("async def", "def"), "task send is not async, but pool 'mail' is"),
        (('pool("mail", kind="async")', 'pool("nobody")'), "pool 'nobody' serves no task"),
        ((APP, "from millpond.app import App\napp = App('sqlite:///jobs.db')"), "has no tasks"),
        ((URL, "sqlite:////no/such/folder/jobs.db"), "does the folder exist?"),
        (("from millpond", "import sys; sys.exit(0)\nfrom millpond"), "SystemExit: 0"),
        (("from millpond", "raise OSError('no \\x1b[2Jluck')\nfrom millpond"), "OSError: no \\x1b[2Jluck"),
    ],
)
def test_what_is_wrong_is_said(run, ask, folder, change, complaint):
    name = write_app(folder, APP.replace(*change))
    result = run("check", "--app", name, code=1)
    assert complaint in result.stdout
    assert "put right what is WRONG" in result.stdout
    assert ask("check", "--app", name, code=1)["ok"] is False


def test_without_an_app_the_store_is_checked_all_the_same(ask, store):
    said = ask("check", "--store", URL, code=1)
    assert "no app is named" in finding(said, "app")["text"]
    assert finding(said, "store")["ok"] is True


def test_without_anything_it_says_what_to_name(run):
    stdout = run("check", code=1).stdout
    assert "no app is named" in stdout
    assert "no store is named" in stdout


def test_a_clock_that_is_off_is_wrong(ask, app_name, monkeypatch):
    log = SQLiteStore.log

    def late(self, *args, **options):
        self.clock.shift = 60_000_000
        return log(self, *args, **options)

    monkeypatch.setattr(SQLiteStore, "log", late)
    assert "let NTP set both" in finding(ask("check", "--app", app_name, code=1), "clock")["text"]


def test_what_an_app_prints_does_not_disturb_the_answer(ask, folder):
    assert ask("check", "--app", write_app(folder, 'print("noise")\n' + APP))["ok"] is True


NEVER = """
@app.recurring(every="1m", name="other")
def other() -> None: ...

@app.recurring(every="1m", name="mine", depends_on=["other"], on_missing="skip")
def mine() -> None: ...

app.pool("default", timeout="30s")
"""


def test_a_recurring_task_that_never_runs_is_wrong_and_the_timeout_of_a_pool_is_shown(ask, folder):
    said = ask("check", "--app", write_app(folder, APP + NEVER), code=1)
    (text,) = [found["text"] for found in said["findings"] if not found["ok"]]
    assert text.startswith("'mine' never runs")
    assert said["pools"]["default"]["timeout"] == 30.0


# --- what is stored ----------------------------------------------------------------------------------------
def test_waiting_jobs_of_a_task_that_the_code_does_not_know_are_wrong(run, ask, app_name, store):
    for _ in range(3):
        add_job(store, task="shrink", queue="images")
    add_job(store, queue="images", delay=3600)
    said = ask("check", "--app", app_name, code=1)
    (text,) = [found["text"] for found in said["findings"] if not found["ok"]]
    assert text.startswith("3 waiting jobs are of task 'shrink', which the code does not know")
    assert "aliases=['shrink']" in text
    assert "millpond jobs cancel --task shrink" in text
    assert "WRONG" in run("check", "--app", app_name, code=1).stdout


def test_of_very_many_it_says_how_many_it_looked_at(ask, app_name, store, monkeypatch):
    monkeypatch.setattr(stored_jobs, "MOST", 2)
    for _ in range(3):
        add_job(store, queue="images")
    text = finding(ask("check", "--app", app_name), "jobs")["text"]
    assert text == "the newest 2 of 3 waiting jobs looked at: the code can run them"


def test_an_alias_makes_it_well(ask, folder, store):
    add_job(store, task="shrink", queue="images")
    name = write_app(folder, APP.replace('name="resize"', 'name="resize", aliases=["shrink"]'))
    assert ask("check", "--app", name)["ok"] is True


def test_waiting_jobs_in_a_queue_that_no_pool_serves_are_wrong(ask, app_name, store):
    add_job(store, queue="oldqueue")
    text = finding(ask("check", "--app", app_name, code=1), "queue")["text"]
    assert text.startswith("1 job waits in queue 'oldqueue', which no pool of the app serves")
    assert "app.pool(..., queues=[..., 'oldqueue'])" in text


def test_waiting_jobs_whose_arguments_the_code_cannot_read_are_wrong(ask, folder, app_name, store):
    add_job(store, queue="images", payload=b'{"path":"a.png","size":3}')
    add_job(store, queue="images")
    (text,) = [
        found["text"] for found in ask("check", "--app", app_name, code=1)["findings"] if not found["ok"]
    ]
    assert text.startswith("1 of 2 waiting jobs of task 'resize' have arguments that the code cannot read")
    assert "have ['size']" in text
    assert "upgrade=" in text
    upgraded = APP.replace('name="resize"', 'name="resize", upgrade=lambda old: {"path": old["path"]}')
    assert ask("check", "--app", write_app(folder, upgraded))["ok"] is True


@pytest.mark.parametrize(("old", "is_well"), [(300.0, True), (0.0, False)])
def test_a_very_old_transaction_on_postgres_is_wrong(ask, tmp_path, monkeypatch, old, is_well):
    monkeypatch.setattr(dead_rows, "OLD", old)
    monkeypatch.setattr(dead_rows, "VERY_OLD", old)
    with place("postgres", tmp_path) as url, psycopg.connect(address_and_name(url)[0]) as session:
        opened(url).close()
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute("SELECT 1")
        said = ask("check", "--store", url, code=1)
        found = finding(said, "clean-up")
    assert found["ok"] is is_well
    assert is_well or "idle_in_transaction_session_timeout" in found["text"]

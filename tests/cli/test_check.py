"""`millpond check`: what is there, what is wrong, and what to do about it."""

from __future__ import annotations

import pytest

from millpond.store.sqlite import SQLiteStore
from tests.cli.conftest import APP, URL, write_app


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
        "app", "store", "schema", "durability", "SQLite", "clock", "nodes"
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


def test_without_an_app_the_store_is_checked_all_the_same(ask):
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

"""`millpond recurring` on an app with recurring tasks and no node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

APP = """
from millpond import App, Slot

app = App("sqlite:///jobs.db")


@app.recurring(every="20m", name="fetch")
def fetch() -> None: ...


@app.recurring(cron="0 */6 * * *", name="report", depends_on=["fetch"], blocks=["index", Slot("press", 2)])
def report() -> None: ...


@app.recurring(mode="triggered", name="index")
def index(payloads: list[int]) -> None: ...
"""


@pytest.fixture(autouse=True)
def shop(folder: Path) -> None:
    (folder / "shop_recurring.py").write_text(APP)


@pytest.fixture
def command(run):
    return lambda *words, **options: run("--app", "shop_recurring:app", "recurring", *words, **options)


def test_tasks_are_listed_with_why_they_wait(command):
    said = command().output
    assert "every 1200 s" in said
    assert "cron '0 */6 * * *'" in said
    assert "No node is running" in said
    assert "nobody plans them now" in said


def test_programs_get_documents(command):
    document = json.loads(command("list", "--json").output)
    assert [task["name"] for task in document["tasks"]] == ["fetch", "index", "report"]
    assert json.loads(command("show", "fetch", "--json").output)["next_due_at"].endswith("Z")


def test_a_trigger_that_may_not_overlap_ends_with_code_1(command):
    assert "triggered" in command("trigger", "index", "--payload", "5").output
    assert "may not overlap" in command("trigger", "index", code=1).output
    ticks = json.loads(command("history", "index", "--json").output)["ticks"]
    assert [tick["reason"] for tick in ticks] == ["overlap"]
    assert "the one before it had not ended" in command("history", "index").output


def test_a_page_says_what_a_task_waits_for_and_what_it_never_runs_beside(command):
    page = " ".join(command("show", "report").output.split())
    assert "depends on fetch (success_since) never beside index slots press (2 at a time)" in page
    assert "never beside report" in " ".join(command("show", "index").output.split())


def test_a_payload_must_be_json(command):
    assert "must be a JSON value" in command("trigger", "index", "--payload", "{", code=2).output


def test_a_task_is_disabled_and_enabled_by_hand(command):
    assert "disabled" in command("disable", "fetch").output
    page = command("show", "fetch").output
    assert "disabled by" in page
    assert "enable fetch" in page
    assert "enabled" in command("enable", "fetch").output


def test_the_calendar_has_a_row_for_each_task_that_is_due(command):
    said = command("calendar").output
    assert "fetch " in said
    assert "│ 72" in said
    assert "index" not in said
    document = json.loads(command("calendar", "--hours", "1", "--json").output)
    assert {task["name"]: task["fires"] for task in document["tasks"]}["fetch"] == 3


def test_an_unknown_name_is_one_line_with_a_hint(command):
    assert "did you mean 'fetch'" in command("show", "fetsh", code=2).output


def test_what_is_in_the_code_is_not_forgotten(command):
    assert "is in the code" in command("forget", "fetch", code=2).output


def test_check_finds_a_circle(run, folder):
    (folder / "circle.py").write_text(APP.replace('every="20m"', 'every="20m", depends_on=["report"]'))
    said = run("--app", "circle:app", "check", code=1).output
    assert "circle: 'fetch' -> 'report' -> 'fetch'" in said

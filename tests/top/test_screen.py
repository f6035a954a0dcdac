"""The screen on a real store, driven by keys: what it shows, and what it does after a yes."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from textual.binding import Binding

from millpond import App
from millpond.job import JobState
from millpond.tui.screen import HELP, Top
from millpond.tui.tables import TABS
from tests.cli.conftest import add_dead_job
from tests.docs.pages import ROOT, rows, section
from tests.servers.redis import Redis, program
from tests.top.driving import watching_of

HOSTILE = "\x1b]0;title\x07\x1b[2J\x1b[31mred\u202e\x9b31m\x7f\r\n\u2028[bold]b[/bold][link=x]漢字"


async def test_it_shows_the_queues_and_what_all_comes_to(app, screen):
    app.tasks["resize"].enqueue_many([(f"{n}.png",) for n in range(3)])
    app.store.configure(queue="mail", paused=True)
    async with screen(app) as driver:
        found = await driver.shows("images", "paused", "3 queued", "no node runs", "p Pause/resume")
    lines = found.splitlines()
    assert re.match(r"millpond top  \d\d:\d\d:\d\d UTC  sqlite:///", lines[0])
    assert lines[4].split() == [
        "queue▲", "queued", "running", "/min", "p95/max", "oldest", "workers", "dead", "state",
    ]  # fmt: skip
    assert "p Pause/resume" in lines[-1], found
    assert max(map(len, lines)) <= 80


async def test_every_table_opens_by_its_number_and_has_words_for_nothing(app, screen):
    async with screen(app) as driver:
        await driver.shows("queued")
        for number, tab in enumerate(TABS, 1):
            await driver.press(str(number))
            assert driver.top.listing.tab is tab
            await driver.shows(tab.columns[0].title, "tick" if tab.name == "recurring" else tab.empty[:60])
        await driver.press("tab")
        assert driver.top.listing.tab is TABS[0]
        await driver.press("shift+tab")
        assert driver.top.listing.tab is TABS[-1]


async def test_rows_are_sorted_by_any_column_either_way(app, screen):
    app.tasks["resize"].enqueue_many([("a.png",)] * 3)
    app.tasks["send"].enqueue_many([(1,)] * 5)
    async with screen(app) as driver:
        await driver.shows("images", "mail")
        assert driver.column("queue") == ["images", "mail"]
        await driver.press("i")
        assert driver.column("queue") == ["mail", "images"]
        await driver.press(">")
        assert driver.column("queued") == ["5", "3"]
        assert "queued▼" in driver.text()
        await driver.press("i")
        assert driver.column("queued") == ["3", "5"]
        await driver.press("<")
        assert driver.column("queue") == ["images", "mail"]


async def test_a_filter_leaves_what_was_asked_for(app, screen):
    app.tasks["resize"].enqueue("a.png")
    app.tasks["send"].enqueue(1)
    async with screen(app) as driver:
        await driver.shows("images", "mail")
        await driver.press("/", "M", "a", "i", "l", "enter")
        assert driver.column("queue") == ["mail"]
        await driver.press("/", "x")
        await driver.shows("No row has this text.")
        await driver.press("escape")
        assert driver.column("queue") == ["images", "mail"]


async def test_the_cursor_stays_on_its_row_while_rows_come(app, screen):
    app.tasks["resize"].enqueue("a.png")
    app.tasks["send"].enqueue(1)
    async with screen(app) as driver:
        await driver.shows("images", "mail")
        await driver.press("down")
        app.tasks["send"].using(queue="archive").enqueue(1)
        await driver.shows("archive")
        table = driver.top.query_one("DataTable")
        assert driver.top.listing.row(table).item["queue"] == "mail"


async def test_a_queue_is_paused_and_resumed_after_a_yes(app, screen):
    app.tasks["resize"].enqueue("a.png")
    is_paused = lambda: app.store.counts().queues[0].paused
    async with screen(app) as driver:
        await driver.shows("images")
        await driver.press("p")
        await driver.shows("Pause queue images?")
        await driver.press("enter", "p", "x", "n")
        assert not is_paused()
        await driver.press("p", "y")
        await driver.until(is_paused)
        await driver.shows("paused")
        await driver.until(lambda: "paused" in driver.column("state"))
        await driver.press("p")
        await driver.shows("Resume queue images?")
        await driver.press("y")
        await driver.until(lambda: not is_paused())
        lines = lambda: [json.loads(entry.data) for entry in app.store.log("audit")]
        await driver.until(lambda: len(lines()) == 2)
        assert [(line["how"], line["action"], line["target"]) for line in lines()] == [
            ("top", "queue.pause", "images"),
            ("top", "queue.resume", "images"),
        ]


async def test_dead_jobs_are_run_again_by_task_and_by_queue(app, screen):
    for task in ("resize", "resize", "convert"):
        add_dead_job(app.store, task=task, queue="images")
    dead = lambda: app.store.counts().queues[0].states.get(JobState.DEAD, 0)
    async with screen(app) as driver:
        await driver.shows("images")
        await driver.press("5")
        await driver.shows("resize", "convert", "no such file")
        assert driver.column("jobs") == ["2", "1"]
        await driver.press("r")
        await driver.shows("of task resize in queue images")
        await driver.press("y")
        await driver.shows("2 jobs of task resize")
        assert dead() == 1
        await driver.press("1", "r")
        await driver.shows("dead jobs of queue images again")
        await driver.press("y")
        await driver.until(lambda: dead() == 0)


async def test_of_very_many_rows_a_filter_finds_any(app, screen):
    for number in range(600):
        app.store.configure(queue=f"queue-{number:03}", paused=True)
    async with screen(app) as driver:
        await driver.shows("queue-000")
        assert len(driver.top.listing.rows) == 500
        await driver.press("/", *"599", "enter")
        assert driver.column("queue") == ["queue-599"]


async def test_a_recurring_task_is_triggered_and_turned_off_and_on(app, screen):
    is_on = lambda: app.orchestrator.status_of("tick").enabled
    async with screen(app) as driver:
        await driver.shows("all is well")
        await driver.press("6")
        await driver.shows("tick", "every 3600 s")
        await driver.press("t", "y")
        await driver.shows("tick was triggered")
        await driver.press("e", "y")
        await driver.until(lambda: not is_on())
        await driver.until(lambda: driver.column("state") == ["disabled"])
        await driver.press("e", "y")
        await driver.until(is_on)


async def test_what_cannot_be_done_here_is_neither_offered_nor_done(app, screen):
    app.tasks["resize"].enqueue("a.png")
    async with screen(app) as driver:
        await driver.shows("images", "Replay")
        assert "Drain" not in driver.lines()[-1]
        await driver.press("d", "c", "t", "e")
        assert len(driver.top.screen_stack) == 1
        await driver.press("8", "p", "r")
        assert len(driver.top.screen_stack) == 1


async def test_what_fails_is_told_and_the_screen_goes_on(app, screen):
    async with screen(app) as driver:
        await driver.shows("all is well")

        def fail() -> str:
            raise ValueError("no \x1b[31m[bold]")

        assert driver.top._watching.do(fail)
        await driver.shows(r"no \x1b[31m[bold]")
        await driver.press("3")
        await driver.shows("No node runs")


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (200, 60)])
async def test_job_data_is_shown_as_text_in_any_size(app, screen, size):
    add_dead_job(app.store, HOSTILE, task="resize", queue="images")
    add_dead_job(app.store, "x" * 100_000, task="long" * 40, queue="images")
    app.tasks["send"].enqueue(1)
    async with screen(app, size=size) as driver:
        await driver.shows("images")
        for number in range(1, len(TABS) + 1):
            await driver.press(str(number))
            _is_plain(driver)
        await driver.press("5", "enter")
        await driver.until(lambda: len(driver.top.screen_stack) == 2)
        _is_plain(driver)
        await driver.press("escape", "/", "r", "e", "d", "enter", "r")
        _is_plain(driver)
        if size[0] == 200:
            await driver.press("n", "enter")
            await driver.shows(r"\x1b]0;title\x07", "[bold]b[/bold][link=x]漢字")


def _is_plain(driver) -> None:
    assert all(character.isprintable() for line in driver.lines() for character in line)


async def test_a_store_that_was_never_there_is_told_and_asked_again(tmp_path, screen):
    app = App("redis://127.0.0.1:1/0")
    async with screen(app) as driver:
        await driver.shows("store away since")
        await driver.press("2", "p", "r", "?")
        await driver.shows("another table")
    app.store.close()


async def test_a_store_that_hangs_and_comes_back_never_stops_the_screen(screen):
    server = Redis(program("redis-server", "valkey-server"))
    app, process = App(server.url), server.server.process
    assert process is not None
    pid = process.pid
    try:
        app.task(name="wait")(lambda: None).enqueue()
        async with screen(app, watching=watching_of(app, slow=0.2)) as driver:
            await driver.shows("default", "1 queued")
            os.kill(pid, signal.SIGSTOP)
            await driver.shows("store away since", "default")  # what was last seen stays
            await driver.press("2", "1", "i")
            await driver.shows("1 queued")
            os.kill(pid, signal.SIGCONT)
            await driver.until(lambda: "away" not in driver.text(), "the store to be back")
    finally:
        app.store.close()
        server.server.remove()


def test_the_guide_and_the_help_have_every_key():
    guide = section(ROOT / "docs" / "howto" / "watch-in-a-terminal.md", "## Keys")
    for binding in Top.BINDINGS:
        assert isinstance(binding, Binding)
        key = binding.key_display or binding.key
        if not key.isdigit() and key not in ("tab", "shift+tab", "escape"):
            assert f"`{key[0]}`" in guide, key
            assert key == "?" or re.search(rf"(^|\W){re.escape(key[0])}\s", HELP, re.MULTILINE), key


def test_the_guide_names_every_table_in_order():
    guide = section(ROOT / "docs" / "howto" / "watch-in-a-terminal.md", "## Tables")
    named = [row[0] for row in rows(guide)]
    assert named == [f"{number} {tab.title}" for number, tab in enumerate(TABS, 1)]

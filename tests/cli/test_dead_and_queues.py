"""`millpond dead`, `queues`, `prune`, `migrate`: what changes many jobs asks first, and says what it did."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from millpond.cli import main
from millpond.cli.commands.queues import _rate
from millpond.errors import OptionError
from tests.cli.conftest import URL, add_dead_job, add_job
from tests.cli.test_pools import POOL

UNKNOWN = "01890000-0000-7000-8000-000000000000"


def states(store, *ids):
    return [None if job is None else job.state.value for job in store.get(ids)]


# --- dead --------------------------------------------------------------------------------------------------
def test_dead_lists_dead_jobs_with_their_errors(run, ask, store):
    job_id = add_dead_job(store, "no such file")
    living = add_job(store)
    assert [job["id"] for job in ask("dead", "--store", URL)["jobs"]] == [job_id]
    shown = run("dead", "list", "--store", URL).stdout
    assert job_id in shown
    assert "ValueError: no such file" in shown
    assert living not in shown
    assert "Traceback ..." in run("dead", "show", job_id, "--store", URL).stdout
    assert "is not dead but queued" in run("dead", "show", living, "--store", URL, code=1).stderr


def test_no_dead_jobs_is_an_answer(run, ask, store):
    assert run("dead", "--store", URL).stdout.strip() == "no dead jobs"
    assert ask("dead", "--store", URL) == {"jobs": [], "cursor": None}


def test_every_change_leaves_a_line_in_the_audit_log(run, store):
    one, two = (add_dead_job(store) for _ in range(2))
    job = add_job(store, queue="mail")
    run("dead", "replay", one, "--store", URL)
    run("dead", "discard", "--all", "--yes", "--store", URL)
    run("jobs", "cancel", "--queue", "mail", "--yes", "--store", URL)
    run("queues", "pause", "mail", "--store", URL)
    run("queues", "rate", "mail", "5/s", "--store", URL)
    run("pools", "set", "mail", "--workers", "1:2", "--new", "--store", URL)
    lines = [json.loads(entry.data) for entry in store.log("audit")]
    assert [(line["action"], line["target"]) for line in lines] == [
        ("dead.replay", one),
        ("dead.discard", "all"),
        ("job.cancel", "queue=mail"),
        ("queue.pause", "mail"),
        ("queue.rate", "mail"),
        ("pool.resize", "mail"),
    ]
    assert {(line["how"], line["status"]) for line in lines} == {("cli", 200)}
    assert all(line["who"] and line["from"] for line in lines)
    assert lines[1]["facts"] == {"changed": 1}
    assert [json.loads(entry.data)["kind"] for entry in store.log("events")] == ["Action"] * 6
    assert states(store, one, two, job) == ["queued", None, "cancelled"]


def test_replay_and_discard_by_id(ask, store):
    one, two, three = (add_dead_job(store) for _ in range(3))
    assert ask("dead", "replay", one, "--store", URL) == {"replayed": 1}
    assert ask("dead", "discard", two, "--store", URL) == {"discarded": 1}
    assert states(store, one, two, three) == ["queued", None, "dead"]


@pytest.mark.parametrize("verb", ["replay", "discard"])
def test_a_living_or_unknown_job_changes_nothing(run, store, verb):
    dead, living = add_dead_job(store), add_job(store)
    assert "is not dead but queued" in run("dead", verb, dead, living, "--store", URL, code=1).stderr
    assert "no job" in run("dead", verb, dead, UNKNOWN, "--store", URL, code=1).stderr
    assert states(store, dead, living) == ["dead", "queued"]


@pytest.mark.parametrize(("verb", "end"), [("replay", "queued"), ("discard", None)])
def test_by_filter_only_the_dead_jobs_it_names_are_changed(run, store, verb, end):
    mail = add_dead_job(store, queue="mail")
    other = add_dead_job(store, queue="images")
    living = add_job(store, queue="mail", delay=60.0)
    run("dead", verb, "--queue", "mail", "--yes", "--store", URL)
    assert states(store, mail, other, living) == [end, "dead", "scheduled"]
    run("dead", verb, "--task", "no such task", "--yes", "--store", URL)
    assert states(store, other) == ["dead"]
    run("dead", verb, "--all", "--yes", "--store", URL)
    assert states(store, other, living) == [end, "scheduled"]


@pytest.mark.parametrize("verb", ["replay", "discard"])
def test_without_a_terminal_nothing_is_changed_unless_yes(run, store, verb):
    job_id = add_dead_job(store)
    assert "say --yes" in run("dead", verb, "--all", "--store", URL, code=2).stderr
    assert states(store, job_id) == ["dead"]


class Terminal:
    """A CliRunner whose input claims to be a terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def run(self, *args: str, typed: str):
        runner = CliRunner()
        with runner.isolation(input=typed) as (stdout, stderr, _):
            self._monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
            with pytest.raises(SystemExit) as caught:
                main(args)
            return caught.value.code, stdout.getvalue().decode(), stderr.getvalue().decode()


def test_on_a_terminal_the_answer_decides(store, monkeypatch):
    job_id = add_dead_job(store)
    terminal = Terminal(monkeypatch)
    code, stdout, stderr = terminal.run("dead", "replay", "--all", "--store", URL, typed="n\n")
    assert (code, stdout) == (1, "")
    assert f"replay 1 job of {URL}?" in stderr
    assert "nothing was changed" in stderr
    assert states(store, job_id) == ["dead"]
    code, stdout, _ = terminal.run("dead", "replay", "--all", "--store", URL, "--json", typed="y\n")
    assert (code, stdout.split()) == (0, ["{", '"replayed":', "1", "}"])
    assert states(store, job_id) == ["queued"]


# --- queues ------------------------------------------------------------------------------------------------
def test_queues_shows_numbers(run, ask, store):
    assert "no queues" in run("queues", "--store", URL).stdout
    add_job(store, queue="mail")
    add_dead_job(store)
    mail = next(queue for queue in ask("queues", "--store", URL)["queues"] if queue["queue"] == "mail")
    assert (mail["paused"], mail["rate"], mail["states"]["queued"], mail["states"]["dead"]) == (
        False,
        None,
        1,
        0,
    )
    assert mail["oldest"] >= 0
    assert "open" in run("queues", "list", "--store", URL).stdout


def test_pause_and_resume(run, ask, store):
    add_job(store, queue="mail")
    assert ask("queues", "pause", "mail", "--store", URL)["paused"] is True
    assert "paused" in run("queues", "--store", URL).stdout
    assert ask("queues", "rate", "mail", "30/m", "--store", URL)["paused"] is True
    said = ask("queues", "resume", "mail", "--store", URL)
    assert (said["paused"], said["rate"]) == (False, 0.5)
    assert ask("queues", "rate", "mail", "off", "--store", URL)["rate"] is None


def test_a_queue_that_is_not_there_is_refused_unless_it_is_meant(run, ask, store):
    add_job(store, queue="mail")
    for said in (("pause",), ("resume",)):
        assert "did you mean 'mail'?" in run("queues", *said, "mial", "--store", URL, code=1).stderr
    assert "did you mean 'mail'?" in run("queues", "rate", "mial", "5/s", "--store", URL, code=1).stderr
    assert [line.queue for line in store.counts().queues] == ["mail"], "a typing error makes no queue"
    store.renew("web-1-ab", "web", json.dumps({"pools": [POOL]}).encode(), lease=60.0)
    assert ask("queues", "pause", "thumbs", "--store", URL)["paused"] is True, "a node serves it"
    assert ask("queues", "pause", "later", "--new", "--store", URL)["paused"] is True
    assert "queue must be" in run("queues", "pause", "No Such", "--store", URL, code=2).stderr


@pytest.mark.parametrize(
    ("text", "rate"),
    [("100/s", 100), ("0.5/s", 0.5), ("30/m", 0.5), ("36/h", 0.01), ("86400/d", 1), ("off", 0)],
)
def test_rates(text, rate):
    assert _rate(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["100", "0/s", "-1/s", "1/week", "s", "", "1e3/s", "nan/s", "٣/s"])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(OptionError, match="100/s"):
        _rate(text)


# --- prune and migrate -------------------------------------------------------------------------------------
def test_prune_keeps_what_the_settings_say(ask, store, monkeypatch):
    dead, living = add_dead_job(store), add_job(store)
    assert ask("prune", "--store", URL) == {"pruned": 0}
    monkeypatch.setenv("MILLPOND_RETENTION_DEAD", "0s")
    assert ask("prune", "--store", URL, "--retention-dead", "1d") == {"pruned": 0}
    assert ask("prune", "--store", URL) == {"pruned": 1}
    assert states(store, dead, living) == [None, "queued"]


def test_prune_refuses_what_is_no_duration(run):
    stderr = run("prune", "--store", URL, "--retention-dead", "soon", code=2).stderr
    assert "--retention-dead must be a duration" in stderr


def test_migrate_may_run_again(run, ask):
    assert "created the tables" in run("migrate", "--store", URL).stdout
    assert "up to date" in run("migrate", "--store", URL).stdout
    assert ask("migrate", "--store", URL) == {"store": URL, "done": []}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("100/s", "100/s"),
        ("1.5/s", "1.5/s"),
        ("0.5/s", "30/m"),
        ("30/m", "30/m"),
        ("100/h", "100/h"),
        ("1000/h", "1000/h"),
        ("5/d", "5/d"),
        ("0.001/d", "0.001/d"),
    ],
)
def test_a_rate_is_shown_as_people_say_it(run, store, said, shown):
    assert (
        run("queues", "rate", "mail", said, "--new", "--store", URL).stdout
        == f"queue mail: open, at most {shown}\n"
    )
    assert f" {shown} " in run("queues", "--store", URL).stdout

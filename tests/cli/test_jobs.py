"""`millpond enqueue` and `millpond jobs`: jobs in, jobs looked at, jobs ended; and what wrong input gets."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from millpond import redaction
from millpond.cli import main
from millpond.errors import OutcomeUnknown, StoreBusy, StoreUnavailable
from millpond.job import JobState, Slot
from millpond.store.sqlite.store import SQLiteStore
from tests.cli.conftest import URL, add_dead_job, add_job

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
UNKNOWN = "01890000-0000-7000-8000-000000000000"


# --- enqueue -----------------------------------------------------------------------------------------------
def test_enqueue_stores_a_job(ask, app_name, store):
    said = ask("--app", app_name, "enqueue", "resize", '"a.png"', "200")
    assert (said["created"], said["task"]) == (True, "resize")
    (job,) = store.get([said["id"]])
    assert (job.payload, job.queue, job.state) == (b'{"path":"a.png","width":200}', "images", JobState.QUEUED)


def test_enqueue_takes_its_options(ask, app_name, store):
    options = ["--queue", "slow", "--priority", "high", "--delay", "1h", "--unique", "a", "--id", UNKNOWN]
    ask("--app", app_name, "enqueue", "resize", "--kwargs", '{"path": "a"}', *options)
    (job,) = store.get([UNKNOWN])
    assert (job.queue, job.priority, job.state, job.unique) == ("slow", 2, JobState.SCHEDULED, "a")


def test_a_second_job_with_the_same_key_is_not_made(run, ask, app_name):
    first = ask("--app", app_name, "enqueue", "resize", '"a"', "--unique", "k")
    assert ask("--app", app_name, "enqueue", "resize", '"a"', "--unique", "k") == {**first, "created": False}
    assert "there already" in run("--app", app_name, "enqueue", "resize", '"a"', "--unique", "k").stdout


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["resiz", "1"], "no task is called 'resiz', did you mean 'resize'?"),
        (["resize", "a.png"], "argument 1 is not JSON"),
        (["resize", "--kwargs", "{"], "--kwargs is not JSON"),
        (["resize", '"a"', "-1"], "put -- before numbers below zero"),
        (["resize", "--kwargs", "[1]"], "--kwargs must be a JSON object"),
        (["resize", "1"], "path"),
        (["resize"], "path"),
        (["resize", '"a"', "NaN"], "width"),
        (["resize", "[" * 100_000], "argument 1 is nested too deep"),
        (["resize", '"a"', "1" * 5000], "argument 2 has an int beyond 64 bits"),
        (["resize", '"a"', "--queue", "No Such"], "queue must be"),
        (["resize", '"a"', "--priority", "urgent"], "priority must be"),
        (["resize", '"a"', "--priority", "10"], "priority must be"),
        (["resize", '"a"', "--delay", "soon"], "delay must be"),
        (["resize", '"a"', "--delay=-1s"], "delay must be"),
        (["resize", '"a"', "--id", "7"], "must be a UUID"),
        (["resize", '"a"', "--bogus", "7"], "No such option"),
    ],
)
def test_wrong_input_is_refused_in_one_line(run, app_name, args, complaint):
    result = run("--app", app_name, "enqueue", *args, code=2)
    assert complaint in result.stderr
    assert result.stdout == ""
    assert len(result.stderr) < 500


def test_enqueue_needs_an_app(run):
    assert "no app is named: give --app" in run("enqueue", "resize", "1", "--store", URL, code=2).stderr


@pytest.mark.parametrize(
    ("app", "complaint"),
    [
        ("no_such_module:app", "cannot import the app"),
        ("json:no_such", "cannot import"),
        ("json:dumps", "App"),
    ],
)
def test_an_app_that_is_none_is_named_with_its_source(run, app, complaint):
    stderr = run("enqueue", "resize", "--app", app, code=1).stderr
    assert complaint in stderr
    assert "(from --app)" in stderr


def test_the_store_of_the_app_cannot_be_overruled_in_silence(run, app_name):
    args = ["--app", app_name, "--store", "sqlite:///other.db", "enqueue", "resize", '"a"']
    assert "is not the store of" in run(*args, code=2).stderr
    run("--app", app_name, "--store", URL, "enqueue", "resize", '"a"')


def test_nothing_is_enqueued_into_the_memory_of_a_command(run, folder, app_name):
    module = folder / f"{app_name.partition(':')[0]}.py"
    module.write_text(module.read_text().replace(URL, "memory://"))
    assert "name a store that lasts" in run("--app", app_name, "enqueue", "resize", '"a"', code=1).stderr


def test_an_unknown_outcome_says_how_to_repeat(run, app_name, monkeypatch):
    def lose(*_: object) -> None:
        raise OutcomeUnknown("the connection broke")

    monkeypatch.setattr(SQLiteStore, "enqueue", lose)
    stderr = run("--app", app_name, "enqueue", "resize", '"a"', code=75).stderr
    assert re.search("the connection broke; with --id [0-9a-f-]{36} it can be repeated", stderr)


# --- list --------------------------------------------------------------------------------------------------
def test_list_filters(ask, store):
    first = add_job(store)
    second = add_job(store, queue="mail", task="send")
    third = add_job(store, delay=60.0)

    def ids(*args: str) -> list[str]:
        return [job["id"] for job in ask("jobs", "list", "--store", URL, *args)["jobs"]]

    assert ids() == [third, second, first]
    assert ids("--queue", "mail") == ids("--task", "send") == [second]
    assert ids("--state", "scheduled") == [third]
    assert ids("--state", "scheduled", "--state", "queued", "--queue", "default") == [third, first]
    assert ids("--state", "dead") == []


def test_list_goes_on_where_a_page_ended(ask, run, store):
    jobs = {add_job(store) for _ in range(5)}
    found: set[str] = set()
    cursor: list[str] = []
    while True:
        said = ask("jobs", "--store", URL, "--limit", "2", *cursor)
        found |= {job["id"] for job in said["jobs"]}
        if said["cursor"] is None:
            break
        cursor = ["--cursor", said["cursor"]]
    assert found == jobs
    assert "more: --cursor" in run("jobs", "--store", URL, "--limit", "2").stdout


def test_instants_are_text_and_stored_json_is_a_value(ask, store):
    job_id = add_dead_job(store)
    said = ask("jobs", "show", job_id, "--store", URL)
    assert said["payload"] == {"path": "a.png"}
    assert (said["state"], said["result"], said["expires_at"]) == ("dead", None, None)
    (attempt,) = said["attempts"]
    for value in (said["created_at"], said["run_at"], said["finished_at"], attempt["ended_at"]):
        assert ISO.fullmatch(value)
    assert (attempt["error"], attempt["message"]) == ("ValueError", "no such file")
    assert "replay it" in said["why"]
    assert said["options"]["max_attempts"] == 5


@pytest.mark.parametrize(
    "args", [["--limit", "0"], ["--limit", "x"], ["--state", "lost"], ["--queue", "A b"], ["--cursor", "x"]]
)
def test_wrong_filters_are_refused(run, args, store):
    run("jobs", "--store", URL, *args, code=2)


# --- show and why ------------------------------------------------------------------------------------------
def test_show_and_why_explain(run, ask, store):
    job_id = add_job(store)
    assert "No node is running" in run("jobs", "why", job_id, "--store", URL).stdout
    shown = run("jobs", "show", job_id, "--store", URL).stdout
    assert job_id in shown
    assert '{"path":"a.png"}' in shown
    assert ask("jobs", "why", job_id, "--store", URL)["state"] == "queued"


@pytest.mark.parametrize("verb", ["show", "why", "cancel"])
def test_an_unknown_job_is_named(run, verb, store):
    assert f"no job {UNKNOWN} is in {URL}" in run("jobs", verb, UNKNOWN, "--store", URL, code=1).stderr
    assert "must be a UUID" in run("jobs", verb, "x", "--store", URL, code=2).stderr


# --- cancel ------------------------------------------------------------------------------------------------
def test_cancel_ends_jobs_by_id(ask, run, store):
    one, two, other = add_job(store), add_job(store), add_job(store)
    assert ask("jobs", "cancel", one, two, "--store", URL) == {"cancelled": 2, "ended_already": 0}
    assert [job.state for job in store.get([one, two, other])] == ["cancelled", "cancelled", "queued"]
    assert "1 had ended already" in run("jobs", "cancel", one, other, "--store", URL, code=1).stdout


def test_cancel_changes_nothing_if_one_id_is_unknown(run, store):
    job_id = add_job(store)
    run("jobs", "cancel", job_id, UNKNOWN, "--store", URL, code=1)
    assert store.get([job_id])[0].state == "queued"


def test_cancel_by_filter_asks_first(run, store):
    job_id, other = add_job(store, queue="mail"), add_job(store)
    stderr = run("jobs", "cancel", "--queue", "mail", "--store", URL, code=2).stderr
    assert "this would cancel 1 job: say --yes" in stderr
    run("jobs", "cancel", "--queue", "mail", "--yes", "--store", URL)
    assert [job.state for job in store.get([job_id, other])] == ["cancelled", "queued"]


@pytest.mark.parametrize(
    "args", [[], [UNKNOWN, "--all"], ["--all", "--queue", "mail"], [UNKNOWN, "--task", "t"]]
)
def test_what_is_meant_must_be_said_once(run, store, args):
    job_id = add_job(store)
    assert "say which jobs" in run("jobs", "cancel", *args, "--yes", "--store", URL, code=2).stderr
    assert store.get([job_id])[0].state == "queued"


# --- hostile data ------------------------------------------------------------------------------------------
HOSTILE = "\x1b[2J[red]x[/red] \u202eevil\x07\x9b\r\n| fake"


def test_job_data_cannot_steer_a_terminal(run, ask, store):
    payload = '{"path":"[bold]\x9b\u202e[/nope]"}'.encode()
    job_id = add_dead_job(store, HOSTILE, payload=payload, task=HOSTILE.replace("\n", ""))
    for args in (["jobs"], ["jobs", "show", job_id], ["dead"], ["dead", "show", job_id]):
        shown = run(*args, "--store", URL).stdout
        assert not set(shown) & set("\x1b\x07\x9b\r\u202e")
        assert "[red]" in shown
        assert "\\x1b[2J" in shown
        said = run(*args, "--store", URL, "--json").stdout
        assert said.isascii()
        assert all(character.isprintable() or character == "\n" for character in said)
    assert ask("jobs", "show", job_id, "--store", URL)["attempts"][0]["message"] == HOSTILE


def test_stored_text_that_is_no_json_is_shown_as_text(ask, run, store):
    broken = add_job(store, payload=b"\xff{nope")
    endless = add_job(store, payload=b'{"a":1e999}')
    assert ask("jobs", "show", broken, "--store", URL)["payload"] == "\\xff{nope"
    assert ask("jobs", "show", endless, "--store", URL)["payload"] == {"a": "1e999"}
    assert "nope" in run("jobs", "--store", URL).stdout


def test_a_long_value_is_cut_in_a_list_and_an_id_never(run, store):
    job_id = add_job(store, payload=b'"' + b"x" * 10_000 + b'"')
    shown = run("jobs", "--store", URL).stdout
    assert job_id in shown
    assert "x" * 61 not in shown


# --- stores that cannot be used ----------------------------------------------------------------------------
def test_a_command_needs_a_store(run):
    assert "no store is named: give --store" in run("jobs", code=2).stderr


def test_a_store_that_cannot_be_reached_is_code_69(run):
    stderr = run("jobs", "--store", "sqlite:////no/such/folder/jobs.db", code=69).stderr
    assert "does the folder exist?" in stderr


@pytest.mark.parametrize(("error", "code"), [(StoreBusy, 75), (StoreUnavailable, 69)])
def test_whether_a_store_is_busy_or_away_is_told_by_the_code(run, monkeypatch, error, code, store):
    def refuse(*_: object) -> None:
        raise error("sqlite:///jobs.db is away")

    monkeypatch.setattr(SQLiteStore, "search", refuse)
    assert "is away" in run("jobs", "--store", URL, code=code).stderr


def test_an_outdated_schema_says_what_to_run(run, store):
    outdate(store)
    assert "millpond migrate" in run("jobs", "--store", URL, code=1).stderr
    assert "millpond migrate" in run("check", "--store", URL, code=1).stdout


def outdate(store):
    store.migrate()
    import apsw

    connection = apsw.Connection("jobs.db")
    connection.execute("UPDATE millpond_meta SET version = 0")
    connection.close()


def test_an_unexpected_error_is_one_line_and_debug_shows_the_traceback(run, monkeypatch, store):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("\x1b[2Joops")

    monkeypatch.setattr(SQLiteStore, "search", fail)
    stderr = run("jobs", "--store", URL, code=1).stderr
    assert stderr == "millpond: error: ZeroDivisionError: \\x1b[2Joops (unexpected; --debug shows where)\n"
    result = CliRunner().invoke(main, ["--debug", "jobs", "--store", URL])
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr
    assert "\x1b" not in result.stderr


def test_an_interrupt_is_code_130(run, monkeypatch, store):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SQLiteStore, "search", interrupt)
    assert run("jobs", "--store", URL, code=130).stderr == "\nmillpond: stopped\n"


@pytest.mark.parametrize(
    "args", [["jobs"], ["jobs", "cancel", "--yes"], ["dead"], ["dead", "discard", "--yes"]]
)
def test_a_task_that_no_store_could_hold_is_wrong_usage(run, args, store):
    assert "--task must be text" in run(*args, "--task", "\udcff", "--store", URL, code=2).stderr


# --- ids that were cut short, and stores that are not there -------------------------------------------------
def test_the_beginning_of_an_id_is_enough_while_it_names_one_job(run, ask, store):
    ids = [add_job(store, id=f"01900000-0000-7000-8{number}00-000000000000") for number in range(3)]
    assert ask("jobs", "show", "01900000-0000-7000-81", "--store", URL)["id"] == ids[1]
    assert ask("jobs", "show", "01900000000070008100", "--store", URL)["id"] == ids[1]
    assert (
        "several jobs begin with 01900000-0000"
        in run("jobs", "why", "01900000-0000", "--store", URL, code=1).stderr
    )
    assert "no job in" in run("jobs", "show", "01900000-0000-7000-9", "--store", URL, code=1).stderr
    assert "must be a UUID" in run("jobs", "show", "0190", "--store", URL, code=2).stderr
    assert ask("jobs", "cancel", "01900000-0000-7000-82", "--store", URL)["cancelled"] == 1
    assert [job.state.value for job in store.get(ids)] == ["queued", "queued", "cancelled"]


@pytest.mark.parametrize(
    "said",
    [
        ("jobs",), ("queues",), ("dead",), ("nodes",), ("pools",), ("prune",), ("check",), ("top", "--once"),
        ("jobs", "cancel", "--all", "--yes"), ("queues", "pause", "mail", "--new"),
    ],
)  # fmt: skip
def test_a_typing_error_in_the_name_of_a_file_makes_no_store(run, folder, said):
    output = run(*said, "--store", "sqlite:///jbos.db", code=1).output
    assert "there is no file" in output
    assert "jbos.db (from --store)" in " ".join(output.split())
    assert not (folder / "jbos.db").exists()


def test_a_store_that_only_its_own_process_sees_is_not_called_empty(run):
    assert "memory://" in run("jobs", "--store", "memory://", code=1).stderr


# --- secrets -----------------------------------------------------------------------------------------------
SECRETS = b'{"password":"hunter2-secret","user":"me"}'


def test_no_command_shows_a_secret_unless_it_is_asked_to(run, ask, store):
    slot = Slot("login/password=hunter2-secret", 1)
    job = add_dead_job(store, "no hunter2-secret for you", payload=SECRETS, slots=(slot,))
    for words in (["jobs", "list"], ["jobs", "show", job], ["dead", "list"], ["dead", "show", job]):
        for said in (run("--store", URL, *words), run("--store", URL, *words, "--json")):
            assert "hunter2" not in said.output, words
    assert ask("--store", URL, "jobs", "show", job)["payload"] == {"password": "***", "user": "me"}
    for group in ("jobs", "dead"):
        assert ask("--store", URL, group, "show", job, "--reveal")["payload"]["password"] == "hunter2-secret"
        assert "no hunter2-secret for you" in run("--store", URL, group, "show", job, "--reveal").stdout


def test_names_from_the_settings_are_hidden(run, ask, store, monkeypatch):
    monkeypatch.setattr(redaction, "_own", frozenset())
    monkeypatch.setenv("MILLPOND_REDACT", "diagnosis, home-phone")
    job = add_job(store, payload=b'{"diagnosis":"a cold","homePhone":"555"}')
    said = ask("--store", URL, "jobs", "show", job)
    redaction.names_a_secret.cache_clear()
    assert said["payload"] == {"diagnosis": "***", "homePhone": "***"}

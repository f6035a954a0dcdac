"""Logs: one line for each event, without secrets, that no job can forge and no reader can block."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from millpond.errors import OptionError
from millpond.node.observability import logs
from millpond.node.observability.events import (
    JobCompleted,
    JobDied,
    JobRetried,
    NodeEvents,
    NodeStarted,
    ScaledUp,
    StoreLost,
)
from millpond.node.observability.logs import (
    BackgroundHandler,
    JsonFormatter,
    TextFormatter,
    log_events,
    set_up,
    take_down,
)
from millpond.redaction import without_secrets
from millpond.shown_text import LONGEST, on_one_line, shown
from millpond.task_context import running
from tests.node_health.test_events import job

LIMIT = 10  # seconds for what takes milliseconds
DIED = JobDied("0192-a", "jobs.resize", "images", 5, 7, "error", "ValueError", "no such file")


@contextmanager
def logging_to(stream: io.StringIO, log_format: str = "json", level: int = logging.INFO) -> Iterator[None]:
    handler = set_up(log_format, level, stream)
    try:
        yield
    finally:
        take_down(handler, LIMIT)


def lines_of(*events, log_format: str = "json", level: int = logging.INFO) -> list[str]:
    stream, published = io.StringIO(), NodeEvents()
    with logging_to(stream, log_format, level):
        log_events(published, "host-1")
        for event in events:
            published.publish(event)
        assert published.close(LIMIT)
    return stream.getvalue().splitlines()


# --- events ----------------------------------------------------------------------------------------------
def test_an_event_is_one_line_of_json_with_job_attempt_and_worker():
    (line,) = lines_of(DIED)
    found = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("at"))
    assert found == {
        "level": "error", "logger": "millpond.node", "message": "jobs.resize is dead: error",
        "event": "JobDied", "node": "host-1", "job": "0192-a", "task": "jobs.resize", "queue": "images",
        "attempt": 5, "worker": 7, "reason": "error", "error": "ValueError", "error_message": "no such file",
    }  # fmt: skip


def test_an_event_is_one_line_of_text_for_people():
    (line,) = lines_of(DIED, log_format="text")
    assert "ERROR   jobs.resize is dead: error" in line
    assert "job=0192-a" in line
    assert "attempt=5 worker=7" in line


def test_completed_jobs_are_logged_when_asked_for_only():
    completed = JobCompleted("a", "jobs.send", "mail", 1, 7, 0.25, 1.5)
    assert lines_of(completed) == []
    (line,) = lines_of(completed, level=logging.DEBUG)
    assert json.loads(line)["wait"] == 0.25


def test_a_line_for_people_has_instants_as_times_and_says_nothing_twice():
    said = "images 1 -> 2: oldest wait 3.1 s of 10 s; capped by memory"
    retried = JobRetried("a", "jobs.send", "mail", 1, 7, "raised", None, None, 1_794_988_832_937_304)
    texts = lines_of(retried, ScaledUp("images", 1, 2, said), log_format="text")
    assert "retry_at=2026-11-18T" in texts[0]
    assert texts[1].count("oldest wait 3.1 s") == 1
    documents = [json.loads(line) for line in lines_of(retried, ScaledUp("images", 1, 2, said))]
    assert documents[0]["retry_at"] == 1_794_988_832_937_304, "programs get what the stores have"
    assert documents[1]["sentence"] == said


def test_a_list_is_written_as_one():
    started = NodeStarted("n", "memory://", "none", ("mail", "images"))
    assert json.loads(lines_of(started)[0])["pools"] == ["mail", "images"]
    assert "pools=mail,images" in lines_of(started, log_format="text")[0]


# --- records ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_traceback_stays_on_its_line(log_format):
    stream = io.StringIO()
    with logging_to(stream, log_format):
        try:
            raise ValueError("password=hunter2\nERROR forged")
        except ValueError:
            logging.getLogger("millpond.node").exception("it broke")
    (line,) = stream.getvalue().splitlines()
    assert "it broke" in line
    assert "test_logs.py" in line
    assert "hunter2" not in line


def test_what_a_task_logs_carries_its_job():
    stream = io.StringIO()
    with logging_to(stream), running(job(attempt=2), None):
        logging.getLogger("millpond.anything").info("halfway")
    found = json.loads(stream.getvalue())
    assert (found["job"], found["task"], found["attempt"]) == ("0192-a", "jobs.resize", 3)


def test_the_root_logger_is_left_alone():
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    with logging_to(io.StringIO()):
        assert (root.handlers, root.level) == before
    assert logging.getLogger("millpond").handlers == []
    assert logging.getLogger("millpond").propagate


def test_a_format_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match="json, text"):
        set_up("xml")


def test_no_fact_covers_what_a_line_says_of_itself():
    stream = io.StringIO()
    with logging_to(stream):
        facts = {"level": "debug", "at": "never", "message": "forged", "job": "a"}
        logging.getLogger("millpond").error("real", extra={"millpond_fields": facts})
    found = json.loads(stream.getvalue())
    assert (found["level"], found["message"], found["job"]) == ("error", "real", "a")


# --- hostile text ----------------------------------------------------------------------------------------
HOSTILE = [
    "a\nb", "a\r\nb", "\x1b[2J\x1b]0;title\x07", "\x9b31m", "a\u2028b\u2029c\x85d\x0b\x0c", "\u202egnp.exe",
    "\x00", "\x7f", "\ud800", "\u200b\ufeff",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_text_can_begin_a_line_or_move_a_cursor(text, log_format):
    stream_lines = lines_of(DIED._replace(message=text, task=text), log_format=log_format)
    assert len(stream_lines) == 1
    assert stream_lines[0].isprintable()


def test_a_value_cannot_pass_for_another_field():
    (line,) = lines_of(StoreLost('x" worker=1 y="'), log_format="text")
    assert r'cause="x\" worker=1 y=\""' in line


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://user:hunter2@db/jobs",
        "redis://:hunter2@cache:6379/0",
        "https://hunter2@git.example/x",
        "https://x.example/?api_key=hunter2&b=1",
        "connect(password='hunter2')",
        '{"password": "hunter2", "user": "x"}',
        '{\\"db_password\\": \\"hunter2\\"}',
        "PGPASSWORD=hunter2 psql",
        "Authorization: Bearer hunter2hunter2",
        "'Authorization': 'Basic aHVudGVyMg=='",
        "secret_key: hunter2",
        "ACCESS-KEY=hunter2",
        "Cookie: hunter2",
        "passwd=hunter2",
    ],
)
def test_secrets_are_hidden(text):
    hidden = without_secrets(text)
    assert "hunter2" not in hidden
    assert "aHVudGVyMg" not in hidden
    assert "***" in hidden


@pytest.mark.parametrize(
    "secret",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_0123456789abcdef0123456789abcdef",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_that_can_be_told_by_their_shape_are_hidden(secret):
    assert secret not in without_secrets(f"the server said {secret} is wrong")
    assert "MIIEow" not in without_secrets(secret)


@pytest.mark.parametrize(
    "text", ["no such file: a.png", "attempt 3 of 5", "https://example.com/a?b=c", "10:30"]
)
def test_other_text_is_left_as_it_is(text):
    assert shown(text) == text


def test_long_text_is_cut_and_never_takes_long():
    for piece in ("a", "://a:", "password", "-----BEGIN PRIVATE KEY-----", "bearer ", "\n"):
        text = shown(piece * 1_000_000)
        assert len(text) <= LONGEST + 1
    assert shown("x" * 5_000 + "end", keep="end").endswith("end")


def test_a_storm_of_long_messages_is_cut_short(monkeypatch):
    """Looking for secrets costs time for each character, in the process that hands out the jobs."""
    monkeypatch.setattr(logs, "monotonic", lambda: 5.0)  # all of it in one second
    lines = [json.loads(line) for line in lines_of(*[DIED._replace(message="-eyJ" * 2_000)] * 200)]
    lengths = [len(line["error_message"]) for line in lines]
    assert lengths[0] == LONGEST + 1
    assert lengths[-1] == logs.BRIEF + 1
    assert sum(lengths) < 2 * logs.AT_LENGTH
    monkeypatch.setattr(logs, "monotonic", lambda: 6.0)
    assert (
        len(json.loads(lines_of(DIED._replace(message="-eyJ" * 2_000))[0])["error_message"]) > logs.BRIEF + 1
    )


def test_a_secret_that_lies_on_the_cut_is_not_shown():
    for filler in range(LONGEST - 30, LONGEST + 30):
        assert "hunter" not in shown("x" * filler + " password=hunter2hunter2")
        assert "hunter" not in shown("password=hunter2hunter2 " + "x" * filler, keep="end")


def test_printable_text_is_not_copied():
    text = "plain"
    assert on_one_line(text) is text


# --- readers that do not read ----------------------------------------------------------------------------
def test_a_pipe_that_nobody_reads_does_not_block_the_node():
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "w")
    handler = BackgroundHandler(stream, most=10)
    handler.setFormatter(JsonFormatter())
    record = logging.LogRecord("millpond", logging.INFO, "", 0, "x" * 1_000, None, None)
    while handler.dropped < 100:  # the pipe takes 64 KiB, the queue 10 lines, and the rest is counted
        handler.handle(record)
    handler.close(timeout=0.01)
    with os.fdopen(reading, "rb") as reader:
        thread = threading.Thread(target=reader.read)
        thread.start()
        handler.close(LIMIT)
        stream.close()
        thread.join(LIMIT)


def test_lost_lines_are_told_in_the_format_of_the_log():
    for formatter in (JsonFormatter(), TextFormatter()):
        stream = io.StringIO()
        handler = BackgroundHandler(stream)
        handler.setFormatter(formatter)
        handler.dropped = 7
        handler.handle(logging.LogRecord("millpond", logging.INFO, "", 0, "next", None, None))
        handler.close(LIMIT)
        first, second = stream.getvalue().splitlines()
        assert "7 lines of the log were lost" in first
        assert "next" in second


def test_a_stream_that_is_closed_does_not_end_the_program():
    code = (
        "import logging, sys\n"
        "from millpond.node.observability.logs import set_up, take_down\n"
        "handler = set_up('json')\n"
        "sys.stderr.close()\n"
        "logging.getLogger('millpond').error('x')\n"
        "take_down(handler)\n"
        "print('done')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "done\n"

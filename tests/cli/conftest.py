"""A project in an empty folder: an app module, a store in a file, and the command to run on them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from millpond.cli import main
from millpond.ids import new_id
from millpond.job import Attempt, Failure, NewJob, Raised, Settlement
from millpond.rules.jobs.lifecycle import settle
from millpond.store.open import open_store
from millpond.store.protocol import Claim, Store

URL = "sqlite:///jobs.db"
APP = """
from millpond.app import App

app = App("sqlite:///jobs.db")
app.pool("mail", kind="async")


@app.task(queue="images", name="resize")
def resize(path: str, width: int = 100) -> str:
    return path


@app.task(queue="mail", name="send")
async def send(user: int) -> None: ...
"""
_numbers = count(1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, without settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in list(os.environ):
        if name.startswith("MILLPOND_"):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run the command in this process."""

    def run(*args: str, code: int = 0, **options: Any) -> Result:
        result = CliRunner().invoke(main, args, **options)
        assert result.exit_code == code, result.output
        assert not code or len(result.stderr.strip().splitlines()) <= 1, "an error is one line"
        return result

    return run


@pytest.fixture
def ask(run: Callable[..., Result]) -> Callable[..., Any]:
    """Run the command with --json and read its answer."""
    return lambda *args, **options: json.loads(run(*args, "--json", **options).stdout)


@pytest.fixture
def store() -> Iterator[Store]:
    store = open_store(URL)
    store.counts()  # its file is there
    yield store
    store.close()


@pytest.fixture
def app_name(folder: Path) -> str:
    """A module with an app, under a name that no other test has imported."""
    return write_app(folder, APP)


def write_app(folder: Path, source: str) -> str:
    name = f"app_of_test_{next(_numbers)}"
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    return f"{name}:app"


def add_job(store: Store, **fields: Any) -> str:
    job = NewJob(**{"id": new_id(), "task": "resize", "payload": b'{"path":"a.png"}', **fields})
    (stored,) = store.enqueue([job])
    return stored.id


def add_dead_job(store: Store, message: str = "no such file", **fields: Any) -> str:
    """A job that was run once and died of an error."""
    job_id = add_job(store, **fields)
    node = f"test-{next(_numbers)}"
    store.renew(node, "test")
    (job,) = store.exchange(node, 1, claims=[Claim(fields.get("queue", "default"), 1)]).claimed
    assert job.id == job_id
    failure = Failure("ValueError", message, f"Traceback ...\nValueError: {message}")
    line = Attempt(1, node, "raised", job.created_at, job.created_at, None, *msgspec.structs.astuple(failure))
    verdict = settle(job, Raised(failure, final=True), job.created_at)
    verdict = msgspec.structs.replace(verdict, line=msgspec.json.encode(line))
    store.exchange(node, 2, settlements=[Settlement(job.id, job.token, verdict)])
    store.renew(node, "test", lease=0)
    return job_id

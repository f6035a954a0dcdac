"""A thousand queues and a mebibyte of hostile text in every field: all are answered, other jobs run on."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from millpond import App
from millpond.job import ENDS, JobState, NewJob
from millpond.simulate.figures import quantile
from tests.api.serving import ROOT, Served, command, environment
from tests.api.test_many import HOSTILE, MEBIBYTE
from tests.browser.process import stop
from tests.node.waiting import all_ended
from tests.proof_api import mill
from tests.proof_api.looking import Look, look
from tests.stores.places import place

QUEUES = 1_000
WITHIN = 10.0  # seconds: `request_within`, the bound of every answer
ALIVE = 0.1  # seconds in which 99 of 100 questions whether the server lives are answered
KEEPS = 0.9  # of its rate, at least, that a pool keeps beside a hostile one
EDGE = 1.5  # of a bound: connecting, and a busy machine


class Form(NamedTuple):
    """How much of everything."""

    each: int  # jobs of each hostile text
    lookers: int  # at once
    rounds: int  # of jobs that fail beside quick ones
    failing: int  # of them in a round
    is_timed: bool  # on a machine with nothing else to do


SHORT, LONG = Form(1, 1, 3, 40, is_timed=False), Form(6, 4, 15, 150, is_timed=True)
FORMS = [
    pytest.param(name, form, id=f"{name}-{word}", marks=marks)
    for word, form, marks in (("short", SHORT, ()), ("long", LONG, pytest.mark.slow))
    for name in ("sqlite", "postgres", "redis")
    if form is LONG or name != "postgres"
]


@contextlib.contextmanager
def node(folder: Path, url: str) -> Iterator[None]:
    """A node that runs the jobs; what it writes goes into a file."""
    words = [sys.executable, "-m", "millpond", "run", "tests.proof_api.mill:app", "--no-health"]
    with (folder / "node.log").open("wb") as log:
        process = subprocess.Popen(
            words, env=environment(folder, url), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            stop(process)


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[App, str, Path]]:
    """The app on a store of its own, and a node beside it."""
    with place(request.param, tmp_path) as url:
        app = mill.made(url)
        app.store.migrate()
        with node(tmp_path, url):
            app.get_task("quick").enqueue(0).result(timeout=120)
            yield app, url, tmp_path
        app.store.close()


def fill(app: App, each: int) -> list[str]:
    """Many queues with names as long as they may be; jobs that carried hostile text through a worker, and
    such that wait. Returns the ids of those."""
    app.store.enqueue(
        [
            NewJob(
                id=f"01900000-0000-7000-8000-{number:012x}",
                task=f"{HOSTILE[number % 3] * 30}",
                payload=b'{"value": "' + (HOSTILE[number % 3] * 100).encode() + b'"}',
                queue=f"{number:04}" + "-eyj" * 15,
                fresh=True,
            )
            for number in range(QUEUES)
        ]
    )
    ended, waiting = [], []
    for task, unit in _tasks(app):
        text, key = mill.filling(unit), _storable(unit * 60)[:400]
        for number in range(each):
            ended.append(task.using(unique=f"{number} {key}").enqueue(text, key))
            waiting.append(task.using(delay=3600.0).enqueue(text, key))
    jobs = all_ended(ended)
    assert {job.state for job in jobs} == {JobState.COMPLETED, JobState.DEAD}
    return [job.id for job in jobs[:: max(1, each // 2)]] + [handle.id for handle in waiting[::each]]


def _tasks(app: App) -> list[tuple[Any, str]]:
    """The tasks of the pool `bad`, each with its hostile text."""
    texts = (*HOSTILE, mill.PLAIN)
    return [(task, texts[int(name.split()[0])]) for name, task in app.tasks.items() if name != "quick"]


def _storable(text: str) -> str:
    return text.replace("\0", "")


def looked(served: Served, jobs: list[str], lookers: int) -> tuple[list[Look], list[float]]:
    """All that is answered to some who look at everything at once, and how long `/livez` took meanwhile."""
    host, port = served.address
    words = [sys.executable, "-m", "tests.proof_api.looking", host, str(port), served.admin, *jobs]
    crowd = [subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(lookers)]
    alive = []
    with contextlib.ExitStack() as stack:
        for one in crowd:
            stack.enter_context(one)
            stack.callback(one.kill)
        while any(one.poll() is None for one in crowd):
            answer = look(host, port, served.admin, "/livez")
            assert answer.status == 200
            alive.append(answer.seconds)
        said = [line.split(" ", 3) for one in crowd for line in one.communicate()[0].splitlines()]
    assert {one.returncode for one in crowd} == {0}
    return [Look(float(a), int(b), int(c), path) for a, b, c, path in said], alive


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("shop", "form"), FORMS, indirect=["shop"])
def test_every_route_answers_within_its_bound_and_the_server_is_alive(shop, form: Form):
    app, url, folder = shop
    jobs = fill(app, form.each)
    with command(folder, url, "dashboard", "tests.proof_api.mill:app", "--listen", "127.0.0.1:0") as served:
        answers, alive = looked(served, jobs, form.lookers)
    p99, slowest = quantile(sorted(alive), 0.99), max(answers)
    print(f"\n{len(answers)} answers, the slowest {slowest}; {len(alive)} x /livez: p99 {p99:.3f} s")
    assert [one for one in answers if one.status not in (200, 404, 503)] == []
    assert [one for one in answers if one.status == 503 and one.path != "/"] == []  # a page is not built
    assert [one for one in answers if one.size > MEBIBYTE] == []
    assert slowest.seconds < WITHIN * EDGE
    assert p99 < (ALIVE if form.is_timed else 10 * ALIVE)


def rate(app: App, unit: str, number: int) -> float:
    """Quick jobs a second, there and back one by one, while so many others fail with this text."""
    fail = next(task for task, text in _tasks(app) if text == unit and " fail " in task.name)
    text, quick = (unit * 8_000)[:8_000], app.get_task("quick")
    others = fail.enqueue_many([(text, _storable(unit * 9)[:9])] * number)
    done, began = 0, time.perf_counter()
    while others[-1].job().state not in ENDS:
        for _ in range(10):
            quick.enqueue(done).result(timeout=120)
            done += 1
    taken = time.perf_counter() - began
    all_ended(others)
    return done / taken


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("shop", "form"), FORMS, indirect=["shop"])
def test_a_quick_job_of_another_pool_keeps_its_rate(shop, form: Form):
    """Beside jobs that fail with as much plain text: what is left is what the hostile text costs. The rounds
    alternate, since a machine is quicker at one time than at another."""
    app, _, _ = shop
    rate(app, mill.PLAIN, form.failing)  # workers are up, and caches are warm
    beside: dict[str, list[float]] = {unit: [] for unit in (mill.PLAIN, *HOSTILE[:2])}
    for _ in range(form.rounds):
        for unit, rates in beside.items():
            rates.append(rate(app, unit, form.failing))
    found = {unit: statistics.median(rates) for unit, rates in beside.items()}
    print("\n" + ", ".join(f"beside {unit!r}: {one:.1f}/s" for unit, one in found.items()))
    plain = found.pop(mill.PLAIN)
    for unit, one in found.items():
        assert one >= plain * (KEEPS if form.is_timed else 0.4), unit

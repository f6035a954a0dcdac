"""A fail-over to a copy that lags, with real servers: acknowledged ends are gone with the server that died.

The node lives on, finds out, and what the copy believes to be running runs again.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from millpond import App, Retry
from millpond.errors import StoreError
from millpond.job import ENDS, JobState
from tests.node.test_leases import lines
from tests.node.waiting import all_ended, ended, until
from tests.proof_node.books import left_over
from tests.proof_node.proxy import Proxy
from tests.servers import postgres
from tests.servers import redis as redis_servers

SOON = 90.0  # seconds after the fail-over in which everything that was lost has run again
NUMBER = 3  # jobs of each sort


class PostgresPair:
    """A primary with a streaming standby, and a URL that names both."""

    def __init__(self) -> None:
        self.first = postgres.Postgres()
        self.second = postgres.Postgres(copy_of=self.first)
        hosts = ",".join(f"127.0.0.1:{one.server.port}" for one in (self.first, self.second))
        self.url = f"postgresql://postgres@{hosts}/postgres?schema=lost"
        self.second_url = postgres.with_schema(self.second.url, "lost")

    def fall_behind(self) -> None:
        self.first.copied()
        self.second.fall_behind()

    def fail_over(self) -> None:
        self.first.stop(signal.SIGKILL)
        self.second.promote()

    def close(self) -> None:
        for one in (self.first, self.second):
            one.server.remove()


class RedisPair:
    """A master with a replica, behind an address that leads to the one that is the master."""

    def __init__(self) -> None:
        self.first = redis_servers.Redis(redis_servers.program("redis-server", "valkey-server"))
        self.second = self.first.replica()
        self._name = Proxy(self.first.url)
        self._name.__enter__()
        self.url = f"{self._name.url}?namespace=lost"
        self.second_url = f"{self.second.url}?namespace=lost"

    def fall_behind(self) -> None:
        self.first.copied()
        self.second.fall_behind()

    def fail_over(self) -> None:
        self.first.stop(signal.SIGKILL)
        self.second.promote()
        self._name.lead_to(self.second.url)

    def close(self) -> None:
        self._name.__exit__()
        for one in (self.first, self.second):
            one.server.remove()


@pytest.fixture(params=[PostgresPair, RedisPair], ids=["postgres", "redis"])
def pair(request) -> Iterator[PostgresPair | RedisPair]:
    made = request.param()
    yield made
    made.close()


@contextmanager
def app_at(url: str) -> Iterator[App]:
    app = App(url)
    app.store.migrate()
    app.pool("default", workers=2 * NUMBER)

    @app.task(name="plain", retry=Retry(first=0))
    def plain(runs: str, gate: str) -> None:
        with open(runs, "a") as file:
            file.write(f"{os.getpid()}\n")
        while not os.path.exists(gate):
            time.sleep(0.005)

    @app.task(name="keyed", key="{key}", limit=1, retry=Retry(first=0))
    def keyed(key: str, runs: str, gate: str) -> None:
        plain(runs, gate)

    yield app
    app.store.close()


def test_jobs_whose_ends_a_fail_over_lost_run_again_soon_and_their_slots_are_free(pair, start, tmp_path):
    gate = tmp_path / "gate"
    runs = [tmp_path / f"run-{number}" for number in range(2 * NUMBER)]
    with app_at(pair.url) as app:
        node = start(app)
        plain = [app.tasks["plain"].enqueue(str(path), str(gate)) for path in runs[:NUMBER]]
        keyed = [app.tasks["keyed"].enqueue(path.name, str(path), str(gate)) for path in runs[NUMBER:]]
        handles = plain + keyed
        until(lambda: all(handle.job().started_at for handle in handles), "all run, and the store knows")
        pair.fall_behind()
        gate.touch()
        assert {job.state for job in all_ended(handles)} == {JobState.COMPLETED}
        before = node.report().id
        pair.fail_over()
        until(lambda: has_ended_again(handles, runs), "everything has run again and ended", SOON)
        assert [len(lines(path)) for path in runs] == [2] * len(runs)
        ends = {tuple(attempt.ended for attempt in handle.job().attempts) for handle in handles}
        assert ends == {("lost", "returned")}
        ended(app.tasks["keyed"].enqueue(runs[-1].name, str(runs[-1]), str(gate)))  # the slot is free
        assert node.report().id == before
        assert left_over(pair.second_url, app.store) == {}


def has_ended_again(handles, runs):
    try:
        jobs = [handle.job() for handle in handles]
    except StoreError:
        return False
    return all(job.state in ENDS for job in jobs) and all(len(lines(path)) == 2 for path in runs)

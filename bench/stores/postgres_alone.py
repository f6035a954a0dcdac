"""What only PostgreSQL has: notifications, and transactions that stay open.

`--part notify`: processes that enqueue one job at a time, with notifications and without, in turn.
`--part open`: exchanges while another session keeps a snapshot, with the floor of `rules/store/floor.py` and
without.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import workload

from millpond.rules.store import floor
from millpond.store.postgres.store import PostgresStore
from tests.servers import postgres as postgres_server

CLIENTS = 16
CLIENT = """
import sys, time
sys.path[:0] = {paths!r}
import workload
from millpond.store.open import open_store
store, number = open_store({url!r}), 0
store.enqueue(workload.new_jobs(1))
print("ready", flush=True)
until = float(sys.stdin.readline())
while time.time() < until:
    store.enqueue(workload.new_jobs(1))
    number += 1
print(number, flush=True)
"""


@contextmanager
def _server() -> Iterator[str]:
    """A server of its own with an empty schema, as `engines.postgres` has it."""
    server = postgres_server.Postgres(settings={"shared_buffers": "128MB", "max_wal_size": "1GB"})
    url = postgres_server.with_schema(server.url, "bench")
    try:
        yield url
    finally:
        server.stop()


def _anew(url: str) -> PostgresStore:
    postgres_server.drop(url.partition("?")[0], "bench")
    store = PostgresStore(url)
    store.migrate()
    return store


# --- notifications -----------------------------------------------------------------------------------
def notify(rounds: int, seconds: float) -> str:
    """How much of their rate clients keep when they notify."""
    rates: dict[str, list[float]] = {"on": [], "off": []}
    with _server() as url:
        for number in range(rounds):
            for how in ("on", "off") if number % 2 else ("off", "on"):
                _anew(url).close()
                rates[how].append(_enqueued(f"{url}&notify={how}", seconds) / seconds)
    parts = [a / b for a, b in zip(rates["on"], rates["off"], strict=True)]
    on, off = (statistics.median(rates[how]) for how in ("on", "off"))
    return (
        f"{CLIENTS} processes that enqueue one job at a time: {on:,.0f} jobs a second, {off:,.0f} with "
        f"`?notify=off`: {statistics.median(parts):.2f} of it ({min(parts):.2f}-{max(parts):.2f} in {rounds} "
        "rounds; needed: at least 0.8)."
    )


def _enqueued(url: str, seconds: float) -> int:
    text = CLIENT.format(paths=[str(Path(__file__).parent)], url=url)
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(CLIENTS)
    ]
    for client in clients:
        _line(client)
    until = time.time() + seconds
    for client in clients:
        assert client.stdin is not None
        client.stdin.write(f"{until}\n")
        client.stdin.flush()
    numbers = [int(_line(client)) for client in clients]
    for client in clients:
        client.wait()
    return sum(numbers)


def _line(client: subprocess.Popen[str]) -> str:
    assert client.stdout is not None
    return client.stdout.readline()


# --- a transaction that stays open -------------------------------------------------------------------
def open_transaction(number: int) -> str:
    """What an exchange of a hundred jobs takes while a snapshot is kept from before `number` jobs."""
    lines = ["| | first 1,000 jobs | last 1,000 jobs, ms an exchange |", "| --- | --- | --- |"]
    usual = floor.IN_A_ROW
    with _server() as url:
        for name, in_a_row in (("with the floor", usual), ("without", sys.maxsize)):
            floor.IN_A_ROW = in_a_row
            first, last = _exchanges(url, number)
            lines.append(f"| {name} | {first:.1f} | {last:.1f} |")
    floor.IN_A_ROW = usual
    return "\n".join(lines)


def _exchanges(url: str, number: int) -> tuple[float, float]:
    store = _anew(url)
    workload.bulk(store, number)
    store.renew("bench", "bench")
    took: list[float] = []
    with psycopg.connect(url.partition("?")[0]) as keeper:
        keeper.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        keeper.execute("SELECT count(*) FROM bench.meta")
        began = time.perf_counter()
        for _ in workload.exchanges(store, "bench"):
            took.append(1000 * (time.perf_counter() - began))
            began = time.perf_counter()
            if len(took) % 100 == 0:
                store.renew("bench", "bench")
                keeper.execute("SELECT 1")
                began = time.perf_counter()
    store.close()
    return statistics.median(took[:10]), statistics.median(took[-12:-2])


def section(part: str, options: Any) -> str:
    """One of the two parts, as the page has it."""
    if part == "notify":
        return "\n" + notify(options.rounds, 2.0 if options.quick else 5.0)
    return "\n" + open_transaction(20_000 if options.quick else 100_000)

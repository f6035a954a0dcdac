"""Stores at size: rows and bytes of many queued and finished jobs, and what each verb takes among them.

The jobs go through the store's own verbs, so every row is what a node would have left. A hundredth of the
finished ones is older than the retention, and is pruned in the end.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import workload
from engines import Engine

from millpond.ids import new_id
from millpond.job import Job, JobState, Returned, Settlement
from millpond.rules.jobs.lifecycle import settle
from millpond.store.protocol import Claim, Filter, Retention

HEADING = "## At size"
FILL = 1000  # jobs to an exchange while the store is filled
TRIES = 50  # of each verb
DAYS = 10 * 86_400 * 1_000_000  # microseconds from the old jobs to the others
KEPT = Retention(completed=1e9, cancelled=1e9, dead=1e9, statistics=1e9, ticks=1e9)  # of everything
Column = dict[str, str]


def section(engines: list[Engine], options: argparse.Namespace) -> str:
    """The table, a column for each store."""
    columns = {engine.name: _column(engine, options.queued, options.finished) for engine in engines}
    lines = ["", HEADING, ""]
    lines.append(
        f"{options.finished:,} finished jobs, then {options.queued:,} queued behind them. A payload has "
        f"{len(workload.PAYLOAD)} bytes, a result {len(workload.RESULT)}. Times are the median and the "
        f"longest of {TRIES}; an exchange has {workload.BATCH} jobs."
    )
    lines += ["", "| | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for name in next(iter(columns.values()), {}):
        lines.append(f"| {name} | " + " | ".join(column[name] for column in columns.values()) + " |")
    return "\n".join(lines)


def put_into(page: Path, text: str) -> None:
    """Replace this section of the page, and nothing else."""
    before = page.read_text().split(f"\n{HEADING}\n")[0].rstrip("\n")
    page.write_text(f"{before}\n{text}\n")


def kept_from(page: Path) -> str:
    """The section as the page has it, to be kept when the rest of the page is written anew."""
    _, found, after = page.read_text().partition(f"\n{HEADING}\n")
    return f"{found}{after}".rstrip("\n")


def _column(engine: Engine, queued: int, finished: int) -> Column:
    store = engine.open()
    empty = engine.size(store)
    old = finished // 100
    begin = time.perf_counter()
    _finish(store, old)
    store.clock.shift += DAYS
    store.prune(KEPT)  # as a node does every hour: PostgreSQL makes the tables of the days to come
    _finish(store, finished - old)
    with_history = engine.size(store)
    workload.bulk(store, queued)
    full = engine.size(store)
    _say(f"{engine.name}: filled in {time.perf_counter() - begin:,.0f} s")
    column = {
        "rows, finished and queued": " + ".join(f"{number:,}" for number in _rows(store)),
        "bytes of a finished job": f"{(with_history - empty) / max(1, finished):,.0f}",
        "bytes of a queued job": f"{(full - with_history) / max(1, queued):,.0f}",
        "all of it": f"{(full - empty) / 1e6:,.0f} MB",
        **_times(store),
    }
    begin = time.perf_counter()
    number = store.prune(Retention())
    took = time.perf_counter() - begin
    column["prune what is older than a week"] = f"{number:,} jobs, {number / took:,.0f} a second"
    store.close()
    return column


def _rows(store: Any) -> tuple[int, int]:
    found = [queue.states for queue in store.counts().queues]
    return tuple(  # type: ignore[return-value]
        sum(states.get(state, 0) for states in found) for state in (JobState.COMPLETED, JobState.QUEUED)
    )


def _finish(store: Any, number: int) -> None:
    """Enqueue and end so many jobs; never many of them in line."""
    node, sequence = new_id(), 0
    for first in range(0, number, 10 * FILL):
        workload.bulk(store, min(10 * FILL, number - first))
        store.renew(node, "bench")
        done: list[Settlement] = []
        while True:
            sequence += 1
            answer = store.exchange(node, sequence, settlements=done, claims=[Claim("default", FILL)])
            done = _settlements(answer.claimed)
            if not done:
                break
    store.renew(node, "bench", lease=0)


def _settlements(jobs: Sequence[Job]) -> list[Settlement]:
    now, returned = time.time_ns() // 1000, Returned(workload.RESULT)
    return [Settlement(job.id, job.token, settle(job, returned, now), 0.012, 0.003) for job in jobs]


def _times(store: Any) -> Column:
    found: dict[str, list[float]] = {"claim": [], "settle": []}
    claims = [Claim("default", workload.BATCH)]
    store.renew("timer", "bench")
    for number in range(TRIES):
        claim = partial(store.exchange, "timer", 2 * number + 1, claims=claims)
        done = _settlements(_timed(found["claim"], claim).claimed)
        _timed(found["settle"], partial(store.exchange, "timer", 2 * number + 2, settlements=done))
    for name, search in _searches(store):
        found[name] = []
        for _ in range(TRIES):
            _timed(found[name], search)
    return {name: f"{statistics.median(times):,.1f} ms ({max(times):,.0f})" for name, times in found.items()}


def _searches(store: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    kept = Filter(states=(JobState.COMPLETED,), task="app.resize")
    yield "search: the newest", partial(store.search, Filter())
    yield "search: completed, of a task", partial(store.search, kept)
    yield "search: queued", partial(store.search, Filter(states=(JobState.QUEUED,)))
    yield "search: dead, of which there are none", partial(store.search, Filter(states=(JobState.DEAD,)))
    yield "search: of a task without jobs", partial(store.search, Filter(task="app.none"))
    yield "counts", store.counts


def _timed(times: list[float], call: Callable[[], Any]) -> Any:
    begin = time.perf_counter()
    answer = call()
    times.append((time.perf_counter() - begin) * 1000)
    return answer


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

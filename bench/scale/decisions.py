"""What deciding costs a node: everything its scaling does in a round for 32 pools, but for asking the store.

The node's own code runs, on pools that have no processes: what they hold, and who is busy, is made up. Once
without a maximum of the node's own, and once with one, which the pools share.
"""

# ruff: noqa: E501 - its section of the page is text, and has the lines of the other pages

import statistics
import time
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

from millpond.job import JobState
from millpond.node.observability.events import NodeEvents
from millpond.node.scaling.loop import Answer, Scaling, _Sized
from millpond.node.state import NodeState
from millpond.pool_settings import PoolSettings
from millpond.rules.scaling.records import Observation
from millpond.store.open import open_store
from millpond.store.protocol import Counts, QueueCounts

POOLS, TASKS, RUNNING, ROUNDS = 32, 4, 8, 300
CAPACITY = POOLS * RUNNING // 2  # half of what there is already: every pool gets less than it wants
NEEDED = 0.001  # seconds that all decisions together may take


class _Pool:
    """As the scaling sees a pool: all its workers are busy, as many jobs wait here, and as many in the store.
    Every other pool is at its maximum."""

    start_cost = 0.006
    kept = promised = ever_kept = 0

    def __init__(self, number: int, state: NodeState) -> None:
        name = f"pool{number}"
        self.settings = PoolSettings(name, (name,), 1, RUNNING if number % 2 else 2 * RUNNING, max_wait=10.0)
        self.short_at = {name: 0.0}
        self.first_short: dict[str, int] = {}
        self.arrived: Counter[str] = Counter()
        self.ran: deque[tuple[str, float]] = deque()
        self.done = self.claimed = 0
        now = state.store_now()
        jobs = [(f"{name}/{n}", f"task{n % TASKS}") for n in range(2 * RUNNING)]
        tasks = [
            SimpleNamespace(job=SimpleNamespace(id=job_id, task=task, run_at=now)) for job_id, task in jobs
        ]
        self.held = {task.job.id: task for task in tasks}
        self._begun = [(task, time.monotonic() - n) for n, task in enumerate(tasks[:RUNNING])]

    def pass_a_second(self, turn: int) -> None:
        """Some jobs have come, and some have ended."""
        for number in range(TASKS):
            self.arrived[f"task{number}"] += 1 + (turn + number) % 3
            self.ran.append((f"task{number}", 1.0 + 0.1 * ((turn + number) % 7)))
        self.done += TASKS

    def crew(self) -> tuple[int, int, int]:
        return RUNNING, 0, 0

    def begun(self) -> list[Any]:
        return self._begun

    def want(self, *_decision: object) -> None:
        pass


class _Timed(Scaling):
    """A node's scaling whose decisions are timed: all policies, and the parts of those that share."""

    took = 0.0

    def _answers(self, found: list[tuple[_Sized, Observation]], now: float) -> list[tuple[_Sized, Answer]]:
        began = time.perf_counter()
        answers = super()._answers(found, now)
        self.took = time.perf_counter() - began
        return answers


def decision_cost() -> dict[str, Any]:
    """What a round costs; `shared`: where the node has a maximum that its pools share."""
    return {**_cost(None), "shared": _cost(CAPACITY)}


def _cost(capacity: int | None) -> dict[str, Any]:
    """Seconds for a round over every pool, the median of many, and the part of it that deciding takes."""
    scaling = _scaling(capacity)
    rounds, decisions = [], []
    for turn in range(ROUNDS):
        for sized in scaling._pools.values():
            sized.pool.pass_a_second(turn)  # type: ignore[attr-defined]
        now = scaling.counting.counted_at = time.monotonic()
        began = time.perf_counter()
        for sized in scaling._pools.values():
            sized.watch.learn(scaling.counting, now)
        scaling._decide(scaling._pools.values())
        rounds.append(time.perf_counter() - began)
        decisions.append(scaling.took)
    return {"seconds": statistics.median(rounds), "deciding": statistics.median(decisions)}


def _scaling(capacity: int | None) -> _Timed:
    """A node's scaling that has counted what waits; nobody counts again."""
    state = NodeState(open_store("memory://"), lease=15.0)
    state.phase = "running"
    pools: list[Any] = [_Pool(number, state) for number in range(POOLS)]
    state.pools = {pool.settings.name: pool for pool in pools}
    scaling = _Timed(state, NodeEvents(), grown=lambda: None, capacity=capacity)
    scaling._pools = {name: _Sized(pool, state) for name, pool in state.pools.items()}
    queues = (QueueCounts(name, False, None, {JobState.QUEUED: RUNNING}, 3.0) for name in state.pools)
    scaling.counting.take(Counts(tuple(queues), ()))
    return scaling


def section(found: dict[str, Any]) -> str:
    """Its part of the page."""
    cases = [("no maximum", found), (f"`max_workers={CAPACITY}`", found.get("shared"))]
    rows = "\n".join(_row(name, case) for name, case in cases if case is not None)
    return f"""What a node does each second for {POOLS} pools, each with {TASKS} tasks, {RUNNING} running jobs and {2 * RUNNING} in line: it learns, observes and decides.
The medians of {ROUNDS} rounds; the store is not asked. Where the node has a maximum that its pools share, deciding is also to find the part of each.
Needed: less than {1000 * NEEDED:g} ms for all decisions.

| node | a round | of which deciding | needed | met |
|---|---|---|---|---|
{rows}"""


def _row(name: str, case: dict[str, Any]) -> str:
    met = "yes" if case["deciding"] < NEEDED else "**no**"
    return (
        f"| {name} | {1000 * case['seconds']:.2f} ms | {1000 * case['deciding']:.2f} ms | "
        f"< {1000 * NEEDED:g} ms | {met} |"
    )

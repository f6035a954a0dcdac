"""What deciding costs: 32 pools, each with a few tasks and its workers busy."""

import time

from millpond.rules.observation import Limits, Memory, Observation, TaskLoad
from millpond.rules.scale import ScaleForWait

POOLS, ROUNDS = 32, 200


def decision_cost() -> float:
    """Seconds for one decision of every pool, the best of many."""
    policy = ScaleForWait(10.0)
    tasks = tuple(TaskLoad(f"task{n}", 2.0, 1.5, 10 * n, 1000, 400.0, 900.0) for n in range(4))
    memories = [Memory() for _ in range(POOLS)]
    best = 1.0
    for turn in range(ROUNDS):
        now = float(turn)
        began = time.perf_counter()
        for index in range(POOLS):
            seen = Observation(
                Limits(1, 16), tasks, oldest=3.0, busy=8, remaining=(1.5,) * 8, measured_at=now
            )
            _, memories[index] = policy.decide(seen, memories[index], now)
        best = min(best, time.perf_counter() - began)
    return best

"""What a clairvoyant operator would have spent: the bounds that policies are measured against.

Exact, from the jobs alone; no policy that lets nobody wait can spend less than `zero_wait`.
"""

from __future__ import annotations

from array import array

from millpond.simulate.records import Workload


def work(workload: Workload) -> float:
    """LB0: the seconds of work. Nobody can spend less, however long jobs wait."""
    return sum(workload.services)


def zero_wait(workload: Workload, start_cost: float) -> float:
    """LB(B): worker seconds when nobody waits and a start costs `start_cost` of them.

    The n-th worker is needed whenever n jobs run. Between two such times it idles or is started again,
    whichever is cheaper: so each gap of each level costs min(gap, start_cost), and the first start one.
    """
    ends = array("d", sorted(at + s for at, s in zip(workload.arrivals, workload.services, strict=True)))
    total, ended, level = sum(workload.services), 0, 0
    idle_since: list[float] = []  # for each level above the present one, the last to stop on top
    for arrival in workload.arrivals:
        while ended < len(ends) and ends[ended] <= arrival:
            idle_since.append(ends[ended])
            level -= 1
            ended += 1
        level += 1
        total += min(arrival - idle_since.pop(), start_cost) if idle_since else start_cost
    return total

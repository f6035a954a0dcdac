"""How many workers each pool of a node may have where the node may not have as many as they want.

Fair parts come from `rules/scaling/worker_shares.py`; here they meet the workers there are: who has more than
its part keeps them while they are busy, and until they leave the others cannot have them. Values in, values
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from millpond.rules.scaling import bounds
from millpond.rules.scaling.records import Decision, Limits, Memory
from millpond.rules.scaling.worker_shares import Claimant, share


def caps(capacity: int, claimants: Iterable[Claimant], alive: Mapping[str, int]) -> dict[str, int]:
    """The cap of each pool that wants more than it may have; a minimum is given in any case.

    The places that are free now are dealt out once, to those who have less than their part: who has more
    than his keeps it while it is busy, and would otherwise be counted as gone already.
    """
    everyone = list(claimants)
    parts = share(capacity, everyone)
    there = {claimant.pool: alive.get(claimant.pool, 0) for claimant in everyone}
    missing = [
        Claimant(
            claimant.pool,
            max(0, claimant.least - there[claimant.pool]),
            max(0, parts[claimant.pool] - there[claimant.pool]),
            claimant.weight,
            claimant.urgency,
        )
        for claimant in everyone
    ]
    dealt = share(max(0, capacity - sum(alive.values())), missing)
    caps = {pool: min(parts[pool], there[pool] + dealt[pool]) for pool in parts}
    return {one.pool: caps[one.pool] for one in everyone if caps[one.pool] < one.wanted}


def recapped(
    answer: tuple[Decision, Memory], limits: Limits, cap: int, reason: str
) -> tuple[Decision, Memory]:
    """A policy's answer under another cap: as many workers as it would want if it were asked again, since
    every bound is a smallest of several, and only the guaranteed minimum stands above them."""
    decision, memory = answer
    before, alive, lowest = decision.wanted, decision.alive, bounds.least(limits)
    may = max(cap, lowest)
    if (before <= may and alive <= may) or decision.binding == "hold":
        return answer
    wanted, binding = before, decision.binding
    if may < before:
        wanted, binding = may, reason if cap >= lowest else "min"
    leave = max(decision.leave, alive - may)
    decision = replace(
        decision,
        wanted=wanted,
        keep=min(decision.keep, max(wanted, alive - leave)),
        leave=leave,
        limit=min(decision.limit, cap),
        binding=binding,
    )
    return decision, _refunded(memory, max(0, before - alive) - max(0, wanted - alive))


def _refunded(memory: Memory, unstarted: int) -> Memory:
    """Who is not started has cost nothing. What a policy of another kind remembers is its own."""
    if not isinstance(memory, Memory):
        return memory
    starts = None if memory.starts is None else memory.starts + unstarted
    return memory._replace(starts=starts)

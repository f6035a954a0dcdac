"""How many workers each pool of a node may have where the node may not have as many as they want.

Fair parts come from `rules/sharing.py`; here they meet the workers there are: who has more than its part
keeps them while they are busy, and until they leave the others cannot have them. Values in, values out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millpond.rules.sharing import Claimant, share


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

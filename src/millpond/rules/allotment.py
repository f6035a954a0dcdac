"""How many workers each pool of a node may have where the node may not have as many as they want.

Fair parts come from `rules/sharing.py`; here they meet the workers there are: who has more than its part
keeps them while they are busy, and until they leave the others cannot have them. Values in, values out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millpond.rules.sharing import Claimant, share


def caps(capacity: int, claimants: Iterable[Claimant], alive: Mapping[str, int]) -> dict[str, int]:
    """The cap of each pool that wants more than it may have; a minimum is given in any case."""
    everyone = list(claimants)
    left = capacity - sum(alive.values())
    parts = share(capacity, everyone)
    found = {}
    for claimant in everyone:
        room = max(claimant.least, alive.get(claimant.pool, 0) + left)
        cap = min(parts[claimant.pool], room)
        if cap < claimant.wanted:
            found[claimant.pool] = cap
    return found

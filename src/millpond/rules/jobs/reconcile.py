"""Where a node and its store differ about what the node has, and when that is sure.

A store that lost its last moments believes in claims that the node has settled long ago, or knows nothing of
claims that the node works on. A difference that is found twice in a row is one.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

Claim = tuple[str, int]  # a job's id and the token of the claim


class Difference(NamedTuple):
    """Claims that only one side knows of."""

    unknown: frozenset[Claim] = frozenset()  # to the node
    missing: frozenset[Claim] = frozenset()  # in the store

    def __bool__(self) -> bool:
        return bool(self.unknown or self.missing)


def difference(
    believed: AbstractSet[Claim], known: AbstractSet[Claim], runs: AbstractSet[Claim]
) -> Difference:
    """The store believes that the node has these; the node knows of those, and runs some of them."""
    return Difference(frozenset(believed - known), frozenset(runs - believed))


def confirmed(before: Difference, now: Difference) -> Difference:
    """What is still different after a second look."""
    return Difference(before.unknown & now.unknown, before.missing & now.missing)

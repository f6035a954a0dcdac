"""Work for the nodes of these proofs."""

from __future__ import annotations

import random

from tests.proof_node import jobs


def fill(number: int, seconds: float = 0.02) -> None:
    """A mixture: plain ones, ones that raise or snooze first, ones that hold slots."""
    for first in range(0, number, 1000):
        some = range(first, min(first + 1000, number))
        jobs.work.enqueue_many([(random.uniform(0, 2 * seconds),) for n in some if n % 10 < 6])
        jobs.moody.enqueue_many([(n,) for n in some if n % 10 in (6, 7)])
        jobs.guarded.enqueue_many([(f"name-{n % 5}", seconds) for n in some if n % 10 in (8, 9)])

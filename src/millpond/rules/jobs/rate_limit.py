"""A queue's rate limit: a bucket that fills at the rate and holds one second's worth."""

from __future__ import annotations

import math
from typing import NamedTuple

from millpond.job import MICROSECONDS, Instant

MOST = 2**53  # of a rate without bound


class Bucket(NamedTuple):
    """What may be taken, as of some instant."""

    rate: float  # a second
    tokens: float
    filled_at: Instant


def depth(rate: float) -> float:
    """The most a bucket holds: a second's worth, and at least one job."""
    return max(1.0, rate)


def fill(bucket: Bucket, now: Instant) -> Bucket:
    """The bucket as it is now. A clock that went backwards takes nothing away."""
    passed = max(0, now - bucket.filled_at) / MICROSECONDS
    tokens = min(depth(bucket.rate), bucket.tokens + passed * bucket.rate)
    return Bucket(bucket.rate, tokens, max(now, bucket.filled_at))


def allowed(bucket: Bucket) -> int:
    """How many jobs may start now."""
    return math.floor(min(bucket.tokens, MOST) + 1e-9)

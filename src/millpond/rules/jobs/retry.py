"""How long to wait before a job is tried again.

Pure: the spread that keeps a thousand failed jobs from coming back in the same second is a stable hash of
the job's id and its errors, so the same question always has the same answer.
"""

from __future__ import annotations

import hashlib

from millpond.job import JobOptions

SPREAD = 0.25  # a delay is up to this share longer than its nominal value
DOUBLINGS = 64  # from a microsecond to beyond any cap


def delay_after(options: JobOptions, job_id: str, errors: int) -> float:
    """Seconds until the next attempt after `errors` errors: exponential, capped, spread."""
    nominal = options.retry_first
    for _ in range(min(errors - 1, DOUBLINGS)):
        nominal *= options.retry_factor
    return min(nominal, options.retry_cap) * (1 + SPREAD * share(f"{job_id}:{errors}"))


def share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48

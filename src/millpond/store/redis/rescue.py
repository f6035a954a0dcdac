"""Reviving the jobs of a sealed node on Redis: read some, decide by the rules, write under the fence.

Each job is written only if it is still the dead node's under the token that was read, so that two rescuers
do not hurt each other and one that is killed half-way has left work for the next.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from millpond.rules.jobs.lifecycle import rescued
from millpond.store.redis.connection import Server
from millpond.store.redis.encoding import transition, whole_job
from millpond.store.sql.rows import Damaged

BATCH = 500  # jobs revived in one step


def revive(server: Server, dead: str) -> int:
    """Give back everything a sealed node holds, then bury its record; returns how many jobs."""
    total = 0
    refused: set[bytes] = set()  # what a verdict could not be carried out on
    while True:
        status, *rest = server.run("held", (dead, "", BATCH, True), writes=False)
        rows = rest[2] if status == b"ok" else []
        verdicts, damaged = _decide(rows, dead, int(rest[1]) if rest else 0, refused)
        refused = {row[0] for row in rows}  # whoever is still held next time is damaged beyond our reading
        total += int(server.run("verdicts", (dead, verdicts, True, damaged)))
        if not rows:
            return total


def _decide(
    rows: Sequence[Any], dead: str, now: int, refused: Collection[bytes]
) -> tuple[list[Any], list[str]]:
    verdicts, damaged = [], []
    for row in rows:
        try:
            job = whole_job(row)
        except Damaged:
            damaged.append(row[0].decode())
            continue
        if job.node == dead and row[0] not in refused:
            verdicts.append(transition(job.id, job.token, rescued(job, dead, now)))
        else:
            damaged.append(job.id)
    return verdicts, damaged

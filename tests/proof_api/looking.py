"""Everybody who looks at once: each route of a dashboard, one after the other, and how long each answer took.

    python -m tests.proof_api.looking HOST PORT TOKEN JOB…

prints a line for each answer: seconds, status, bytes, path. A process of its own, so that reading large
answers holds up no clock of the test.
"""

from __future__ import annotations

import http.client
import sys
import time
from typing import NamedTuple

from tests.api.test_forged import paths

MORE = (
    "/api/v1/statistics?window=6h",
    "/api/v1/statistics?window=24h",
    "/api/v1/jobs?limit=500",
    "/api/v1/jobs?text=eyJ-ey",
    "/api/v1/jobs?text=nowhere",
    "/api/v1/dead?error=Nothing",
    "/",
)


class Look(NamedTuple):
    """One answer."""

    seconds: float
    status: int
    size: int
    path: str


def look(host: str, port: int, token: str, path: str) -> Look:
    """Ask once."""
    connection = http.client.HTTPConnection(host, port, timeout=120)
    began = time.perf_counter()
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    size = len(answer.read())
    connection.close()
    return Look(time.perf_counter() - began, answer.status, size, path)


def main(host: str, port: str, token: str, *jobs: str) -> None:
    """Every route, and the page of every job."""
    for path in [*paths(jobs[0]), *MORE, *(f"/api/v1/jobs/{job}" for job in jobs)]:
        print(*look(host, int(port), token, path), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Repeats what PostgreSQL refused although nothing is wrong with it: counted, logged, and never at once.

Only calls of which nothing has happened come here, so repeating them cannot do anything twice.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from millpond.errors import StoreBusy
from millpond.rules.jobs.backoff import retry_pause
from millpond.store.postgres.errors import Crossed, Slept, Stale

T = TypeVar("T")
MOST = 5  # repetitions of a transaction that the server ended to keep order
QUIET = 60.0  # seconds between two warnings
SILENT = "silence"  # this process said nothing for too long in the middle of a transaction
SESSION = "session"  # repeated because the session was not the one that had prepared the statement

logger = logging.getLogger("millpond")


class Retries:
    """The repetitions of one store; `counts` has them by kind: deadlock, serialization, silence, session."""

    def __init__(self, url: str) -> None:
        self.counts: Counter[str] = Counter()
        self._url = url
        self._warned_at = -QUIET

    def run(self, call: Callable[[], T]) -> T:
        """Call, and again as long as that can help."""
        attempt, is_new = 0, False
        while True:
            try:
                return call()
            except Crossed as crossing:
                attempt += 1
                self._note(crossing.kind)
                if attempt > MOST:
                    raise StoreBusy(
                        f"{self._url}: ended by the server {attempt} times in a row ({crossing.kind}); "
                        "nothing happened"
                    ) from crossing
                # Transactions that cross do so again when they begin again at the same moment, and each
                # deadlock costs the server a second to notice: so each waits a different while
                # (test_what_the_server_ended_to_keep_order_is_repeated_counted_and_logged_once).
                time.sleep(retry_pause(attempt, random.random()))
            except Slept:
                self._note(SILENT)
                raise
            except Stale:
                self._note(SESSION)
                if is_new:
                    raise
                is_new = True

    def _note(self, kind: str) -> None:
        self.counts[kind] += 1  # two threads in the same instant may count as one
        now = time.monotonic()
        if now - self._warned_at >= QUIET:
            self._warned_at = now
            logger.warning(
                "%s: the server refused a transaction (%s) and it is repeated; so far: %s. "
                "This line comes at most once a minute",
                self._url,
                kind,
                ", ".join(f"{number} {name}" for name, number in sorted(self.counts.items())),
            )

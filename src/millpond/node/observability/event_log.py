"""What happens on a node, kept in the store's log of events for those who look from elsewhere.

Only what a person would want to know: nothing for each job that ends well. A storm is folded: of each kind
and subject a few lines go into a round, and the last of them says how many more there were.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from millpond.errors import StoreError
from millpond.node.observability.alerts import DEFAULT
from millpond.node.observability.events import (
    NodeEvent,
    NodeEvents,
    NodeStarted,
    NodeStopped,
    WorkerStartFailed,
)
from millpond.node.observability.wording import level_of, sentence_of
from millpond.shown_text import shown

if TYPE_CHECKING:
    from millpond.store.protocol import Store

logger = logging.getLogger("millpond.node")
LOG = "events"
KEEP = 1_000  # lines that the store remembers
KINDS: frozenset[type] = DEFAULT | {NodeStarted, NodeStopped, WorkerStartFailed}
EACH = 5  # lines about one subject in a round
MOST = 100  # lines of a round; while the store is away, the first that could not be told
TEXT = 300


class Journal:
    """Takes events as a subscriber, and writes them down once a round."""

    def __init__(self, events: NodeEvents, store: Store, name: Callable[[], str]) -> None:
        self._store = store
        self._name = name
        self._lines: list[dict[str, Any]] = []
        self._subjects: Counter[tuple[str, object]] = Counter()
        self._lock = threading.Lock()
        self._unsubscribe = events.subscribe(self.take, KINDS)

    def take(self, event: NodeEvent) -> None:
        """One more thing that happened."""
        kind = type(event).__name__
        subject = getattr(event, "pool", None) or getattr(event, "task", None)
        with self._lock:
            self._subjects[kind, subject] += 1
            if self._subjects[kind, subject] <= EACH and len(self._lines) < MOST:
                self._lines.append(_line(event, self._name(), subject))

    def flush(self) -> None:
        """Write down what came since the last time."""
        with self._lock:
            lines = self._lines
            if not lines:
                return
            self._fold()
            self._lines, self._subjects = [], Counter()
        entries = [msgspec.json.encode({k: v for k, v in line.items() if k != "subject"}) for line in lines]
        try:
            self._store.log(LOG, entries, limit=0, keep=KEEP)
        except StoreError as error:
            logger.debug("Events could not be written down: %s", error)
            with self._lock:
                self._lines = (lines + self._lines)[:MOST]

    def _fold(self) -> None:
        """Have the last line of each subject say how many were left out."""
        last = {(line["kind"], line["subject"]): line for line in self._lines}
        for subject, line in last.items():
            line["folded"] += max(0, self._subjects[subject] - EACH)

    def close(self) -> None:
        """Hear nothing more, and write down the rest."""
        self._unsubscribe()
        self.flush()


def _line(event: NodeEvent, node: str, subject: object) -> dict[str, Any]:
    facts = {
        name: value
        if value is None or isinstance(value, bool | int | float)
        else shown(str(value), most=TEXT)
        for name, value in event._asdict().items()
    }
    return {
        "node": node,
        "kind": type(event).__name__,
        "level": logging.getLevelName(level_of(event)).lower(),
        "text": shown(sentence_of(event), most=TEXT),
        "folded": 0,
        "facts": facts,
        "subject": subject,
    }

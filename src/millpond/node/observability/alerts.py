"""Hands the events that somebody should know of to hooks: a callable of the program, or a webhook.

Off unless hooks are given. Each hook has its own thread and a bounded line; one that raises, hangs or is slow
loses its own alerts and disturbs nobody. Alerts about the same thing are folded by
`rules/node/alert_folding.py`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, Full, Queue
from typing import Any, NamedTuple

from millpond.node.observability.events import (
    BreakerClosed,
    BreakerOpened,
    CleanupHeldBack,
    JobDied,
    NodeEvent,
    NodeEvents,
    NodeRescued,
    PoolHealthy,
    PoolUnhealthy,
    QueueBackingUp,
    QueueCaughtUp,
    StoreBack,
    StoreFilling,
    StoreLost,
    WaitInBounds,
    WaitTooLong,
    WorkerCrashed,
)
from millpond.node.observability.wording import level_of, sentence_of
from millpond.rules.node.alert_folding import QUIET, Told, decide, due, is_over
from millpond.shown_text import shown

logger = logging.getLogger("millpond.node")
MOST = 100  # alerts that wait for one hook
DEFAULT: frozenset[type] = frozenset(
    {
        JobDied, WorkerCrashed, NodeRescued, StoreFilling, CleanupHeldBack, StoreLost, StoreBack,
        PoolUnhealthy, PoolHealthy, QueueBackingUp, QueueCaughtUp, WaitTooLong, WaitInBounds,
        BreakerOpened, BreakerClosed,
    }
)  # fmt: skip


class Alert(NamedTuple):
    """What a hook is called with. `text` is one line without secrets."""

    kind: str  # the name of the event
    level: str  # info, warning or error
    text: str
    at: float  # seconds since 1970
    node: str
    folded: int  # how many like it were held back since the last one
    facts: Mapping[str, Any]  # the fields of the event


Hook = Callable[[Alert], object]


class Alerts:
    """The hooks of one node, from construction to `close()`."""

    def __init__(
        self,
        events: NodeEvents,
        node: str,
        hooks: Iterable[Hook],
        *,
        kinds: Iterable[type] = DEFAULT,
        quiet: float = QUIET,
    ) -> None:
        self._outlets = tuple(_Outlet(hook, node, quiet) for hook in hooks)
        # Without a hook nothing is subscribed, and no event is made for alerts' sake.
        self._unsubscribe = events.subscribe(self._take, kinds) if self._outlets else None

    @property
    def dropped(self) -> int:
        """Alerts that were lost because a hook failed or was too slow."""
        return sum(outlet.dropped for outlet in self._outlets)

    def close(self, timeout: float = 1.0) -> None:
        """Send what is waiting, for so long, and end. Close the events before, so that none is missed."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        ends_at = time.monotonic() + timeout
        for outlet in self._outlets:
            outlet.end()
        for outlet in self._outlets:
            outlet.join(max(0.0, ends_at - time.monotonic()))

    def _take(self, event: NodeEvent) -> None:
        pending = _Pending(event, time.time())
        for outlet in self._outlets:
            outlet.offer(pending)


class _Pending(NamedTuple):
    """An event on its way to a hook; it is put into words only if it is sent."""

    event: NodeEvent
    at: float
    folded: int = 0

    @property
    def subject(self) -> tuple[type, Any]:
        """What it is about: alerts with the same subject are folded."""
        return type(self.event), getattr(self.event, "pool", None) or getattr(self.event, "task", None)


class _Outlet:
    """One hook with its thread."""

    def __init__(self, hook: Hook, node: str, quiet: float) -> None:
        if not callable(hook):
            raise TypeError(f"an alert hook must be callable, not {type(hook).__name__}")
        self.dropped = 0
        self._hook = hook
        self._node = node
        self._quiet = quiet
        self._told: dict[tuple[type, Any], tuple[Told, _Pending]] = {}
        self._lock = threading.Lock()
        self._queue: Queue[_Pending | None] = Queue(MOST + 1)  # one place more, for the end
        self._thread = threading.Thread(target=self._run, name="millpond-alerts", daemon=True)
        self._thread.start()

    def offer(self, pending: _Pending) -> None:
        """Send it, or fold it into a later one. Never waits."""
        with self._lock:
            told, _ = self._told.get(pending.subject, (None, None))
            after, decision = decide(told, time.monotonic(), self._quiet)
            self._told[pending.subject] = (after, pending)
        if not decision.is_sent:
            return
        if self._queue.qsize() >= MOST:
            self.dropped += 1
        else:
            self._queue.put_nowait(pending._replace(folded=decision.folded))

    def end(self) -> None:
        """Let the thread end after what is waiting; a webhook tries no more."""
        close = getattr(self._hook, "close", None)
        if callable(close):
            close()
        try:
            self._queue.put_nowait(None)
        except Full:  # its thread hangs in the hook and ends with the process
            pass

    def join(self, timeout: float) -> None:
        """Wait for the thread, for so long."""
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            try:
                pending = self._queue.get(timeout=self._quiet if self._told else None)
            except Empty:
                pass
            else:
                if pending is None:
                    return
                self._call(pending)
            for late in self._folded():
                self._call(late)

    def _folded(self) -> list[_Pending]:
        """What was held back and whose quiet time is over; subjects with nothing to tell are forgotten."""
        now = time.monotonic()
        with self._lock:
            late = [
                pending._replace(folded=told.folded - 1)  # the last one is told, so many besides it
                for told, pending in self._told.values()
                if due(told, now, self._quiet)
            ]
            for pending in late:
                self._told[pending.subject] = (Told(now), pending)
            for subject in [s for s, (told, _) in self._told.items() if is_over(told, now, self._quiet)]:
                del self._told[subject]
        return late

    def _call(self, pending: _Pending) -> None:
        alert = _alert(pending, self._node)
        try:
            self._hook(alert)
        except BaseException as error:  # the hook is the user's, the thread is ours
            self.dropped += 1
            logger.error("The alert hook %r failed on %s: %s", self._hook, alert.kind, error)


def _alert(pending: _Pending, node: str) -> Alert:
    event, at, folded = pending
    facts = {name: _fact(value) for name, value in event._asdict().items()}
    level = logging.getLevelName(level_of(event)).lower()
    more = f" (and {folded} more like it)" if folded else ""
    return Alert(type(event).__name__, level, shown(sentence_of(event)) + more, at, node, folded, facts)


def _fact(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_fact(item) for item in value[:100]]
    return shown(str(value))

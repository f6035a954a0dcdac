"""Wakes nodes that wait on PostgreSQL: after a commit, never in it, and once in a while for each queue.

A commit that notifies holds one lock of the whole cluster until its flush to the disk is done, and every
other commit that notifies waits for it, users' own among them. So no transaction of ours notifies: a
statement of its own follows the commit, and need not wait for the flush. A queue is announced at most once in
GAP; what is enqueued meanwhile is announced at the end of the gap.

A user's transaction commits when its owner pleases: its queues are announced a few times soon afterwards. A
notification is only a hint, and nodes look every second without one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable

from millpond.rules.store.announcement import GAP, Announced, announced, may_announce_at

logger = logging.getLogger("millpond")
LATER = (0.02, 0.1, 0.4)  # seconds after which the queues of a user's transaction are announced
IDLE = 5.0  # seconds after which the thread that announces later ends


class Notifier:
    """Announces queues through `send`, which takes their names; without it, none."""

    def __init__(self, send: Callable[[frozenset[str]], None] | None) -> None:
        self._send = send
        self.forget()

    def forget(self) -> None:
        """Begin anew, as a forked child must: it has no thread, and the parent announces its own."""
        self._guard = threading.Condition()
        self._sends = threading.Lock()  # held while the thread announces
        self._last = Announced()
        self._sent: dict[str, float] = {}  # when each queue was announced last
        self._due: dict[str, list[float]] = {}  # when each is to be announced again
        self._runs = False

    def announce(self, queues: Collection[str]) -> None:
        """These were committed: now, or as soon as they may be."""
        if self._send is None or not queues:
            return
        now = time.monotonic()
        with self._guard:
            times = {name: may_announce_at(self._last, self._sent.get(name)) for name in queues}
            at_once = frozenset(name for name, at in times.items() if at <= now)
            self._note(at_once, now)
            for name in times.keys() - at_once:
                self._add(name, (times[name],))
        self._try(at_once)

    def announce_later(self, queues: Collection[str]) -> None:
        """These are in a transaction that its owner will commit."""
        if self._send is None or not queues:
            return
        now = time.monotonic()
        with self._guard:
            for name in queues:
                self._add(name, [now + delay for delay in LATER])

    def close(self) -> None:
        """Announce at once what would be announced later, and nothing more: the connections are about to be
        closed, and the thread must not open new ones that nothing would close."""
        with self._guard:
            queues = frozenset(self._due)
            self._due.clear()
        with self._sends:
            self._try(queues)

    def _note(self, queues: frozenset[str], now: float) -> None:
        """These are about to be announced: other threads need not."""
        if queues:
            self._last = self._last._replace(at=now)
            self._sent.update(dict.fromkeys(queues, now))

    def _add(self, name: str, instants: Iterable[float]) -> None:
        due = self._due.setdefault(name, [])
        new = [at for at in instants if not any(abs(at - other) < GAP for other in due)]
        if not new:
            return
        due.extend(new)
        due.sort()
        if self._runs:
            self._guard.notify()
            return
        try:
            threading.Thread(target=self._run, name="millpond-notify", daemon=True).start()
            self._runs = True
        except RuntimeError:  # no more threads: nodes look by themselves
            self._due.clear()

    def _run(self) -> None:
        while True:
            with self._guard:
                if not self._due and not self._guard.wait(IDLE) and not self._due:
                    self._runs = False
                    return
                self._await_due()
            with self._sends:
                self._try(self._take_due())

    def _await_due(self) -> None:
        """Wait for the next instant, or until there is an earlier one."""
        if self._due:
            first = min(due[0] for due in self._due.values())
            free = may_announce_at(self._last, None)
            self._guard.wait(max(0.0, max(first, free) - time.monotonic()))

    def _take_due(self) -> frozenset[str]:
        """The queues whose time has come."""
        now = time.monotonic()
        with self._guard:
            if now < may_announce_at(self._last, None):
                return frozenset()
            ready = frozenset(name for name, due in self._due.items() if due[0] <= now)
            self._note(ready, now)
            for name in ready:
                later = [at for at in self._due.pop(name) if at > now]
                if later:
                    self._due[name] = later
        return ready

    def _try(self, queues: frozenset[str]) -> None:
        if self._send is None or not queues:
            return
        began = time.monotonic()
        try:
            self._send(queues)
        except Exception as error:  # only a hint: the jobs are stored, and nodes look without one
            logger.debug("Announcing jobs failed: %s", error)
        now = time.monotonic()
        with self._guard:
            self._last = announced(self._last, now, now - began)

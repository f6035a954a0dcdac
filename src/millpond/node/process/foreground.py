"""A node in the foreground: start it, obey signals, tell the service manager, leave with an exit code.

One thread, which sleeps until a signal or the node's end wakes it; what to do is decided in
`rules/node/shutdown.py`. Nothing that a node does or fails to do keeps this loop from ending it.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Protocol

from millpond.node.observability.report import NodeReport
from millpond.node.process import reaper
from millpond.node.process.sd_notify import Notifier
from millpond.node.process.signals import WOKEN, Signals, name_of
from millpond.rules.node.health import is_live
from millpond.rules.node.shutdown import (
    OVERDUE,
    Ladder,
    Rung,
    Step,
    drain,
    exit_code,
    gives_up_at,
    hurry,
    kill,
    step_for,
)

RARELY = (10_000, 20, 50)  # collections of cyclic garbage: a claim makes thousands of objects and no cycle
LOOK = 5.0  # seconds between looks at orphans and at what `systemctl status` shows
log = logging.getLogger(__name__)


class Runnable(Protocol):
    """What the loop needs of a node. Nothing here waits but `start` and `wait`."""

    def start(self) -> object:
        """Take a lease and begin; raises when it cannot."""

    def drain(self, grace: float, reason: str) -> None:
        """Claim nothing more, give back what has not begun, let running jobs finish within `grace`."""

    def hurry(self) -> None:
        """Give running jobs about a second more."""

    def kill(self) -> None:
        """End running jobs now."""

    def hold(self) -> None:
        """Claim nothing until `go_on`."""

    def go_on(self) -> None:
        """Claim again."""

    def wait(self, timeout: float) -> bool:
        """Has the node stopped? Waits for it."""

    def report(self) -> NodeReport:
        """What the node says about itself."""


def serve(
    node: Runnable,
    *,
    grace: float,
    reload: Callable[[], float] | None = None,
    ready: Callable[[], None] | None = None,
) -> int:
    """Run a node until it has stopped; returns the exit code.

    At SIGHUP `reload` reads the settings again and returns the `grace` from then on.

    Signals are heard from before the node starts, so that one that comes meanwhile is not lost.
    """
    notifier = Notifier()
    with Signals() as signals:
        node.start()
        try:
            if ready is not None:
                ready()
            with rare_collections():
                return _Serving(node, signals, notifier, grace, reload).until_stopped()
        except BaseException:  # a bug; a node that nobody leads must not live on
            node.kill()
            node.wait(OVERDUE)
            raise


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Keep the collector from going through thousands of jobs, and all that was imported, again and again:
    it would take a tenth of the loop's time, in pauses of up to 50 ms."""
    before = gc.get_threshold()
    gc.collect()
    reaper.freeze()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        reaper.unfreeze()


class _Serving:
    """The loop and what it remembers."""

    def __init__(
        self,
        node: Runnable,
        signals: Signals,
        notifier: Notifier,
        grace: float,
        reload: Callable[[], float] | None,
    ) -> None:
        self.node, self.signals, self.notifier = node, signals, notifier
        self.grace, self.reload = grace, reload
        self.ladder = Ladder()
        self.last: int | None = None  # the signal that pushed the node down last
        self.undertaker = reaper.Undertaker()
        self.every = min(LOOK, notifier.every or LOOK)

    def until_stopped(self) -> int:
        """Obey until the node has stopped, or does not answer any more."""
        herald = Thread(target=self._announce_the_end, name="millpond-end", daemon=True)
        herald.start()
        self.notifier.ready(_status(self._report()))
        look_at = time.monotonic()
        while not self.node.wait(0):
            now = time.monotonic()
            if now >= gives_up_at(self.ladder):
                self._leave()
            self._heed_commands()
            if now >= look_at:
                self._look()
                look_at = now + self.every
            number = self.signals.wait(max(0.0, min(look_at, gives_up_at(self.ladder)) - now))
            if number is not None and number != WOKEN:
                self._obey(number)
        herald.join(LOOK)  # before the pipe it writes to is closed
        self._heed_commands()
        if self.ladder.rung is Rung.UP:
            log.error("the node stopped by itself")
        return exit_code(self.ladder, self.last)

    def _heed_commands(self) -> None:
        """A node that was told to drain by a command goes down the same way as after a signal."""
        told = getattr(self.node, "told_to_drain", None)
        if told is not None and self.ladder.rung is Rung.UP:
            self.grace = told
            self._drain("a command")

    def _announce_the_end(self) -> None:
        while not self.node.wait(60.0):
            pass
        self.signals.wake()

    def _obey(self, number: int) -> None:
        name = name_of(number)
        if name == "SIGHUP" and self.signals.terminal_was_closed():
            log.warning("the terminal was closed")
            name = "SIGTERM"
        step = step_for(name, self.ladder, time.monotonic())
        if step is None:
            return
        if step in ("drain", "hurry", "kill"):
            self.last = number
        steps: dict[Step, Callable[[str], None]] = {
            "drain": self._drain,
            "hurry": self._hurry,
            "kill": self._kill,
            "hold": self._hold,
            "go on": self._go_on,
            "reload": self._reload,
        }
        try:
            steps[step](name)
        except Exception:  # the deadline stands: whatever the node fails to do, this process ends
            log.exception("%s could not be obeyed", name)

    # --- steps -------------------------------------------------------------------------------------------
    def _drain(self, name: str) -> None:
        self.ladder = drain(self.ladder, self.grace, time.monotonic())
        self.notifier.stopping(self.grace, "draining")
        log.info("%s: draining, for up to %g s; once more hurries", name, self.grace)
        self.node.drain(self.grace, name)

    def _hurry(self, name: str) -> None:
        self.ladder = hurry(self.ladder, time.monotonic())
        log.warning("%s: running jobs have a second to end; once more kills them", name)
        self.node.hurry()

    def _kill(self, name: str) -> None:
        if self.ladder.rung is Rung.UP:
            self.notifier.stopping(0.0, "killing")
        if self.ladder.rung is Rung.KILL and name != "SIGQUIT":
            self._leave()  # somebody insists
        self.ladder = kill(self.ladder, time.monotonic())
        log.warning("%s: running jobs are killed", name)
        self.node.drain(0.0, name)
        self.node.kill()

    def _hold(self, name: str) -> None:
        log.info("%s: no more jobs are claimed until SIGCONT (kill -CONT %d)", name, os.getpid())
        self.node.hold()

    def _go_on(self, name: str) -> None:
        log.info("%s: jobs are claimed", name)
        self.node.go_on()

    def _reload(self, name: str) -> None:
        """Take new settings; wrong ones change nothing."""
        self.notifier.reloading()
        try:
            if self.reload is not None:
                self.grace = self.reload()
            log.info("%s: settings were read again", name)
        except Exception as error:  # a node must not die of a typing error in a file
            log.error("%s: the settings stay as they were: %s", name, error)
        self.notifier.ready(_status(self._report()))

    # --- beside ------------------------------------------------------------------------------------------
    def _look(self) -> None:
        """The sign of life comes after the report: a node that cannot answer gives none."""
        try:
            self.undertaker.look()
        except Exception:  # out of descriptors, say
            log.exception("orphans could not be looked for")
        report = self._report()
        self.notifier.status(_status(report))
        if report is not None and is_live(report).ok:
            self.notifier.alive()

    def _report(self) -> NodeReport | None:
        try:
            return self.node.report()
        except Exception:  # the loop must go on
            log.exception("the node cannot report")
            return None

    def _leave(self) -> None:
        """The last resort. Workers watch this process and end with it; another node rescues their jobs."""
        log.critical("the node does not end: leaving it as it is")
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(exit_code(self.ladder, self.last) or 1)


def _status(report: NodeReport | None) -> str:
    if report is None:
        return "no report"
    running = sum(pool.running for pool in report.pools)
    waiting = sum(pool.waiting for pool in report.pools)
    trouble = f"; the store is away: {report.store_trouble}" if report.store_trouble else ""
    return f"{report.state}: {running} jobs run, {waiting} wait{trouble}"

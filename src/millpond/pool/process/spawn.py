"""The part of a round that brings workers up: starting, failing to start, and saying so.

When to start is decided in `rules/pool/size.py`, how long to wait after a failure in `rules/pool/restart.py`.
"""

from __future__ import annotations

import errno
import itertools
import os
import pickle
import select
import sys
from collections.abc import Sequence
from multiprocessing.process import current_process
from typing import Any

from millpond.errors import PoolDegraded
from millpond.events import PoolBecameDegraded, WorkerFailedToStart
from millpond.pool.channel.pickling import Packed, pack
from millpond.pool.channel.remote_errors import describe, text_of
from millpond.pool.process.engine import Engine, logger
from millpond.pool.process.round import Round
from millpond.pool.process.starters import (
    Broken,
    ContextStarter,
    LeftOpen,
    Report,
    Started,
    Starter,
    TemplateStarter,
)
from millpond.pool.process.worker_link import Link
from millpond.pool.task import Task
from millpond.pool.worker import template
from millpond.pool.worker.main import Setup
from millpond.pool.worker.resource_limits import resource
from millpond.rules.pool.restart import (
    CROWDED,
    after_failure,
    is_crowded,
    is_degraded,
    may_start,
    respawn_at,
    starts_now,
)
from millpond.rules.pool.size import age_budget, memory_soft_limit

SHORT = (errno.EMFILE, errno.ENFILE, errno.ETOOMANYREFS)  # descriptors are


class Starting(Round):
    """Starts workers and hears how that went."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.starter: Starter | None = None
        self.crowded_until = 0.0  # descriptors are short: no worker is started before
        self.has_warned = False  # of that
        self.identities = itertools.count(1)
        self._initializer: Packed | None = None  # and its arguments, as they were when the first worker began

    def _readable(self, link: Link) -> None:
        raise NotImplementedError

    def _printed(self, link: Link) -> None:
        raise NotImplementedError

    def _take_back_unbegun(self, link: Link) -> None:
        raise NotImplementedError

    def _welcome(self, link: Link) -> None:
        raise NotImplementedError

    def _start_some(self, count: int) -> None:
        engine = self.engine
        if not count:
            return
        if not may_start(engine.starts, self.now):
            self.by(engine.starts.next_try_at)
            return
        if engine.respawns is not None and self.now < respawn_at(engine.respawns):
            self.by(respawn_at(engine.respawns))
            return
        if engine.starts.failures:
            count = 1  # one probe at a time while starts fail
            if any(not link.ready and link.killed_for is None for link in engine.links.values()):
                return
        if self.now < self.crowded_until:
            self.by(self.crowded_until)
            return
        asked = sum(1 for link in engine.links.values() if link.pidfd is None and link.gone_at is None)
        for _ in range(starts_now(count, asked, descriptor_limit())):
            self._start_one()
            if self.now < self.crowded_until:
                return

    def _start_one(self) -> None:
        try:
            if self.starter is None:
                self._open_starter()
            link = Link(
                next(self.identities),
                self.options.name,
                capture=self.options.capture_output,
                concurrency=self.options.concurrency,
            )
        except Exception as error:
            if not self._is_crowded(error):
                self._failed_to_start(text_of(error))
            return
        if self.engine.links and is_crowded(link.highest_descriptor(), descriptor_limit()):
            link.close()
            self._is_crowded(OSError(errno.EMFILE, "the rest is left to the program"))
            return
        try:
            self._bring_up(link)
        except Exception as error:  # out of descriptors, or the initializer cannot be pickled
            link.start_error = f"{text_of(error)}\n{describe(error)}"
            link.gone_at, link.exitcode = self.now, 1
            self.by(self.now)

    def _is_crowded(self, error: Exception) -> bool:
        """Were descriptors short, and are there workers all the same? Then those do the work, and another is
        tried later, or when one of them has gone."""
        workers = len(self.engine.links)
        if not workers or not isinstance(error, OSError) or error.errno not in SHORT:
            return False
        self.crowded_until = self.now + CROWDED
        self.by(self.crowded_until)
        if not self.has_warned:
            self.has_warned = True
            logger.warning(
                "Pool %s: the limit of %d open files leaves room for %d of %d workers (%s). They do all the "
                "work; raise the limit (ulimit -n) to have the others, about 6 for each",
                self.options.name,
                descriptor_limit(),
                workers,
                self.engine.most,
                text_of(error),
            )
        return True

    def _bring_up(self, link: Link) -> None:
        engine = self.engine
        assert self.starter is not None
        engine.links[link.identity] = link
        if self.options.start_timeout is not None:
            self.by(self.now + self.options.start_timeout)
        for descriptor in (link.fd, link.bell):
            engine.epoll.register(descriptor, select.EPOLLONESHOT)
            self.by_fd[descriptor] = lambda: self._readable(link)
        if engine.printer is not None:
            engine.printer(link)
        if link.output is not None:
            engine.epoll.register(link.output, select.EPOLLIN)
            self.by_fd[link.output] = lambda: self._printed(link)
        self._introduce(link)
        self.starter.start(link.identity, link.ends(), warm=engine.functions.by_value_used)
        link.close_ends()
        engine.arm(link)
        for report in self.starter.reports():
            self._report(report)

    def _open_starter(self) -> None:
        options = self.options
        if options.mp_context is None:
            fenced = self.engine.fence is not None
            self.starter = TemplateStarter(options.preload, fenced=fenced, hub=self.engine.hub)
        else:
            initializer = None
            if options.initializer is not None:
                initializer = (options.initializer, options.initargs)
            self.starter = ContextStarter(options.mp_context, initializer)
        for descriptor in self.starter.descriptors():
            self.engine.epoll.register(descriptor, select.EPOLLIN)
            self.by_fd[descriptor] = self._reports

    def _introduce(self, link: Link) -> None:
        options = self.options
        initializer: bytes | None = None
        definitions: Sequence[Any] = ()
        if options.initializer is not None and options.mp_context is None:
            packed = self._initializer
            if packed is None:  # only once: packing an app by value takes longer than all else of a start
                packed = pack((options.initializer, options.initargs), by_value=True, aside=False)
                self._initializer = packed
            initializer, definitions = packed.data, self.engine.functions.prepare(packed.names)
        setup = Setup(
            kind=options.kind,
            concurrency=options.concurrency,
            initializer=initializer,
            views=options.views,
            memory_soft_limit=memory_soft_limit(options.max_memory),
            max_age=age_budget(options.max_age, link.identity),
            authkey=bytes(current_process().authkey),
        )
        link.introduce(definitions, pickle.dumps(setup, 5))

    def _failed_to_start(self, cause: str) -> None:
        engine = self.engine
        engine.starts = after_failure(engine.starts, cause, self.now)
        delay = engine.starts.next_try_at - self.now
        engine.news.append(WorkerFailedToStart(cause, engine.starts.failures, delay))
        self.by(engine.starts.next_try_at)
        hopes = [link for link in engine.links.values() if link.killed_for is None]
        ready = sum(1 for link in hopes if link.ready)
        starting = sum(1 for link in hopes if not link.ready and link.gone_at is None and not link.failure)
        if is_degraded(engine.starts, ready, starting):
            if not engine.degraded:
                engine.degraded = True
                engine.news.append(PoolBecameDegraded(cause))
            self.fail_waiting()

    def fail_waiting(self) -> None:
        """No worker and no prospect of one: whoever waits is told why, instead of waiting for ever."""
        engine = self.engine
        engine.turn(self.now)
        cause = engine.starts.cause
        for task in self.take_waiting():
            error = PoolDegraded(f"{task.name} cannot run: the pool cannot start workers: {cause}")
            engine.settle_soon(task, error)

    def take_waiting(self) -> list[Task]:
        """Empty the queue of everything that is not cancelled."""
        engine = self.engine
        found = []
        while engine.waiting():
            task = engine.take_next()
            if engine.begin(task, self.now):
                found.append(task)
        return found

    def _reports(self) -> None:
        if self.starter is not None:
            for report in self.starter.reports():
                self._report(report)

    def _report(self, report: Report) -> None:
        engine = self.engine
        if isinstance(report, Broken):
            self.lose_starter(report.cause)
            return
        if isinstance(report, LeftOpen):
            logger.warning(
                "Pool %s: importing %s has opened %s. Workers are copies of the process that imported it: "
                "they would share connections and lack threads. Open and start them on first use",
                self.options.name,
                ", ".join(self.options.preload),
                report.what,
            )
            return
        link = engine.links.get(report.identity)
        if isinstance(report, Started):
            if link is None:  # it took too long, and was given up
                template.kill_group(report.pid)
                os.close(report.pidfd)
                return
            link.pid, link.pidfd = report.pid, report.pidfd
            engine.epoll.register(report.pidfd, select.EPOLLIN)
            self.by_fd[report.pidfd] = lambda: self._gone(link)
            if link.killed_at is not None:
                link.kill()  # there was no process yet
            self._welcome(link)
            self.by(self.now)  # it may come after this round's turn
        elif link is not None:
            link.exitcode = report.exitcode
            link.start_error = link.start_error or report.cause
            if link.gone_at is None:
                self._gone(link)

    def _gone(self, link: Link) -> None:
        if link.gone_at is None:
            link.gone_at = self.now
            if link in self.engine.idle:
                self.engine.idle.remove(link)
            self._take_back_unbegun(link)
            if link.pidfd is not None:
                self.engine.epoll.unregister(link.pidfd)
            elif link.killed_for == "start" and not any(other.ready for other in self.engine.links.values()):
                # The template hangs, in a preload perhaps, and has no worker to lose
                if self.starter is not None:
                    self.starter.abandon()
                self.lose_starter(link.start_error)
        self._reports()

    def lose_starter(self, cause: str) -> None:
        """The template is gone, and with it, by their own wish, all its workers: nobody is to blame."""
        if self.starter is not None:
            self.drop_starter()
            self._failed_to_start(cause)

    def drop_starter(self) -> None:
        """Let go of the template; all its workers go with it, those that it was only asked for, too."""
        starter, self.starter = self.starter, None
        if starter is None:
            return
        for descriptor in starter.descriptors():
            self.by_fd.pop(descriptor, None)
            self.engine.epoll.unregister(descriptor)
        starter.close()
        for link in list(self.engine.links.values()):
            link.kill()
            link.lost = True
            if link.pidfd is None:
                link.gone_at, link.exitcode = self.now, 1
                self.by(self.now)  # nothing else would tell that it is to be buried

    def _cause_of_failure(self, link: Link) -> str:
        if link.start_error:
            return link.start_error
        if link.failure is not None:
            try:
                error = pickle.loads(link.failure)
                return f"the initializer raised\n{describe(error)}"
            except BaseException as trouble:
                return f"the initializer raised an error that cannot be unpickled here ({text_of(trouble)})"
        death = link.death(ran_for=None, suspects=0, out_of_memory=False)
        return f"{death.sentence()} before it was ready {death.stack}"


def descriptor_limit() -> int:
    """How many files this process may have open."""
    limit: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit

"""Keeps the crew whole: starts workers, buries the dead, stops what overruns, lets the idle go.

Runs in the dispatcher thread with the engine's lock held. What to do is decided in `rules/`; this file
does it, and turns every end of a worker into exactly one outcome for each task it held.
"""

from __future__ import annotations

import heapq
import itertools
import math
import pickle
import select
import struct
from collections.abc import Callable, Sequence
from concurrent.futures._base import CANCELLED, PENDING
from multiprocessing.process import current_process
from typing import Any

from millpond.errors import MemoryExceeded, PoolDegraded, TaskKilled, TaskTimeout, WorkerDied
from millpond.events import (
    PoolBecameDegraded,
    PoolRecovered,
    TaskCrashed,
    TaskTimedOut,
    WorkerFailedToStart,
    WorkerStarted,
    WorkerStopped,
)
from millpond.pool import page as layout
from millpond.pool import wire
from millpond.pool.engine import MEMORY_POLL, TICK, Engine
from millpond.pool.link import Answer, Doom, Link
from millpond.pool.payload import pack
from millpond.pool.remote import describe
from millpond.pool.start import Broken, ContextStarter, Report, Started, Starter, TemplateStarter
from millpond.pool.system import oom_kills, resident
from millpond.pool.task import Task
from millpond.pool.worker import Setup
from millpond.rules.blame import may_retry, toll
from millpond.rules.crew import Bounds, Crew, age_budget, memory_soft_limit, plan
from millpond.rules.dispatch import Load, victim
from millpond.rules.limits import Limit, judge
from millpond.rules.restart import after_failure, after_success, is_degraded, may_start

STACK_WAIT = 0.05  # how long a worker about to be killed may take to dump its stack
STACK_POLL = 0.002
EXIT_CODE_WAIT = 2.0  # how long the exit code may lag behind the pidfd
LEAVE_WAIT = 5.0  # a worker told to go is killed after this
SOFT_CANCEL_WAIT = 0.3  # an async task told to stop has this long before its worker is killed


class ChunkBroken(Exception):
    """A chunk of a map lost its worker at one item."""

    def __init__(self, index: int, error: BaseException) -> None:
        super().__init__(index)
        self.index = index
        self.error = error


class Upkeep:
    """The dispatcher's view of the crew."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.options = engine.options
        self.starter: Starter | None = None
        self.identities = itertools.count(1)
        self.by_fd: dict[int, Callable[[], None]] = {}
        self.answers: list[Answer] = []
        self.now = 0.0
        self.wake_at = math.inf
        self.oom_seen = oom_kills()
        self.memory_at = 0.0
        self.active_at = 0.0

    # --- one round ------------------------------------------------------------------------------------
    def round(self, now: float, events: list[tuple[int, int]]) -> None:
        """Handle what happened, then everything that time brings."""
        self.now = now
        self.wake_at = math.inf
        for descriptor, mask in events:
            self._handle(descriptor, mask)
        engine = self.engine
        while engine.commands:
            engine.commands.popleft()()
        engine.attention = False
        for link in list(engine.links.values()):
            self._look_at(link)
        self._expire()
        if engine.degraded:
            self.fail_waiting()
        engine.turn(now)
        self._share()
        self._size()
        engine.attention = False
        if engine.inbox:
            self.wake_at = now

    def _handle(self, descriptor: int, mask: int) -> None:
        handler = self.by_fd.get(descriptor)
        if handler is not None:
            self.active_at = self.now
            handler()

    def _look_at(self, link: Link) -> None:
        """Everything that may be due for one worker."""
        if link.news:
            self._hear(link)
        if link.gone_at is not None:
            if link.exitcode is not None or self.now - link.gone_at > EXIT_CODE_WAIT:
                self._bury(link)
                return
            self._by(link.gone_at + EXIT_CODE_WAIT)
        if len(link.inflight) > 1:
            self._poll_ring(link)
        if link.stray and link.draining is None:
            self._drain(link, "stray")
        if link.kill_at is not None:
            self._finish_kill(link)
        elif link.check_at is not None and link.inflight:
            self._check_limits(link)
        self._check_memory(link)
        self._see_off(link)
        if link.out:
            self.engine.arm(link)

    def _see_off(self, link: Link) -> None:
        """A draining worker that holds nothing leaves; one that does not leave is killed."""
        if link.draining is not None and not link.inflight and link.ready and link.leaving_at is None:
            link.leave(self.now)
        if link.leaving_at is not None:
            if self.now - link.leaving_at > LEAVE_WAIT:
                link.kill()
            self._by(link.leaving_at + LEAVE_WAIT)

    def _by(self, instant: float) -> None:
        self.wake_at = min(self.wake_at, instant)

    def _poll_ring(self, link: Link) -> None:
        """Answers may lie unrung behind a task that turned out long."""
        before = len(self.answers)
        self.engine.collect(link, self.answers, self.now)
        if len(self.answers) > before:
            self.active_at = self.now
        self._by(self.now + (TICK if self.now - self.active_at < 10 * TICK else 10 * TICK))

    # --- starting ----------------------------------------------------------------------------------
    def _size(self) -> None:
        engine = self.engine
        links = engine.links.values()
        live = [link for link in links if link.draining is None and link.gone_at is None]
        starting = sum(1 for link in live if not link.ready)
        # Whoever is neither idle nor starting counts as busy, also while it confirms a recall
        busy = len(live) - starting - len(engine.idle)
        waiting = len(engine.queue) + len(engine.returned)
        crew = Crew(
            idle=[(link.identity, link.idle_since) for link in engine.idle],
            busy=busy,
            starting=starting,
            waiting=-(-waiting // self.options.concurrency),
        )
        least = 0 if engine.closing else engine.least
        decision = plan(crew, Bounds(least, engine.most, self.options.idle_timeout), self.now)
        for identity in decision.retire:
            self._drain(engine.links[identity], "idle")
        if decision.look_again_at is not None:
            self._by(decision.look_again_at)
        self._start_some(decision.start, ready=busy + len(crew.idle))

    def _start_some(self, count: int, ready: int) -> None:
        engine = self.engine
        if not count:
            return
        if not may_start(engine.starts, self.now):
            self._by(engine.starts.next_try_at)
            return
        if engine.starts.failures:
            count = 1  # one probe at a time while starts fail
            if any(not link.ready and link.killed_for is None for link in engine.links.values()):
                return
        for _ in range(count):
            self._start_one()

    def _start_one(self) -> None:
        engine, options = self.engine, self.options
        try:
            if self.starter is None:
                self._open_starter()
            assert self.starter is not None
            link = Link(
                next(self.identities),
                options.name,
                capture=options.capture_output,
                concurrency=options.concurrency,
            )
        except OSError as error:
            self._failed_to_start(f"{type(error).__name__}: {error}")
            return
        engine.links[link.identity] = link
        for descriptor in (link.fd, link.bell):
            engine.epoll.register(descriptor, select.EPOLLONESHOT)
            self.by_fd[descriptor] = lambda: self._readable(link)
        if link.output is not None:
            engine.epoll.register(link.output, select.EPOLLIN)
            self.by_fd[link.output] = lambda: self._printed(link)
        try:
            self._introduce(link)
        except Exception as error:  # the initializer cannot be pickled
            link.failure = pickle.dumps(error, 5)
            link.gone_at, link.exitcode = self.now, 1
            self._by(self.now)
            return
        self.starter.start(link.identity, link.ends(), warm=engine.functions.by_value_used)
        link.close_ends()
        engine.arm(link)
        for report in self.starter.reports():
            self._report(report)

    def _open_starter(self) -> None:
        options = self.options
        if options.mp_context is None:
            self.starter = TemplateStarter(options.preload)
        else:
            self.starter = ContextStarter(options.mp_context)
        for descriptor in self.starter.descriptors():
            self.engine.epoll.register(descriptor, select.EPOLLIN)
            self.by_fd[descriptor] = self._reports

    def _introduce(self, link: Link) -> None:
        options = self.options
        initializer: bytes | None = None
        definitions: Sequence[Any] = ()
        if options.initializer is not None:
            packed = pack((options.initializer, options.initargs), by_value=options.mp_context is None)
            initializer, definitions = packed.data, self.engine.functions.prepare(packed.definitions)
            if packed.buffers:
                initializer = pickle.dumps((options.initializer, options.initargs), 5)
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
        self._by(engine.starts.next_try_at)
        ready = sum(1 for link in engine.links.values() if link.ready and link.killed_for is None)
        if is_degraded(engine.starts, ready):
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

    # --- hearing -----------------------------------------------------------------------------------
    def _readable(self, link: Link) -> None:
        link.armed = False
        if link.out:
            link.push()
        self.engine.collect(link, self.answers, self.now)
        self.engine.arm(link)

    def _printed(self, link: Link) -> None:
        if link.read_output() and link.output is not None:
            self.engine.epoll.unregister(link.output)

    def _hear(self, link: Link) -> None:
        """Frames that are not answers."""
        news, link.news = link.news, []
        for frame in news:
            if frame.kind == wire.READY:
                link.ready = True
                (link.pid,) = struct.unpack("<q", frame.body)
                self._welcome(link)
            elif frame.kind == wire.FAILED:
                link.failure = bytes(frame.body)
            elif frame.kind == wire.RETIRE:
                self._drain(link, bytes(frame.body).decode())
            elif frame.kind == wire.RESET_DONE:
                link.recalling = False
                if not link.inflight:
                    self.engine.rest(link, self.now)

    def _welcome(self, link: Link) -> None:
        engine = self.engine
        engine.starts = after_success()
        if engine.degraded:
            engine.degraded = False
            engine.news.append(PoolRecovered())
        engine.news.append(WorkerStarted(link.pid))
        engine.rest(link, self.now)

    def _reports(self) -> None:
        if self.starter is not None:
            for report in self.starter.reports():
                self._report(report)

    def _report(self, report: Report) -> None:
        engine = self.engine
        if isinstance(report, Broken):
            self._lose_starter(report.cause)
            return
        link = engine.links.get(report.identity)
        if isinstance(report, Started):
            assert link is not None
            link.pid, link.pidfd = report.pid, report.pidfd
            engine.epoll.register(report.pidfd, select.EPOLLIN)
            self.by_fd[report.pidfd] = lambda: self._gone(link)
        elif link is not None:
            link.exitcode = report.exitcode
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
        self._reports()

    def _lose_starter(self, cause: str) -> None:
        """The template is gone, and with it, by their own wish, all its workers: nobody is to blame."""
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
        self._failed_to_start(cause)

    # --- the dead -------------------------------------------------------------------------------------
    def _bury(self, link: Link) -> None:
        """A worker is dead. Its answers are safe; then each task it held gets exactly one outcome."""
        engine = self.engine
        while True:
            before = len(self.answers)
            engine.collect(link, self.answers, self.now)
            if len(self.answers) == before:
                break
        self._hear(link)
        self._execute(link)
        self._take_back_unbegun(link)
        for task in link.inflight.values():
            self._died_under(link, task, suspects=len(link.inflight))
        engine.tally.fold(link.page)
        self._forget(link)

    def _take_back_unbegun(self, link: Link) -> None:
        """What a dead worker had not begun is for others, at once."""
        self.engine.collect(link, self.answers, self.now)
        split = toll(list(link.inflight), link.tickets_left())
        self.engine.returned.extendleft(reversed(link.take_back(len(split.unbegun))))

    def _died_under(self, link: Link, task: Task, suspects: int) -> None:
        engine = self.engine
        if link.lost:
            engine.returned.append(task)  # the template died: the environment's fault, nobody pays
            return
        start = link.running().get(task.number)
        oom = oom_kills()
        death = link.death(
            ran_for=None if start is None else max(0.0, self.now - start),
            suspects=suspects,
            out_of_memory=link.exitcode == -9 and link.killed_for is None and oom > self.oom_seen,
        )
        self.oom_seen = oom
        task.crashes += 1
        engine.tally.crashed += 1
        engine.news.append(TaskCrashed(task.name, link.pid, death.sentence()))
        if may_retry(task.crashes, task.options.retries_on_crash):
            engine.returned.append(task)
            return
        text = f"{task.name} did not finish: {death.sentence()}"
        if link.killed_for is not None:
            text += f" because another task in it had to be stopped ({link.killed_for})"
        elif suspects > 1:
            text += f"; {suspects} tasks had begun in it and any of them may be the cause"
        error: BaseException = WorkerDied(text, death)
        if task.items:
            error = ChunkBroken(link.page.words[layout.ITEM], error)
        engine.settle_soon(task, error)

    def _forget(self, link: Link) -> None:
        engine = self.engine
        del engine.links[link.identity]
        if link in engine.idle:
            engine.idle.remove(link)
        reason = link.killed_for or link.draining or "died"
        if link.leaving_at is not None:
            engine.tally.recycled += reason in ("tasks", "memory", "age")
        code = link.exitcode
        if not link.ready and not link.lost and link.draining is None:
            self._failed_to_start(self._cause_of_failure(link))
        else:
            engine.news.append(
                WorkerStopped(
                    link.pid,
                    reason,
                    exitcode=code if code is None or code >= 0 else None,
                    signal=-code if code is not None and code < 0 else None,
                )
            )
        for descriptor in (link.fd, link.bell, link.output, link.pidfd):
            if descriptor is not None:
                self.by_fd.pop(descriptor, None)
        engine.epoll.unregister(link.fd)
        engine.epoll.unregister(link.bell)
        link.close()

    def _cause_of_failure(self, link: Link) -> str:
        if link.failure is not None:
            try:
                error = pickle.loads(link.failure)
                return f"the initializer raised\n{describe(error)}"
            except Exception as trouble:
                return f"the initializer raised an error that cannot be unpickled here ({trouble})"
        death = link.death(ran_for=None, suspects=0, out_of_memory=False)
        return f"{death.sentence()} before it was ready {death.stack}"

    # --- stopping workers -----------------------------------------------------------------------------
    def _drain(self, link: Link, reason: str) -> None:
        """No more tasks for this worker; what it has not begun goes to others; then it may leave."""
        engine = self.engine
        if link.draining is None:
            link.draining = reason
        if link in engine.idle:
            engine.idle.remove(link)
        if link.inflight:
            engine.returned.extendleft(reversed(link.recall()))
        self._see_off(link)

    def _check_limits(self, link: Link) -> None:
        running = link.running()
        limits = [
            Limit(task.number, running.get(task.number), task.options.timeout, task.deadline_at)
            for task in link.inflight.values()
            if task.options.timeout is not None or task.options.deadline is not None
        ]
        verdict = judge(limits, self.now)
        link.check_at = None if math.isinf(verdict.look_again_at) else verdict.look_again_at
        if link.check_at is not None:
            self._by(link.check_at)
        if verdict.expired:
            self.engine.returned.extendleft(reversed(link.recall()))
            link.check_at = self.now + TICK  # one that began at this very moment is overrun, not expired
            self._by(link.check_at)
        for number in verdict.overrun:
            self.stop(link, self._overrun(link, link.inflight[number], running[number]))

    def _overrun(self, link: Link, task: Task, started: float) -> Doom:
        ran_for = self.now - started
        limit = task.options.timeout
        if limit is None or (task.deadline_at is not None and task.deadline_at < started + limit):
            limit = task.options.deadline
            text = f"{task.name} was not done {limit:g} s after its submit; it had run {ran_for:.3g} s"
        else:
            text = f"{task.name} was still running after its timeout of {limit:g} s"

        def error(_: BaseException | None) -> BaseException:
            self.engine.tally.timed_out += 1
            self.engine.news.append(TaskTimedOut(task.name, link.pid, ran_for))
            return TaskTimeout(text + ", and was stopped", limit, "" if link.closed else link.page.stack())

        return Doom(task.number, "timeout", self.now, error)

    def stop(self, link: Link, doom: Doom) -> None:
        """Stop one running task. Async neighbours get a chance: the task alone is cancelled first."""
        if link.concurrency > 1 and doom.number not in link.cancelled and doom.reason != "memory":
            link.cancelled[doom.number] = doom._replace(due_at=self.now + SOFT_CANCEL_WAIT)
            link.send_cancel(doom.number)
            link.check_at = self.now + SOFT_CANCEL_WAIT
            self._by(link.check_at)
            return
        known = link.cancelled.get(doom.number)
        if known is not None and self.now < known.due_at:
            link.check_at = known.due_at
            self._by(known.due_at)
            return
        # From here on the task is lost to its worker: an answer that comes now may be our signal's doing.
        # And nothing else may begin over there, or it would be killed without having done anything.
        engine = self.engine
        engine.returned.extendleft(reversed(link.recall()))
        link.cancelled.pop(doom.number, None)
        link.doomed.append((link.inflight.pop(doom.number), doom))
        if link.kill_at is None:
            link.kill_at = self.now + STACK_WAIT
            link.dumped = 0
            link.ask_for_stack()
        self._by(self.now + STACK_POLL)

    def _finish_kill(self, link: Link) -> None:
        """Kill once the stack is there, or was waited for long enough; the futures fail at that moment."""
        engine = self.engine
        assert link.kill_at is not None
        size = link.page.stack_size()
        if self.now < link.kill_at and not (size and size == link.dumped):
            link.dumped = size
            self._by(min(link.kill_at, self.now + STACK_POLL))
            return
        engine.collect(link, self.answers, self.now)
        link.kill_at = None
        link.killed_for = link.doomed[0][1].reason
        link.draining = link.draining or link.killed_for
        link.kill()
        self._execute(link)

    def _execute(self, link: Link) -> None:
        """Fail the tasks a worker was killed for."""
        doomed, link.doomed = link.doomed, []
        for task, doom in doomed:
            error = doom.error(None)
            if task.items:
                error = ChunkBroken(link.page.words[layout.ITEM], error)
            self.engine.settle_soon(task, error)

    def _check_memory(self, link: Link) -> None:
        limit = self.options.max_memory
        if limit is None or not link.inflight or link.kill_at is not None or link.killed_for:
            return
        if self.now - link.measured_at < MEMORY_POLL:
            self._by(link.measured_at + MEMORY_POLL)
            return
        link.measured_at = self.now
        self._by(self.now + MEMORY_POLL)
        held = resident(link.pid)
        if held <= limit:
            return
        for number, started in link.running().items():
            self.stop(link, self._outgrown(link, link.inflight[number], started, held))

    def _outgrown(self, link: Link, task: Task, started: float, held: int) -> Doom:
        ran_for, suspects = self.now - started, len(link.running())

        def error(_: BaseException | None) -> BaseException:
            self.engine.tally.crashed += 1
            death = link.death(ran_for=ran_for, suspects=suspects, out_of_memory=False)
            return MemoryExceeded(
                f"{task.name} was stopped: its worker {link.pid} held {held:,} bytes, "
                f"more than max_memory={self.options.max_memory:,}",
                death,
            )

        return Doom(task.number, "memory", self.now, error)

    def kill_task(self, task: Task) -> bool:
        """Stop one task that a worker holds; False if it holds it no longer."""
        link = task.link
        if link is None or task.number not in link.inflight:
            return False
        if task.number not in link.running():
            self.engine.returned.extendleft(reversed(link.recall()))
            if task in self.engine.returned:
                self.engine.returned.remove(task)
                self.engine.settle_soon(task, TaskKilled(f"{task.name} was killed before it began"))
                return True

        def error(_: BaseException | None) -> BaseException:
            return TaskKilled(f"{task.name} was killed while it ran, as asked")

        self.stop(link, Doom(task.number, "killed", self.now, error))
        return True

    # --- time ------------------------------------------------------------------------------------------
    def _expire(self) -> None:
        """Reject what has waited too long, even if no worker comes free to notice."""
        engine = self.engine
        while engine.expiry:
            due, _, task = engine.expiry[0]
            state = task._state
            if state is not PENDING and state is not CANCELLED:
                heapq.heappop(engine.expiry)
                continue
            if due > self.now:
                self._by(due)
                return
            heapq.heappop(engine.expiry)
            engine.begin(task, self.now)

    def _share(self) -> None:
        """Idle hands take what others hold and have not begun."""
        engine = self.engine
        if self.options.concurrency > 1 or not engine.idle:
            return
        loads = []
        for link in engine.links.values():
            if not link.inflight or not link.ready or link.kill_at is not None:
                continue
            running = link.running()
            unbegun = len(link.inflight) - len(running)
            if unbegun > 0:
                since = max(running.values(), default=link.fed_at)
                each = link.load / len(link.inflight)
                loads.append(Load(link.identity, unbegun, unbegun * each, self.now - since))
        chosen = victim(len(engine.idle), len(engine.queue) + len(engine.returned), loads)
        if chosen is not None:
            tasks = engine.links[chosen].recall()
            engine.returned.extendleft(reversed(tasks))
            engine.turn(self.now)
        if loads:
            self._by(self.now + TICK)

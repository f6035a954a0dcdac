"""Keeps the crew whole: starts workers, buries the dead, stops what overruns, lets the idle go.

Runs in the dispatcher thread with the engine's lock held. What to do is decided in `rules/`; this file
does it, and turns every end of a worker into exactly one outcome for each task it held.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import struct
from concurrent.futures._base import PENDING

from millpond.errors import TaskKilled, WorkerDied
from millpond.events import (
    PoolRecovered,
    TaskCrashed,
    WorkerStarted,
    WorkerStopped,
)
from millpond.pool.channel import frames
from millpond.pool.channel import shared_page as layout
from millpond.pool.proc import oom_kills
from millpond.pool.process.departures import Departing
from millpond.pool.process.engine import LOOK, TICK, Engine
from millpond.pool.process.spawn import Starting
from millpond.pool.process.stalled_workers import Standing
from millpond.pool.process.stop_tasks import Stopping
from millpond.pool.process.worker_link import Link
from millpond.pool.task import ChunkBroken, Task
from millpond.rules.pool.dispatch import UNHURRIED, Load, in_the_way_for, victim
from millpond.rules.pool.restart import after_death, after_success, may_start
from millpond.rules.pool.size import Bounds, Crew, plan
from millpond.rules.pool.worker_death import may_retry, toll

ARENA_REST = 5.0  # seconds at rest after which a worker's arenas are emptied
EXIT_CODE_WAIT = 2.0  # how long the exit code may lag behind the pidfd
MOST_LOSSES = 2  # a task that was there each time the template died is the likely reason

RECYCLED = ("tasks", "memory", "age", "recycled")  # reasons for which a worker is replaced by plan


class Upkeep(Starting, Stopping, Departing):
    """The dispatcher's view of the crew."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.oom_seen = oom_kills()
        self.standing = Standing(engine, self._gone)
        self.active_at = 0.0
        self.greeted_at = math.inf  # when the first worker was ready

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
        self.by(self.standing.round(now))
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
            # Who went down with the template has nobody left to tell its exit code
            if link.exitcode is not None or link.lost or self.now - link.gone_at > EXIT_CODE_WAIT:
                self._bury(link)
                return
            self._ask_for_exit_code(link.gone_at)
        if len(link.inflight) > 1:
            self._poll_ring(link)
        if link.stray and link.draining is None:
            self._drain(link, "stray")
        if link.kill_at is not None:
            self._finish_kill(link)
        elif link.check_at is not None and link.inflight:
            self._check_limits(link)
        if link.cancelled:
            self._check_cancelled(link)
        self._check_memory(link)
        self._see_off(link)
        self._watch_driver(link)
        self._empty_arenas(link)

    def _empty_arenas(self, link: Link) -> None:
        """Large arguments and results leave up to 128 MB of shared memory behind, which a worker at rest does
        not need."""
        if not link.swollen or link.inflight or not link.ready or link.gone_at is not None:
            return
        if self.now - link.idle_since < ARENA_REST:
            self.by(link.idle_since + ARENA_REST)
            return
        link.swollen = False
        link.page.empty_arenas()

    def _ask_for_exit_code(self, gone_at: float) -> None:
        """A starter without a descriptor cannot tell when it knows more: a fork server writes the exit code
        of a worker a moment after its pidfd is ready. Shown in
        test_the_exit_code_that_a_fork_server_tells_late_is_not_lost."""
        if self.starter is not None and not self.starter.descriptors():
            self._reports()
            self.by(self.now + TICK)
        self.by(gone_at + EXIT_CODE_WAIT)

    def _watch_driver(self, link: Link) -> None:
        """A caller that reads this worker may have been interrupted for good: then it is ours again."""
        if link.driven:
            self.by(self.now + LOOK)
            if self.now - link.driven_at > LOOK:
                link.driven = link.armed = False
        if link.out or not link.armed:
            self.engine.arm(link)

    def _poll_ring(self, link: Link) -> None:
        """Answers may lie unrung behind a task that turned out long."""
        before = link.answered
        self.engine.collect(link, self.now)
        if link.answered > before:
            self.active_at = self.now
        self.by(self.now + (TICK if self.now - self.active_at < 10 * TICK else 10 * TICK))

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
            leaving=sum(1 for link in links if link.leaving_at is not None and link.gone_at is None),
        )
        is_last = engine.closing or engine.is_last
        least = 0 if is_last else max(engine.least, min(engine.keep, engine.most))
        wanted = 0 if is_last and engine.wanted is not None else engine.wanted
        known_at = math.inf if engine.known_at is None or engine.closing else engine.known_at()
        decision = plan(crew, Bounds(least, engine.most, engine.idle_timeout, wanted, known_at), self.now)
        surplus = len(live) - engine.most
        for index, identity in enumerate(decision.retire):
            self._drain(engine.links[identity], "resize" if index < surplus else "idle")
        if decision.look_again_at is not None:
            self.by(decision.look_again_at)
        engine.live = len(live) - len(decision.retire) + decision.start
        if decision.retire and engine.wanted is not None:
            engine.wanted = min(engine.wanted, engine.live)  # else they would be started again at once
        self._start_some(decision.start)

    # --- hearing -----------------------------------------------------------------------------------
    def _readable(self, link: Link) -> None:
        link.armed = False
        if link.out:
            link.push()
        self.engine.collect(link, self.now)
        self.engine.arm(link)

    def _printed(self, link: Link) -> None:
        if link.read_output() and link.output is not None:
            self.engine.epoll.unregister(link.output)

    def _hear(self, link: Link) -> None:
        """Frames that are not answers."""
        news, link.news = link.news, []
        for frame in news:
            if frame.kind == frames.READY:
                link.greeted = True
                (link.pid,) = struct.unpack("<q", frame.body)
                self._welcome(link)
            elif frame.kind == frames.FAILED:
                link.failure = bytes(frame.body)
                link.leaving_at = self.now  # what its initializer has begun ends as in any other worker
            elif frame.kind == frames.RETIRE:
                self._drain(link, bytes(frame.body).decode())
            elif frame.kind == frames.NOTE and self.engine.noted is not None:
                self.engine.noted(bytes(frame.body))
            elif frame.kind == frames.RESET_DONE:
                link.recalling = False
                if not link.inflight:
                    self.engine.rest(link, self.now)

    def _welcome(self, link: Link) -> None:
        """A worker may begin to work: it is ready, and its pidfd is here. The latter may come second, or
        never; then whatever it had been given would die with it."""
        if not link.greeted or link.pidfd is None:
            return
        engine = self.engine
        link.ready = True
        if engine.degraded:
            engine.degraded = False
            engine.news.append(PoolRecovered(engine.starts.failures))
        engine.starts = after_success()
        if link.born_at >= self.greeted_at:  # those before it waited for the template, too
            took, known = self.now - link.born_at, engine.start_cost
            engine.start_cost = took if known is None else known + (took - known) * 0.2
        self.greeted_at = min(self.greeted_at, self.now)
        engine.news.append(WorkerStarted(link.pid))
        engine.rest(link, self.now)

    # --- the dead -------------------------------------------------------------------------------------
    def _bury(self, link: Link) -> None:
        """A worker is dead. Its answers are safe; then each task it held gets exactly one outcome."""
        engine = self.engine
        answered = -1
        while answered != link.answered:  # until nothing more comes
            answered = link.answered
            engine.collect(link, self.now)
        self._hear(link)
        self._execute(link)
        self._take_back_unbegun(link)
        suspects = len(link.inflight) if link.killed_for is None else 0  # the cause is known, and another
        for task in link.inflight.values():
            self._died_under(link, task, suspects=suspects)
        engine.tally.fold(link.page, link.answered)
        self._forget(link)

    def _take_back_unbegun(self, link: Link) -> None:
        """What a dead worker had not begun is for others, at once."""
        self.engine.collect(link, self.now)
        split = toll(list(link.inflight), link.tickets_left())
        self.engine.returned.extendleft(reversed(link.take_back(len(split.unbegun))))

    def _died_under(self, link: Link, task: Task, suspects: int) -> None:
        engine = self.engine
        task.losses += link.lost
        if link.lost and task.losses <= MOST_LOSSES:
            engine.returned.append(task)  # the template died: the environment's fault, nobody pays
            return
        if link.page.words[layout.FENCED]:
            text = f"{task.name} was stopped: it may only run while its node's lease lasts"
            engine.settle_soon(task, TaskKilled(text))
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
        if not link.interrupted:
            engine.tally.crashed += 1
            engine.news.append(TaskCrashed(task.name, link.pid, death.sentence()))
        if may_retry(task.crashes, task.options.retries_on_crash):
            engine.returned.append(task)
            return
        text = f"{task.name} did not finish: {death.sentence()}"
        if link.killed_for == "stalled":
            text += " because it stood still and began none of its tasks"
        elif link.killed_for is not None:
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
            engine.tally.recycled += link.killed_for is None and reason in RECYCLED
        if engine.respawns is not None and link.ready and reason == "died":
            engine.respawns = after_death(engine.respawns, self.now)
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
        for descriptor in (link.fd, link.bell):
            with contextlib.suppress(OSError):  # a start that failed may not have come so far
                engine.epoll.unregister(descriptor)
        link.close()
        self.crowded_until = 0.0  # its descriptors are free

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

    def let_go(self, link: Link, reason: str) -> None:
        """Somebody outside wants this worker to leave when it is done."""
        self._drain(link, reason)

    # --- time ------------------------------------------------------------------------------------------
    def _expire(self) -> None:
        """Reject what has waited too long, even if no worker comes free to notice."""
        engine = self.engine
        while engine.expiry:
            due, _, task = engine.expiry[0]
            if task.done():
                heapq.heappop(engine.expiry)
                continue
            if due > self.now:
                self.by(due)
                return
            heapq.heappop(engine.expiry)
            link = task.link
            if task._state is PENDING:
                engine.begin(task, self.now)
                engine.ended_in_line.add(task, engine.room)
            elif link is not None and task.number in link.inflight and task.number not in link.running():
                # Sent ahead, and stuck behind another: back in line, where its age counts again
                engine.returned.extendleft(reversed(link.recall()))
            if task in engine.returned:
                engine.returned.remove(task)
                engine.begin(task, self.now)  # finds it too old

    def _share(self) -> None:
        """Idle workers take what others hold and have not begun; so does one that may still be started."""
        engine = self.engine
        loads = [load for link in engine.links.values() if (load := self._load(link)).unbegun]
        free = len(engine.idle)
        if self.options.concurrency > 1:
            stuck = {load.worker for load in loads}
            free = sum(
                1 for link in engine.links.values() if link.identity not in stuck and engine.has_room(link)
            )
        if not free and loads and self._may_grow():
            # A worker costs more than a recall: not for a task that is in the way for a moment only. Shown in
            # test_a_task_behind_a_long_one_has_another_worker_started
            loads, free = [load for load in loads if load.running_for >= UNHURRIED], 1
            self.by(self.now + LOOK)
        if not free or not loads:
            return
        chosen = victim(free, engine.waiting(), loads)
        if chosen is not None:
            engine.returned.extendleft(reversed(engine.links[chosen].recall()))
            engine.turn(self.now)
        self.by(self.now + TICK)

    def _may_grow(self) -> bool:
        engine = self.engine
        most = engine.most if engine.wanted is None else min(engine.most, engine.wanted)
        return engine.live < most and may_start(engine.starts, self.now)

    def _load(self, link: Link) -> Load:
        """How much a worker holds that it has not begun, and for how long nothing has moved."""
        if not link.inflight or not link.ready or link.recalling or link.kill_at is not None:
            return Load(link.identity, 0, 0.0, 0.0)
        running = link.running()
        unbegun = len(link.inflight) - len(running) - link.takes_in()
        quiet = self.now - max(running.values(), default=link.fed_at)
        seconds = unbegun * link.load / len(link.inflight) if running else 0.0
        held_up = in_the_way_for(len(running), link.concurrency, quiet)
        return Load(link.identity, unbegun, seconds, held_up)

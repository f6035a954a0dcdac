"""Finds workers that hold tasks and begin none of them, has others run these tasks, and kills the workers.

A worker can stand still between two tasks: stopped by a signal, in a destructor, in a thread that keeps the
interpreter's lock, in what it must take in before a task. No limit of a task applies there, because none
has begun. Runs in the dispatcher with the engine's lock held; `rules/pool/stall.py` decides.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

from millpond.errors import PoolError, TaskTimeout
from millpond.events import WorkerStalled
from millpond.pool.channel import shared_page as layout
from millpond.pool.proc import sight
from millpond.pool.process.engine import LOOK, Engine, logger
from millpond.pool.process.worker_link import Link
from millpond.pool.task import Task
from millpond.rules.pool.stall import SUSPECT, WEIGH, Stall, judge, lateness, patience, reason, weigh

STACK_WAIT = 0.25  # seconds that a worker about to be killed has for its stack
SLOW_FORK = 1.0  # seconds after which what forks workers is looked at: it may have been stopped
DYING = 5.0  # seconds after its SIGKILL that a worker has to be gone
LONG_START = 30.0  # seconds after which a start is shown as a trouble
MOST_HALTS = 2  # workers that may stand still over what one task needs, before the task fails


class Standing:
    """The watch over workers that hold tasks and run none."""

    def __init__(self, engine: Engine, gone: Callable[[Link], object]) -> None:
        self.engine = engine
        self.gone = gone  # buries a worker of which nothing more is heard
        self.now = 0.0
        self.look_at = 0.0

    def round(self, now: float) -> float:
        """Look at every worker, ten times a second at most; returns when to look again."""
        if now < self.look_at:
            return self.look_at
        self.now = now
        again = math.inf
        for link in list(self.engine.links.values()):
            if link.gone_at is not None:
                continue
            if link.killed_at is not None:
                again = min(again, self._look_at_killed(link))
            elif not link.ready:
                again = min(again, self._look_at_starting(link))
            elif link.inflight or link.recalling:
                again = min(again, self._look(link))
            else:
                link.stall = None
        self.look_at = now + LOOK
        return again

    def _look_at_killed(self, link: Link) -> float:
        """A process that the kernel cannot end yet (it waits for a disk, its control group is frozen) runs
        none of its code any more. Its pool goes on, and ends, without it."""
        assert link.killed_at is not None
        due = link.killed_at + DYING
        if self.now < due:
            return due
        if link.pid:
            logger.warning(
                "Worker %d was killed %g s ago and has not ended: left to the kernel", link.pid, DYING
            )
        self.gone(link)
        return self.now

    def _look_at_starting(self, link: Link) -> float:
        """A start that does not end: its stack is asked for, then it is killed and counts as failed."""
        if link.failure is not None:  # it has failed and says why; it is on its way out
            return math.inf
        limit = self.engine.options.start_timeout
        due = math.inf if limit is None else link.born_at + limit
        if self.now < due:
            if link.pidfd is None:  # nothing has been forked for it yet
                if self.now - link.born_at >= SLOW_FORK and self.engine.upkeep.starter is not None:
                    self.engine.upkeep.starter.urge()
                return min(due, self.now + SLOW_FORK)
            return due
        if link.stall is None:
            link.stall = Stall((), self.now, self.now)
            link.ask_for_stack()
        if self.now - link.stall.since < STACK_WAIT:
            return self.now + LOOK
        link.start_error = f"it was not ready {limit:g} s after its start\n{link.page.stack()}"
        link.killed_for = "start"
        link.kill()
        if link.pidfd is None:
            self.gone(link)
        return self.now

    def _look(self, link: Link) -> float:
        if link.kill_at is not None or link.running():
            link.stall = None
            return math.inf
        stall = link.stall
        if stall is None or stall.mark != _mark(link):
            link.stall = Stall(_mark(link), self.now, self.now)
            link.needy = None  # it has come on: what it took in then has done no harm
        elif self.now - max(stall.since + SUSPECT - WEIGH, stall.looked_at) >= WEIGH:
            self._weigh(link, stall)
        return self.now + LOOK

    def _weigh(self, link: Link, stall: Stall) -> None:
        engine = self.engine
        engine.collect(link, self.now)  # an answer that lies there unread is progress
        if stall.mark != _mark(link) or link.running():
            return
        stall = weigh(stall, sight(link.pid), self.now)
        stall = stall._replace(patience=min(stall.patience, self._patience(link)))
        verdict = judge(stall)
        if verdict.move and not stall.moved:
            self._move(link)
            stall = stall._replace(moved=True, mark=_mark(link))
        elif verdict.kill and stall.asked_at is None:
            stall = stall._replace(asked_at=self.now)
            link.ask_for_stack()
        elif verdict.kill:
            self._kill(link, stall)
        link.stall = stall

    def _patience(self, link: Link) -> float:
        """A worker that takes in what a task needs may be importing something large: unless that task has a
        timeout it may take as long as a start."""
        timeouts = [task.options.timeout for task in link.inflight.values()]
        if not link.page.words[layout.TAKING_IN]:
            return patience([*timeouts, self.engine.options.task.timeout])
        timeout = next(iter(timeouts), None)
        return patience([timeout], most=self.engine.options.start_timeout)

    def _move(self, link: Link) -> None:
        """Take back what the worker holds, for whichever worker is free first."""
        link.needy = next(iter(link.inflight.values()), None) if link.takes_in() else None
        self.engine.returned.extendleft(reversed(link.recall()))

    def troubles(self) -> list[str]:
        """A sentence for each worker that stands still or has been starting for long; needs no lock."""
        found, now = [], time.monotonic()
        for link in tuple(self.engine.links.values()):
            stall, starting = link.stall, now - link.born_at
            if link.killed_at is not None or link.gone_at is not None:
                continue
            if not link.ready and starting > LONG_START:
                found.append(f"worker {link.identity} has been starting for {starting:.0f} s")
            elif stall is not None and stall.moved:
                found.append(f"worker {link.pid} begins none of its tasks: {reason(stall.sight)}")
        late = lateness(self.engine.round_since, now, "")
        if late is not None:
            late = lateness(self.engine.round_since, now, self._place())
        return found if late is None else [late, *found]

    def _place(self) -> str:
        """Where the dispatcher's thread is at this moment."""
        thread = None if self.engine.dispatcher is None else self.engine.dispatcher()
        frame = None if thread is None else sys._current_frames().get(thread.ident or 0)
        if frame is None:
            return ""
        return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})"

    def _kill(self, link: Link, stall: Stall) -> None:
        engine = self.engine
        engine.returned.extendleft(reversed(link.take_back(link.tickets_left())))
        link.killed_for = "stalled"
        link.draining = link.draining or "stalled"
        link.kill()
        engine.tally.stalled += 1
        why = reason(stall.sight)
        if link.page.words[layout.TAKING_IN]:
            why = f"{why}, while it takes in what a task needs of __main__"
        stack = link.page.stack()
        engine.news.append(WorkerStalled(link.pid, why, self.now - stall.since, stack))
        if link.needy is not None and not link.needy.done():
            self._charge(link.needy, why, stack)

    def _charge(self, task: Task, why: str, stack: str) -> None:
        """What this task needs has held up its worker before it began. It would hold up one after the other:
        with a timeout it is over, without one it is after a second worker. Shown in
        test_what_hangs_as_it_is_unpickled_ends_its_own_task_and_no_other."""
        engine = self.engine
        task.halts += 1
        timeout = task.options.timeout
        if timeout is None and task.halts < MOST_HALTS:
            return
        if task not in engine.returned:
            return
        engine.returned.remove(task)
        text = f"{task.name} could not begin: {why}"
        if timeout is None:
            engine.settle_soon(task, PoolError(text))
        else:
            engine.tally.timed_out += 1
            engine.settle_soon(
                task, TaskTimeout(f"{text}, for longer than its timeout of {timeout:g} s", timeout, stack)
            )


def _mark(link: Link) -> tuple[int, ...]:
    """Changes whenever the worker comes on: takes something from its socket, begins, or answers."""
    left = link.out[0].nbytes if link.out else 0
    return link.answered, link.frames, link.page.words[layout.WRITTEN], len(link.out), left

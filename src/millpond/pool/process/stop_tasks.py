"""The part of a round that stops tasks: over time, over memory, or because somebody asked.

A worker about to be killed dumps its stack first, if it can. From the moment a task is doomed its worker
begins nothing else, and its future fails at the moment of the kill, not when the process is gone.
"""

from __future__ import annotations

import math

from millpond.errors import MemoryExceeded, TaskKilled, TaskTimeout
from millpond.events import TaskCrashed, TaskTimedOut
from millpond.pool.channel import shared_page as layout
from millpond.pool.proc import resident
from millpond.pool.process.engine import MEMORY_POLL, TICK
from millpond.pool.process.round import Round
from millpond.pool.process.worker_link import Doom, Link
from millpond.pool.task import ChunkBroken, Task
from millpond.rules.pool.limits import Limit, Verdict, judge

STACK_WAIT = 0.25  # how long a worker about to be killed may take to dump its stack on a machine that is busy
STACK_WAIT_SWELLING = 0.05  # while it takes more and more memory
STACK_POLL = 0.002
SOFT_CANCEL_WAIT = 0.3  # an async task told to stop has this long before its worker is killed


class Stopping(Round):
    """Stops tasks and kills workers."""

    def _check_limits(self, link: Link) -> None:
        running, verdict = self._judged(link)
        if verdict.overrun:  # its answer may be there: on a busy machine whoever reads it comes late, too
            self.engine.collect(link, self.now)
            running, verdict = self._judged(link)
        link.check_at = None if math.isinf(verdict.look_again_at) else verdict.look_again_at
        if link.check_at is not None:
            self.by(link.check_at)
        if verdict.expired:
            self.engine.returned.extendleft(reversed(link.recall()))
            link.check_at = self.now + TICK  # one that began at this very moment is overrun, not expired
            self.by(link.check_at)
        for number in verdict.overrun:
            self.stop(link, self._overrun(link, link.inflight[number], running[number]))

    def _judged(self, link: Link) -> tuple[dict[int, float], Verdict]:
        running = link.running()
        limits = [
            Limit(task.number, running.get(task.number), task.options.timeout, task.deadline_at)
            for task in link.inflight.values()
            if task.options.timeout is not None or task.options.deadline is not None
        ]
        return running, judge(limits, self.now)

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
        if link.concurrency > 1 and doom.number not in link.cancelled and doom.spares:
            link.cancelled[doom.number] = doom._replace(due_at=self.now + SOFT_CANCEL_WAIT)
            link.send_cancel(doom.number)
            link.check_at = self.now + SOFT_CANCEL_WAIT
            self.by(link.check_at)
            return
        known = link.cancelled.get(doom.number)
        if known is not None and self.now < known.due_at:
            link.check_at = known.due_at
            self.by(known.due_at)
            return
        # From here on the task is lost to its worker: an answer that comes now may be our signal's doing.
        # And nothing else may begin over there, or it would be killed without having done anything.
        engine = self.engine
        engine.returned.extendleft(reversed(link.recall()))
        link.cancelled.pop(doom.number, None)
        link.doomed.append((link.inflight.pop(doom.number), doom))
        if link.kill_at is None:
            link.kill_at = self.now + (STACK_WAIT_SWELLING if doom.reason == "memory" else STACK_WAIT)
            link.dumped = 0
            link.ask_for_stack()
        self.by(self.now + STACK_POLL)

    def _finish_kill(self, link: Link) -> None:
        """Kill once the stack is there, or was waited for long enough; the futures fail at that moment."""
        engine = self.engine
        assert link.kill_at is not None
        size = link.page.stack_size()
        if self.now < link.kill_at and not (size and size == link.dumped):
            link.dumped = size
            self.by(min(link.kill_at, self.now + STACK_POLL))
            return
        engine.collect(link, self.now)
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
            self.by(link.measured_at + MEMORY_POLL)
            return
        link.measured_at = self.now
        self.by(self.now + MEMORY_POLL)
        held = resident(link.pid)
        if held <= limit:
            return
        for number, started in link.running().items():
            self.stop(link, self._outgrown(link, link.inflight[number], started, held))

    def _outgrown(self, link: Link, task: Task, started: float, held: int) -> Doom:
        ran_for, suspects = self.now - started, len(link.running())

        def error(_: BaseException | None) -> BaseException:
            self.engine.tally.crashed += 1
            self.engine.news.append(TaskCrashed(task.name, link.pid, "it outgrew max_memory"))
            death = link.death(ran_for=ran_for, suspects=suspects, out_of_memory=False)
            return MemoryExceeded(
                f"{task.name} was stopped: its worker {link.pid} held {held:,} bytes, "
                f"more than max_memory={self.options.max_memory:,}",
                death,
            )

        return Doom(task.number, "memory", self.now, error, spares=False)

    def kill_task(self, task: Task) -> bool:
        """Stop one task that a worker holds; False if it holds it no longer."""
        link = task.link
        if link is None or task.number not in link.inflight:
            return False
        if task.number not in link.running():
            self.engine.returned.extendleft(reversed(link.recall()))
            if task in self.engine.returned:
                self.engine.returned.remove(task)
                self.engine.tally.killed += 1
                self.engine.settle_soon(
                    task, TaskKilled(f"{task.name} was killed before it began", began=False)
                )
                return True

        def error(_: BaseException | None) -> BaseException:
            self.engine.tally.killed += 1
            return TaskKilled(f"{task.name} was killed while it ran, as asked")

        self.stop(link, Doom(task.number, "memory" if task.swells else "killed", self.now, error))
        return True

    def _check_cancelled(self, link: Link) -> None:
        """Async tasks that were told to stop and have not: their worker must go."""
        for doom in list(link.cancelled.values()):
            if self.now >= doom.due_at:
                self.stop(link, doom)
            else:
                self.by(doom.due_at)

"""One pool in simulated time: arrivals, workers that start and leave, and the policy that decides.

Drives a policy exactly as a node does: every second, and at once when a job arrives and nobody is idle. Jobs
go to the worker that was busy most recently; a worker leaves after its idle time, and never a busy one.
Nothing here decides how many workers there should be. What a budget adds is in `simulate/budget.py`.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

from millpond.errors import OptionError
from millpond.rules.pool.size import Bounds, Crew, plan
from millpond.rules.scaling.estimates import ANY, Estimates, Loads
from millpond.rules.scaling.policies import EVERY
from millpond.rules.scaling.records import Decision, Memory, Observation, TaskLoad
from millpond.simulate.counters import Tally
from millpond.simulate.records import ONLY, Faults, Law, Run, Setting, Workload

NEVER = float("inf")
DAY = 86_400.0
LONGEST = 366 * DAY  # what may be simulated: a year, minute by minute
QUIET = 3600.0  # seconds without any work after which every law has forgotten what was
SETTLING = 60.0  # seconds before the next work from which on time passes tick by tick again
Held = tuple[float, float, str]  # since when it waits, for how long it will run, its task


class Simulation:
    """The state of a pool. Times are seconds since the beginning."""

    def __init__(self, workload: Workload, law: Law, setting: Setting) -> None:
        self.workload = workload
        self.law = law
        self.setting = setting
        self.rhythm: float = getattr(law, "rhythm", EVERY)
        self.counts_only: bool = getattr(law, "counts_only", False)  # it asks for no estimates
        self.every_arrival: bool = getattr(law, "every_arrival", False)  # it looks, whoever is idle
        self.limits = setting.limits
        self.faults = setting.faults
        self.chance = random.Random(setting.seed)
        self.tally = Tally(setting.max_wait)
        self.now = 0.0
        self.queue: deque[Held] = deque()
        self.waiting: Counter[str] = Counter()
        self.blocked: list[Held] = []
        self.idle: deque[float] = deque()  # since when, least recently used first
        self.running: dict[int, tuple[float, Held]] = {}  # job number: (begun at, job)
        self.ends: list[tuple[float, int]] = []  # in real time
        self.shared_ends: list[tuple[float, int]] = []  # in the slowed time of those that share something
        self.shared = 0
        self.slow_time = 0.0
        self.starting: deque[float] = deque()
        self.leaving = 0
        self.numbers = 0
        self.next_arrival = 0
        self.decided_at = -NEVER
        self.next_tick = 0.0
        self.worked_at = 0.0  # the last tick at which there was anything to do
        self.eager_at = NEVER
        self.eager = 0.0
        self.memory: Any = Memory()
        self.estimates = Estimates(counted_at=0.0)
        self.arrived: Counter[str] = Counter()
        self.came = 0  # jobs, so far
        self.finished: list[tuple[str, float]] = []
        self.keep = self.limits.least
        self.idle_timeout = 60.0
        self.clock_shift = 0.0
        self.plagues = deque(sorted(_plagues(self.faults)))

    # --- time ---------------------------------------------------------------------------------------
    def run(self) -> Run:
        """Until every job has ended. Who is idle then is still there, and costs nothing from then on."""
        for _ in range(self.limits.least):
            self.idle.append(0.0)
        self.tally.workers(0.0, len(self.idle))
        arrivals, total = self.workload.arrivals, len(self.workload.arrivals)
        ends, starting, shared_ends, plagues, idle = (
            self.ends, self.starting, self.shared_ends, self.plagues, self.idle,
        )  # fmt: skip
        while True:
            arrival = arrivals[self.next_arrival] if self.next_arrival < total else NEVER
            end = ends[0][0] if ends else NEVER
            shared_end = self._shared_end() if shared_ends else NEVER
            ready = starting[0] if starting else NEVER
            plague = plagues[0][0] if plagues else NEVER
            moment = min(arrival, end, shared_end, ready, plague, self.next_tick, self.eager_at)
            if arrival is NEVER and self._is_over():
                break
            if self.shared or (idle and idle[0] + self.idle_timeout <= moment):
                self._advance(moment)
            self.now = moment
            if moment == ready:
                self.starting.popleft()
                self._free()
            elif moment == end:
                self._end(heappop(self.ends)[1])
            elif moment == shared_end:
                self.shared -= 1
                self._end(heappop(self.shared_ends)[1])
            elif moment == arrival:
                self._arrive()
            elif moment == plague:
                self._plague()
            else:
                self._decide(is_tick=moment == self.next_tick)
        return self.tally.finished(self.workload, self.now)

    def _is_over(self) -> bool:
        return not self.queue and not self.running and not self.blocked

    def _advance(self, moment: float) -> None:
        """Let time pass; workers whose idle time ends meanwhile leave at their own moment."""
        idle = self.idle
        while idle and idle[0] + self.idle_timeout <= moment and self._alive() > self.keep:
            left_at = max(self.now, idle.popleft() + self.idle_timeout)
            self._left(left_at)
        if self.shared:
            self.slow_time += (moment - self.now) / self._slowness()

    def _slowness(self) -> float:
        return max(1.0, self.shared / self.faults.places)

    def _shared_end(self) -> float:
        return self.now + max(0.0, self.shared_ends[0][0] - self.slow_time) * self._slowness()

    # --- jobs ---------------------------------------------------------------------------------------
    def _arrive(self) -> None:
        number, workload = self.next_arrival, self.workload
        self.next_arrival += 1
        task = workload.tasks[number] if workload.tasks else ONLY
        held = (self.now, workload.services[number], task)
        if self._is_blocked(task):
            self.blocked.append(held)
            return
        self.arrived[task] += 1
        self.came += 1
        self._line_up(held)

    def _line_up(self, held: Held) -> None:
        if self.idle and not self.queue:
            self.idle.pop()
            self._begin(held)
            if self.every_arrival:
                self.eager_at = self.now
            return
        self.queue.append(held)
        self.waiting[held[2]] += 1
        if self.eager_at is NEVER or self.eager_at > self.now:
            self.eager_at = max(self.now, self.decided_at + self.eager)

    def _begin(self, held: Held) -> None:
        since, service, task = held
        now, tally = self.now, self.tally
        self.numbers += 1
        tally.waits.append(now - since)
        tally.begun.append(now)
        self.running[self.numbers] = (now, held)
        if self.faults.contended is not None and self.faults.contended in ("", task):
            self.shared += 1
            heappush(self.shared_ends, (self.slow_time + service, self.numbers))
        else:
            heappush(self.ends, (now + service, self.numbers))

    def _end(self, number: int) -> None:
        found = self.running.pop(number, None)
        if found is None:
            return  # its worker has died
        begun, (_, _, task) = found
        self.finished.append((task, self.now - begun))
        self._free()

    def _free(self) -> None:
        """A worker has nothing to do."""
        if self.leaving > 0:
            self.leaving -= 1
            self._left(self.now)
        elif self.queue:
            held = self.queue.popleft()
            self.waiting[held[2]] -= 1
            self._begin(held)
        else:
            self.idle.append(self.now)

    # --- what goes wrong ----------------------------------------------------------------------------
    def _is_blocked(self, task: str) -> bool:
        shut = self.faults.blocked
        return bool(shut) and any(s.start <= self.now < s.end and s.task == task for s in shut)

    def _plague(self) -> None:
        _, kind, amount = self.plagues.popleft()
        if kind == "step":
            self.clock_shift += amount
        elif kind == "unblock":
            released, self.blocked = self.blocked, []
            for _, service, task in released:
                self.arrived[task] += 1
                self.came += 1
                self._line_up((self.now, service, task))
        elif kind == "loss":
            self._lose(amount)

    def _lose(self, share: float) -> None:
        """Some workers die; their jobs begin anew, first in line."""
        doomed = self.chance.sample(sorted(self.running), int(share * len(self.running)))
        for number in doomed:
            begun, held = self.running.pop(number)
            self.tally.lost_seconds += self.now - begun
            self._put_back(number, (self.now, held[1], held[2]))
            self._left(self.now)
        for _ in range(int(share * len(self.idle))):
            self.idle.popleft()
            self._left(self.now)
        self._serve()

    def _put_back(self, _number: int, held: Held) -> None:
        self.queue.appendleft(held)
        self.waiting[held[2]] += 1

    def _serve(self) -> None:
        """Those who are idle take what waits."""
        while self.idle and self.queue:
            self.idle.pop()
            self._free()

    # --- workers ------------------------------------------------------------------------------------
    def _alive(self) -> int:
        return len(self.running) + len(self.idle) + len(self.starting) - self.leaving

    def _left(self, at: float) -> None:
        self.tally.left(at, self._is_out(at))

    def _is_out(self, at: float) -> bool:
        return bool(self.faults.outages) and any(s.start <= at < s.end for s in self.faults.outages)

    def _decide(self, *, is_tick: bool) -> None:
        now = self.now
        if is_tick:
            self.next_tick = now + self.rhythm
            if self.arrived or self.finished or self.running or self.starting or self.queue:
                self._worked(now)
            if not self.counts_only:
                self.estimates = self.estimates.after(now, self.arrived, self.finished)
            self.arrived = Counter()
            self.finished = []
        self.eager_at = NEVER
        self.decided_at = now
        decision, self.memory = self.law.decide(self._observed(), self.memory, now)
        self._apply(decision)
        if decision.again is not None:
            self.eager_at = now + decision.again
        if is_tick and now - self.worked_at >= QUIET:
            self._skip()

    def _worked(self, now: float) -> None:
        self.worked_at = now
        if now > 2 * LONGEST:
            raise OptionError(
                f"{self.workload.name} is not done after {2 * LONGEST / DAY:g} days: its workers are too few "
                "for its work; let there be more of them, or take a part of it"
            )

    def _skip(self) -> None:
        """Nothing has happened for long, and nobody is about to leave: go on shortly before something does.
        The estimates fade over the gap as over its seconds."""
        now, memory = self.now, self.memory
        is_ours = isinstance(memory, Memory)
        if self._alive() > self.keep or self._is_out(now):
            return
        following = [span.start for span in self.faults.outages if span.start > now]
        following += [self.plagues[0][0]] if self.plagues else []
        following += self.workload.arrivals[self.next_arrival : self.next_arrival + 1]
        ticks = (min(following, default=0.0) - SETTLING - now) // self.rhythm
        if ticks > 1:
            self.next_tick = now + ticks * self.rhythm
            if is_ours:  # a node has decided every second meanwhile
                self.memory = memory._replace(decided_at=self.next_tick - self.rhythm)

    def _in_line(self) -> tuple[int, Mapping[str, int], float]:
        """How many wait for workers, of which task, and since when the first does."""
        return len(self.queue), self.waiting, self.queue[0][0] if self.queue else self.now

    def _cap(self) -> tuple[int | None, str]:
        """How many workers can have work at present, and what there is too little of for more."""
        return None, "resources"

    def _observed(self) -> Observation:
        now = self.now
        number, waiting, since = self._in_line()
        if self.counts_only:
            loads = Loads((TaskLoad(ANY, waiting=number),), (), ())
        else:
            running = [(held[2], now - begun) for begun, held in self.running.values()]
            loads = self.estimates.loads(waiting, running)
        outage = self._is_out(now)
        cap, cap_reason = self._cap()
        return Observation(
            self.limits,
            tasks=loads.tasks,
            oldest=now - since + self.clock_shift if number else 0.0,
            busy=len(self.running),
            idle=len(self.idle),
            starting=len(self.starting),
            remaining=loads.remaining,
            poison=len(loads.poison),
            cap=cap,
            cap_reason=cap_reason,
            measured_at=now,
            arrived=self.came,
            trouble="the store does not answer" if outage else "",
        )

    def _apply(self, decision: Decision) -> None:
        self.tally.decision(decision)
        self.keep, self.idle_timeout, self.eager = decision.keep, decision.idle_timeout, decision.eager
        leave = decision.leave
        while leave > 0 and self.idle:
            self.idle.popleft()
            self._left(self.now)
            leave -= 1
        self.leaving = min(leave, len(self.running))
        start = decision.start or self._brought_up(decision.wanted)
        for _ in range(start):
            self.starting.append(self.now + self.limits.start_cost)
        if start:
            self.tally.started(self.now, start)

    def _brought_up(self, wanted: int) -> int:
        """A pool does not leave work alone, whatever its policy wants."""
        if self.running or self.idle or self.starting:
            return 0
        crew = Crew((), busy=0, starting=0, waiting=self._in_line()[0])
        return plan(crew, Bounds(0, self.limits.most, self.idle_timeout, wanted), self.now).start


def _plagues(faults: Faults) -> list[tuple[float, str, float]]:
    return [
        *((when, "step", amount) for when, amount in faults.steps),
        *((when, "loss", share) for when, share in faults.losses),
        *((span.end, "unblock", 0.0) for span in faults.blocked),
    ]

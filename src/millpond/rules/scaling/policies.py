"""How many workers a pool should have: an observation in, a decision with all its terms out.

`ScaleForWait` is the default: enough workers that what waits begins within the wait that people accept, and
not one more. `ScaleByDepth` counts jobs, `Fixed` counts nothing. None of them ever stops a busy worker:
workers leave by themselves when they have been idle for long. Doubtful data change nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from millpond.rules.scaling import bounds
from millpond.rules.scaling.records import Arrivals, Decision, Limits, Line, Memory, Observation, Policy

EVERY = 1.0  # seconds between decisions
EAGER_SHARE = 0.05  # of the accepted wait: the least between decisions when a job finds nobody idle
EAGER = (0.05, 1.0)  # its bounds in seconds
DEFAULT_MAX_WAIT = 1.0  # for a pool that names none: nobody who said nothing expects to wait
SAMPLED = 0.025  # of the accepted wait: how exactly the ages of those in line are known
HEADROOM = 0.8  # of the accepted wait is planned for; the rest is for what no plan sees
SHORTEST = 0.05  # of the accepted wait: however late it is, do not start the whole world
UNEVEN = 0.4  # the variance of a run's logarithm from which on some are always about to end
SPARE = 2.0  # standard deviations of the load that spares cover when nothing may wait


class ScaleForWait(NamedTuple):
    """As few workers as let 95 of 100 jobs begin within `max_wait` seconds."""

    max_wait: float = DEFAULT_MAX_WAIT

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """Those there are and as many more as waiting jobs need to begin in time; see `_more`."""
        reason = bounds.distrust(observation, memory, now)
        if reason:
            return bounds.held(observation, memory, now, reason, self.max_wait)
        is_stepped = observation.oldest < 0  # a clock went back: nobody is older than 0, and nobody leaves
        if is_stepped:
            observation = observation._replace(oldest=0.0)
        limits, line, alive = observation.limits, observation.line(), observation.alive
        waiting, poison = line.waiting, observation.poison
        arrivals = self._remembered(observation, memory.arrivals, now)
        base = (self._base(limits, line) + poison) / limits.concurrency
        late = self._late(observation, arrivals, waiting, now) if waiting else 0.0
        backlog = max(late, self._more(observation, line)) if waiting else 0.0
        present = alive if waiting else observation.busy
        steady = round(base)
        need = max(steady, math.ceil(present + backlog - 1e-9))
        budget = max(
            bounds.tokens(observation, memory, now), math.ceil(late)
        )  # the wait comes before the cost
        useful = bounds.demand(observation, waiting)
        wanted, binding, limit, leave = bounds.bounded(need, observation, useful, budget)
        if binding == "need":
            binding = "backlog" if backlog else "running" if need == present else "base"
        eager = self._eager() if waiting else 0.0
        decision = Decision(
            wanted,
            keep=alive if is_stepped else bounds.kept(observation, steady, wanted, leave, short=backlog > 0),
            idle_timeout=bounds.idle_timeout(limits),
            alive=alive,
            leave=leave,
            base=base,
            backlog=backlog,
            demand=useful,
            limit=limit,
            binding=binding,
            oldest=observation.oldest,
            max_wait=self.max_wait,
            poison=poison,
            eager=eager,
            again=eager if waiting and alive < limits.most else None,
            need=need,
            queue_depth=waiting,
            busy_workers=observation.busy,
        )
        if wanted > alive:
            budget -= wanted - alive
        return decision, Memory(now, budget, arrivals, memory.own)

    def _eager(self) -> float:
        return min(max(EAGER[0], EAGER_SHARE * self.max_wait), EAGER[1])

    def _remembered(self, observation: Observation, arrivals: Arrivals, now: float) -> Arrivals:
        """How many jobs had come at each moment, as far back as a job may wait."""
        if observation.arrived is None or (arrivals and now - arrivals[-1][0] < self.max_wait * SAMPLED):
            return arrivals
        first, since = 0, now - self.max_wait
        while first < len(arrivals) and arrivals[first][0] < since:
            first += 1
        return (*arrivals[first:], (now, observation.arrived))

    def _late(self, observation: Observation, arrivals: Arrivals, waiting: int, now: float) -> float:
        """How many more workers those jobs need that have waited for as long as is planned: a place for each.

        Nothing is expected of places that are taken. What could be comes from run times, which may be
        unknown, alike within a batch, or longer than a moment ago; so this keeps the wait when every estimate
        is wrong. `tests/simulate/test_loads.py` has thousands of loads: without this, one in seven is late.
        """
        limits, arrived = observation.limits, observation.arrived
        patience = self._slack(limits.start_cost, 0.0)
        if arrived is None or observation.oldest < patience:
            return 0.0
        before = next((number for at, number in arrivals if at >= now - patience), arrived)
        jobs = min(waiting, max(1, waiting - max(0, arrived - before)))  # without those that came later
        return max(0.0, (jobs - _free(observation)) / limits.concurrency)

    def _more(self, observation: Observation, line: Line) -> float:
        """How many workers beyond those there are would let everything in line begin in time.

        Within `slack` seconds a place whose job has r seconds to go begins about slack / r jobs, a free one
        the first at once and then one in each service time; where all take the same time nobody begins one
        in a part of it. What is left over needs new workers, which are free places. Asked for both ends of
        the line: the last has all the time there is and everybody before it; those who cannot have come since
        the oldest, at the rate of arrivals, have what is left to it.
        """
        limits, remaining, age, waiting = (
            observation.limits,
            observation.remaining,
            observation.oldest,
            line.waiting,
        )
        service = max(line.work / waiting, 1e-6)
        freed = 0.0
        for seconds in remaining:
            freed += 1.0 / seconds  # places that become free in a second
        free = _free(observation)
        slack = self._slack(limits.start_cost, 0.0)
        even = 1.0 - line.spread / waiting / UNEVEN
        more = _short(waiting, slack, service, freed, even) - free
        if age:
            old = max(1.0, waiting - line.rate * age)
            more = max(more, _short(old, self._slack(limits.start_cost, age), service, freed, even) - free)
        return more / limits.concurrency if more > 0.0 else 0.0

    def _slack(self, start_cost: float, age: float) -> float:
        """The seconds that are left to a job of this age; however late it is, not nothing at all."""
        return max(HEADROOM * self.max_wait - start_cost - age, SHORTEST * self.max_wait, 1e-3)

    def _base(self, limits: Limits, line: Line) -> float:
        """Places for the load that keeps coming, where starting is not quick beside the accepted wait.

        A place for each running job on average, and spares as in Erlang's formula for 5 of 100 jobs that wait
        longer than `patience` service times. Where a worker starts at once none is needed: the line tells.
        """
        load = line.load
        if not load:
            return 0.0
        slow = min(1.0, 2.0 * limits.start_cost / max(self.max_wait, 1e-3))
        patience = self.max_wait * line.rate / load
        return slow * (load + SPARE / (1.0 + 3.0 * patience) * math.sqrt(load))


def _free(observation: Observation) -> int:
    """Places without a job, with those of workers on their way."""
    return observation.alive * observation.limits.concurrency - len(observation.remaining)


def _short(jobs: float, slack: float, service: float, freed: float, even: float) -> float:
    """How many free places so many jobs need to begin within `slack`, beside those that become free."""
    later = slack / service
    if even > 0.0:
        later -= even * (later % 1.0)
    return (jobs - slack * freed) / (1.0 + later)


class ScaleByDepth(NamedTuple):
    """By the number of jobs in line: above `up` one worker more for every `up`, below `down` one less."""

    up: int
    down: int = 1

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """Depth has no unit of time, so the numbers must be chosen anew when jobs grow longer."""
        reason = bounds.distrust(observation, memory, now)
        if reason:
            return bounds.held(observation, memory, now, reason)
        waiting, alive = observation.waiting, observation.alive
        grow = math.ceil(waiting / self.up) if waiting > self.up else 0
        shrink = int(waiting < self.down and observation.idle > 0)
        need = max(alive, alive - observation.starting + grow) - shrink
        useful = bounds.demand(observation, waiting)
        wanted, binding, limit, leave = bounds.bounded(need, observation, useful)
        decision = Decision(
            wanted=wanted,
            keep=bounds.kept(observation, alive - shrink, wanted, leave),
            idle_timeout=bounds.idle_timeout(observation.limits),
            alive=alive,
            leave=leave,
            backlog=float(grow),
            demand=useful,
            limit=limit,
            binding="depth" if binding == "need" else binding,
            oldest=observation.oldest,
            note=f"{waiting} in line, one more worker for every {self.up}",
            need=need,
            queue_depth=waiting,
            busy_workers=observation.busy,
        )
        return decision, memory._replace(decided_at=now)


class Fixed(NamedTuple):
    """Always so many."""

    workers: int

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """The same at any hour, within the bounds and what the machine has room for."""
        limits = observation.limits
        room, scarce = limits.most, "max"
        if observation.cap is not None and observation.cap < room:
            room, scarce = observation.cap, observation.cap_reason
        wanted = max(min(self.workers, room), bounds.least(limits))
        decision = Decision(
            wanted=wanted,
            keep=wanted,
            idle_timeout=bounds.idle_timeout(limits),
            alive=observation.alive,
            leave=max(0, observation.alive - wanted),
            base=float(self.workers),
            demand=bounds.demand(observation),
            limit=room,
            binding="fixed" if wanted == self.workers else "min" if wanted > self.workers else scarce,
            oldest=observation.oldest,
            need=self.workers,
            queue_depth=observation.waiting,
            busy_workers=observation.busy,
        )
        return decision, memory._replace(decided_at=now)


def policy_for(max_wait: float | None) -> Policy:
    """The policy of a pool that names none."""
    return ScaleForWait(DEFAULT_MAX_WAIT if max_wait is None else max_wait)


def desired(decision: Decision) -> int | None:
    """What would be wanted on a machine without bounds, as far as there is work: for those who start
    machines. A minimum is no wish, or each new node would ask for another one. None if nobody knows: whoever
    takes machines away must not do so because nothing can be measured."""
    if decision.binding == "hold":
        return None
    return min(decision.wanted if decision.need is None else decision.need, decision.demand)


def urgency(decision: Decision) -> float:
    """How much one more worker matters to this pool: about 1 where it just keeps its promise."""
    waited = decision.oldest / decision.max_wait if decision.max_wait else 0.0
    short = (decision.alive + decision.backlog) / max(1, decision.alive)
    return min(max(waited, short if decision.backlog else 0.0, 0.1), 10.0)


# --- in words ---------------------------------------------------------------------------------------------
SHOWN = 0.05  # seconds; a shorter wait would be shown as 0.0
_CAPPED = {
    "max": "at its maximum",
    "min": "at its minimum",
    "demand": "more would have nothing to do",
    "budget": "too many starts lately",
    "warm": "with spares",
    "fixed": "a fixed number",
    "base": "for the load that keeps coming",
    "depth": "",
}


def _in_line(decision: Decision, *, told: bool) -> str:
    """What is to be said of the jobs that wait, where they alone have decided."""
    depth = decision.queue_depth
    if decision.binding == "backlog":
        return "" if told or not depth else f"{depth} {'job waits' if depth == 1 else 'jobs wait'}"
    return "these workers begin what waits in time" if depth else "nothing that may begin waits"


def sentence(pool: str, decision: Decision) -> str:
    """A decision for people: `images 4 -> 6: oldest wait 3.1 s of 10 s; capped by memory`."""
    if decision.binding == "hold":
        return f"{pool} {decision.alive}: held, {decision.note}"
    change = f"{decision.alive}"
    if decision.wanted != decision.alive:
        change += f" -> {decision.wanted}"
    parts = []
    if decision.max_wait is not None and decision.oldest >= SHOWN:
        parts.append(f"oldest wait {decision.oldest:.1f} s of {decision.max_wait:g} s")
    if decision.note:
        parts.append(decision.note)
    if decision.binding in ("running", "backlog"):
        parts.append(_in_line(decision, told=bool(parts)))
    else:
        parts.append(_CAPPED.get(decision.binding, f"capped by {decision.binding}"))
    if decision.poison:
        parts.append(f"{decision.poison} held by jobs that take absurdly long")
    return f"{pool} {change}: " + "; ".join(part for part in parts if part)

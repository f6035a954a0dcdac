"""What bounds every scaling decision: doubtful data, the size of the pool, the machine, the cost of starting.

Pure. A cap never goes below the guaranteed minimum, and nothing here ever stops a busy worker.
"""

from __future__ import annotations

import math

from millpond.rules.scaling.records import Decision, Limits, Memory, Observation

STALE = 5.0  # seconds after which data are too old to act on
JUMP = 30.0  # seconds without a decision: the machine slept, and every age and rate is doubtful once
START_SHARE = 0.02  # of the workers' time that starting them may cost
REFILL = 300.0  # seconds in which a whole pool may be started anew, however dear a start is
LEAST_IDLE = 0.05  # seconds: with less, workers leave and start between jobs that come one after the other
LONGEST_IDLE = 300.0
DEAR_START = 1.0  # seconds: workers that start slower are started before they are needed


# wanted; the term that decided, "need" when nothing did; the smallest cap; how many are beyond what may be
Bounded = tuple[int, str, int, int]


def distrust(observation: Observation, memory: Memory, now: float) -> str:
    """Why these data must not be acted on; empty when they may."""
    if observation.trouble:
        return observation.trouble
    age = now - observation.measured_at
    if age > STALE:
        return f"what is known is {age:.0f} s old"
    if not math.isfinite(observation.oldest) or age < -1.0:
        return "the clock was stepped"
    if memory.decided_at is not None and not 0 <= now - memory.decided_at <= JUMP:
        return "the clock was stepped or stood still"
    return ""


def held(
    observation: Observation, memory: Memory, now: float, reason: str, max_wait: float | None = None
) -> tuple[Decision, Memory]:
    """Change nothing: nobody is started beyond the minimum, and nobody leaves."""
    limits, alive = observation.limits, observation.alive
    wanted = max(alive, least(limits))
    decision = Decision(
        wanted=wanted,
        keep=alive,
        idle_timeout=idle_timeout(limits),
        alive=alive,
        demand=demand(observation),
        limit=limits.most,
        binding="hold",
        oldest=observation.oldest,
        max_wait=max_wait,
        note=reason,
        queue_depth=observation.waiting,
        busy_workers=observation.busy,
    )
    return decision, memory._replace(decided_at=now)


def idle_timeout(limits: Limits) -> float:
    """How long a worker may idle: until its idling has cost as much as starting another one would.

    Then nobody, however clairvoyant, spends less than half as much on idling and starting together.
    """
    if limits.idle_timeout is not None:
        return limits.idle_timeout
    return min(max(LEAST_IDLE, limits.start_cost), LONGEST_IDLE)


def tokens(observation: Observation, memory: Memory, now: float) -> float:
    """Workers that may be started now: a bucket that holds a pool twice over, and is filled no faster than
    keeps starts a small share of the workers' time. A pool that flaps runs dry; a rush never does."""
    limits, starts, since = observation.limits, memory.starts, memory.decided_at
    full = 2.0 * limits.most
    if starts is None or since is None or starts >= full:
        return full
    rate = max(START_SHARE * observation.alive / max(limits.start_cost, 1e-3), limits.most / REFILL)
    return min(full, starts + rate * (now - since))


def demand(observation: Observation, waiting: int | None = None) -> int:
    """Workers that would have something to do."""
    jobs, busy = len(observation.remaining), observation.busy
    jobs += observation.waiting if waiting is None else waiting
    useful = -(-jobs // observation.limits.concurrency)
    return max(busy, useful)


def least(limits: Limits) -> int:
    """The guaranteed minimum."""
    return min(limits.least, limits.most)


def bounded(
    need: int,
    observation: Observation,
    useful: int,
    budget: float = math.inf,
) -> Bounded:
    """As many as are needed, within the caps; the minimum whatever the caps say. `useful` is the demand: more
    than that, but for warm spares, would have nothing to do."""
    limits, alive, room = observation.limits, observation.alive, observation.cap
    lowest, allowed, name = least(limits), limits.most, "max"
    if room is not None and room < allowed:
        allowed, name = room, observation.cap_reason
    cap = allowed
    if useful < cap and alive < cap and limits.start_cost <= DEAR_START:
        cap, name = max(alive, useful), "demand"
    if alive + budget < cap:
        cap, name = alive + int(max(0.0, budget)), "budget"
    wanted, binding = (need, "need") if need <= cap else (cap, name)
    if limits.warm:  # beyond a cap they would leave again at once
        warm = int(min(observation.busy + limits.warm, allowed, alive + max(0.0, budget)))
        if wanted < warm:
            wanted, binding = warm, "warm"
    if wanted < lowest:
        wanted, binding = lowest, "min"
    may = max(lowest, allowed)
    return wanted, binding, cap, alive - may if alive > may else 0


def kept(observation: Observation, base: int, wanted: int, leave: int, *, short: bool = False) -> int:
    """How many stay although they idle. Where there are too few for what waits all of them do: the next jobs
    are on their way to whoever has nothing in hand, and he would be started again at once. Nobody is started
    in order to stay, and nobody stays who has to leave: both are beyond a cap."""
    limits, alive = observation.limits, observation.alive
    warm = observation.busy + limits.warm if limits.warm else 0
    stay = max(limits.least, base, warm, alive if short else 0)
    return min(limits.most, stay, max(wanted, alive - leave))

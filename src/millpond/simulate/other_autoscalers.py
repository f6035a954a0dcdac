"""Other autoscalers' laws, restated from their documentation behind our signature, to compare with.

Idealised: each sees every waiting and running job, its workers start as quickly as ours, and workers it takes
away finish what they run. What differs is the law: its signal, its rhythm and its delays. Delays are the
documented defaults; those of the latency threshold, which nobody documents, are our choice. They are not the
products themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from millpond.rules.scaling.records import Decision, Memory, Observation
from millpond.simulate.records import Law

FOREVER = 1e9


class _Past(NamedTuple):
    """What such a law remembers."""

    looked_at: float = -FOREVER
    wanted: int = 0
    samples: tuple[tuple[float, float], ...] = ()  # (when, what was seen)
    recommended: tuple[tuple[float, int], ...] = ()
    since: float = 0.0  # of the last growth, the panic or the calm


def _past(memory: Memory) -> _Past:
    own = memory.own
    return own if isinstance(own, _Past) else _Past()


def _answer(observation: Observation, memory: Memory, past: _Past, name: str) -> tuple[Decision, Memory]:
    """Have exactly so many from now on: idle ones go at once, busy ones when their job ends."""
    limits = observation.limits
    wanted = max(limits.least, min(past.wanted, limits.most))
    decision = Decision(
        wanted=wanted,
        keep=wanted,
        idle_timeout=FOREVER,
        alive=observation.alive,
        leave=max(0, observation.alive - wanted),
        binding=name,
        oldest=observation.oldest,
        eager=0.0 if name == "celery" else FOREVER,
    )
    return decision, memory._replace(own=past._replace(wanted=wanted))


def _stabilised(past: _Past, now: float, desired: int, window: float) -> tuple[int, _Past]:
    """Kubernetes: go up at once, but by at most 100 % or 4 in a period; down to the highest of the window."""
    current = past.wanted
    desired = min(desired, max(2 * current, current + 4))
    recent = tuple(item for item in past.recommended if item[0] > now - window)
    recommended = (*recent, (now, desired))
    if desired < current:
        desired = min(current, max(value for _, value in recommended))
    return desired, past._replace(recommended=recommended, wanted=desired, looked_at=now)


@dataclass(frozen=True, slots=True)
class KedaStyle:
    """A queue length for each replica, read every 15 s, down after a stabilisation of 5 minutes."""

    per_replica: float = 5.0
    window: float = 300.0
    period: float = 15.0
    counts_only: ClassVar[bool] = True
    rhythm: ClassVar[float] = 15.0

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """The length counts running jobs too, as the RabbitMQ scaler does unless told otherwise."""
        past = _past(memory)
        if now - past.looked_at >= self.period:
            length = observation.waiting + observation.busy
            desired = math.ceil(length / self.per_replica)
            current = max(1, past.wanted)
            if abs(length / (self.per_replica * current) - 1.0) <= 0.1:  # the tolerance
                desired = past.wanted
            _, past = _stabilised(past, now, desired, self.window)
        return _answer(observation, memory, past, "keda")


@dataclass(frozen=True, slots=True)
class HpaStyle:
    """A target for the share of busy workers, read every 15 s, down after 5 minutes."""

    target: float = 0.7
    window: float = 300.0
    period: float = 15.0
    counts_only: ClassVar[bool] = True
    rhythm: ClassVar[float] = 5.0

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """As many as bring the measured share to the target, unless it is within the tolerance."""
        past = _past(memory)
        alive = max(1, observation.alive)
        samples = (*(s for s in past.samples if s[0] > now - self.period), (now, observation.busy / alive))
        past = past._replace(samples=samples)
        if now - past.looked_at >= self.period:
            used = sum(value for _, value in samples) / len(samples)
            ratio = used / self.target
            desired = alive if abs(ratio - 1.0) <= 0.1 else math.ceil(alive * ratio)
            _, past = _stabilised(past, now, desired, self.window)
        return _answer(observation, memory, past, "hpa")


@dataclass(frozen=True, slots=True)
class CeleryStyle:
    """As many processes as tasks, looked at when one comes; fewer only so long after the last growth."""

    keepalive: float = 30.0
    counts_only: ClassVar[bool] = True
    every_arrival: ClassVar[bool] = True  # it may also shrink then

    @property
    def rhythm(self) -> float:
        """Its event loop looks so often when nothing comes."""
        return self.keepalive

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """With the whole queue in view, which the real one has not."""
        past = _past(memory)
        tasks = observation.waiting + observation.busy
        wanted = max(observation.limits.least, min(tasks, observation.limits.most))
        if wanted > past.wanted:
            past = past._replace(wanted=wanted, since=now)
        elif wanted < past.wanted and now - past.since > self.keepalive:
            past = past._replace(wanted=wanted)
        return _answer(observation, memory, past, "celery")


@dataclass(frozen=True, slots=True)
class LatencyThreshold:
    """One more while the oldest job waits longer than this, one less after a calm; read every 10 s. Services
    that do so document the threshold and the rhythm; the calm, and that it is a fifth, are our choice."""

    up: float = 5.0
    step: int = 1
    calm: float = 30.0
    period: float = 10.0
    counts_only: ClassVar[bool] = True
    rhythm: ClassVar[float] = 10.0

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """Down below a fifth of the threshold."""
        past = _past(memory)
        if now - past.looked_at >= self.period:
            wanted = max(past.wanted, observation.limits.least)
            since = past.since
            if observation.oldest > self.up:
                wanted, since = min(wanted + self.step, observation.limits.most), now
            elif observation.oldest > self.up / 5:
                since = now
            elif now - since >= self.calm:
                wanted -= 1
            past = past._replace(looked_at=now, wanted=wanted, since=since)
        return _answer(observation, memory, past, "latency")


@dataclass(frozen=True, slots=True)
class KnativeStyle:
    """A concurrency for each worker, averaged over a minute; over six seconds in a panic."""

    target: float = 0.7
    stable: float = 60.0
    panic: float = 6.0
    period: float = 2.0
    counts_only: ClassVar[bool] = True
    rhythm: ClassVar[float] = 2.0

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """No going down in a panic; else by at most a half each time."""
        past = _past(memory)
        if now - past.looked_at < self.period:
            return _answer(observation, memory, past, "knative")
        seen = (now, float(observation.waiting + observation.busy))
        samples = (*(s for s in past.samples if s[0] > now - self.stable), seen)
        wanted = math.ceil(_mean(samples, now - self.stable) / self.target)
        burst = math.ceil(_mean(samples, now - self.panic) / self.target)
        since = now if burst >= 2 * max(1, observation.busy + observation.idle) else past.since
        if since and now - since < self.stable:
            wanted = max(wanted, burst, past.wanted)
        wanted = max(wanted, past.wanted // 2)
        past = past._replace(looked_at=now, samples=samples, wanted=wanted, since=since)
        return _answer(observation, memory, past, "knative")


def _mean(samples: tuple[tuple[float, float], ...], since: float) -> float:
    values = [value for when, value in samples if when > since]
    return sum(values) / len(values)


class Knob(NamedTuple):
    """What such a law offers its users to set, and the ends between which a setting is looked for."""

    law: Callable[..., Law]
    strict: float  # the end at which jobs wait least and workers cost most
    loose: float  # the other one
    swept: tuple[float, ...]  # by the benchmark, whose jobs take 3 s
    unit: str = (
        ""  # what a good setting grows with: "jobs" that a worker begins within the wait, or the "wait"
    )


# Celery's keep-alive is 30 s unless it is set, and is swept in whole seconds from one second on. An HPA that
# aims beyond 0.9 never grows, for its tolerance.
KNOBS = {
    "keda": Knob(KedaStyle, 0.1, 10_000, (1.5, 2, 3, 4, 4.5), "jobs"),
    "hpa": Knob(HpaStyle, 0.1, 0.9, (0.8, 0.9)),
    "celery": Knob(CeleryStyle, 30, 1, (1, 2, 5, 10, 30)),
    "latency": Knob(LatencyThreshold, 0.01, 3600, (0.5, 1, 2, 4, 5, 6), "wait"),
    "knative": Knob(KnativeStyle, 0.1, 10_000, (0.9, 1.2, 1.5, 2, 3, 3.3), "jobs"),
}

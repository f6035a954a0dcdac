"""Drives the rush: measures the machine, enqueues in bursts, breaks things meanwhile, waits for the end.

One thread that looks, acts when it is time and shows what it saw. What happens when is decided in `plan.py`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

from examples.rush import plan
from examples.rush.fleet import Fleet
from examples.rush.shop import Shop
from examples.rush.view import View
from examples.rush.watch import Look, Watch

EVERY = 0.25  # seconds between looks
WARM_UP = 4 * len(plan.MIX)
MEASURE = 4.0  # seconds of work for the measurement
MOST = 0.95  # of the jobs; a few are refused at first and come back later
ENDING = 3.0  # seconds kept for draining the nodes and doing the accounts
LATER = 1.5  # seconds until a killed node is replaced
STALLED = 60.0  # nothing ended for so long: give up, and let the accounts say what is lost


class Act(NamedTuple):
    """Something to do, so many seconds into the rush."""

    at: float
    do: Callable[[], None]


class Noon:
    """A rush, from the first job to the last."""

    def __init__(self, shop: Shop, fleet: Fleet, watch: Watch, view: View) -> None:
        self.shop = shop
        self.fleet = fleet
        self.watch = watch
        self.view = view
        self.killed_workers = self.killed_nodes = 0
        self._acts: list[Act] = []
        self._began = self._length = self._rate = 0.0
        self._adapts = False
        self._last: tuple[float, float] | None = None  # when the last burst came, and what was done by then
        self._ended_at = time.monotonic()
        self._ended = 0

    # --- how fast is this machine? ------------------------------------------------------------------------
    def calibrate(self) -> None:
        """Measure how many jobs of the mix this machine does in a second."""
        self.view.stage = "calibrate"
        rate = self._measure(WARM_UP)
        self._rate = self._measure(max(WARM_UP, min(1500, int(rate * MEASURE))))
        self.view.say(f"this machine does about {self._rate:.0f} jobs of the mix in a second", "cyan")

    def _measure(self, count: int) -> float:
        began, before = time.monotonic(), self._ended
        self._enqueue(plan.pieces(len(self.shop.ledger), count))
        self._follow(lambda look: look.ended - before >= MOST * count, 0.1)
        return MOST * count / (time.monotonic() - began)

    # --- the rush -----------------------------------------------------------------------------------------
    def rush(self, jobs: int | None, length: float) -> bool:
        """So many jobs, or as many as fit: enqueue, break, wait. False if it came to a standstill."""
        self.view.stage = "rush"
        self._began, self._length, self._adapts = time.monotonic(), length, jobs is None
        jobs = jobs or plan.affordable(self._rate, length)
        dead = sum(map(len, plan.fates(jobs)))
        self.view.say(f"noon: about {jobs:,} jobs are coming, {dead} of them beyond help", "bold")
        self._acts = sorted(self._schedule(jobs, length), key=lambda act: act.at)
        return self._follow(lambda look: not self._acts and look.ended >= len(self.shop.ledger), EVERY)

    def _schedule(self, jobs: int, length: float) -> list[Act]:
        acts = []
        sizes = plan.bursts(jobs)
        for place, fates in enumerate(plan.fates(jobs)):
            at = length * plan.ARRIVING * place / plan.BURSTS
            acts.append(Act(at, functools.partial(self._burst, sizes[place:], fates)))
        often = max(2, min(plan.KILLS, int(length / 3)))
        acts += [Act(at, self._kill_a_worker) for at in plan.kills(length, often)]
        acts.append(Act(length * plan.NODE_DIES, self._kill_a_node))
        acts.append(Act(length * plan.NODE_DIES + LATER, self._replace_the_node))
        return acts

    def _burst(self, planned: list[int], fates: tuple[plan.Fate, ...]) -> None:
        size = self._size(planned) if self._adapts else planned[0]
        number = len(self.shop.ledger)
        self._enqueue(plan.pieces(number, size - len(fates)) + plan.doomed(number + size - len(fates), fates))

    def _size(self, planned: list[int]) -> int:
        """What was planned, corrected by how it has gone since the last burst."""
        look = self.watch.look()
        done = plan.in_jobs_of_the_mix({name: row.completed for name, row in look.queues.items()})
        waiting = sum(row.waiting for row in look.queues.values())
        if self._last and waiting > self._rate:  # else the machine had time to spare, and nothing is learnt
            self._rate = plan.smoothed(self._rate, (done - self._last[1]) / (look.at - self._last[0]))
        self._last = (look.at, done)
        backlog = {name: row.waiting + row.running for name, row in look.queues.items()}
        time_left = self._length - (look.at - self._began)
        can_do = plan.affordable(self._rate, time_left)
        return plan.next_burst(planned, plan.in_jobs_of_the_mix(backlog), can_do)

    def _enqueue(self, work: list[plan.Piece]) -> None:
        self.shop.enqueue(work)
        self.view.enqueued = len(self.shop.ledger)

    def _kill_a_worker(self) -> None:
        done = self.fleet.kill_a_worker()
        if done:
            self.killed_workers += 1
            self.view.say(done, "red")

    def _kill_a_node(self) -> None:
        self.killed_nodes += 1
        self.view.say(self.fleet.kill_a_node(), "bold red")

    def _replace_the_node(self) -> None:
        self.view.say(f"started {self.fleet.start_node().name} in its place", "green")

    # --- looking ------------------------------------------------------------------------------------------
    def _follow(self, is_over: Callable[[Look], bool], every: float) -> bool:
        """Act, look and show until it is over; False if nothing moves any more."""
        self._ended_at = time.monotonic()
        while True:
            while self._acts and self._acts[0].at <= time.monotonic() - self._began:
                self._acts.pop(0).do()
            look = self.watch.look()
            self.view.show(look)
            if is_over(look):
                return True
            if look.ended != self._ended:
                self._ended, self._ended_at = look.ended, look.at
            elif look.at - self._ended_at > STALLED:
                self.view.say(f"nothing has ended for {STALLED:g} s", "bold red")
                return False
            time.sleep(every)

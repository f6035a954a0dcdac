"""A random walk through a reference world: jobs, nodes and faults in any order, every step of it correct.

Chance comes from outside, so that a walk can be repeated and made shorter. It ends drained: faults stop,
what slept wakes up and is refused, what is left is rescued and run.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from millpond.job import Crashed, JobState, Slot
from tests.history.entries import How, Kind
from tests.history.reference import FAILURE, Hold, World
from tests.history.rules import Rules

RULES = Rules(also=("dead(crashed)",))  # a job may be unlucky three times
SLOT = Slot("wander-slot", 1)


class Wanderer:
    """Nodes that claim, run and settle; and somebody who kills and stops them."""

    def __init__(self, world: World, random: Random) -> None:
        self.world, self.random = world, random
        self.jobs: list[str] = []
        self.holds: list[Hold] = []
        self.nodes: list[str] = []  # that speak to the store
        self.stopped: dict[str, str] = {}  # node -> number of the fault
        self.born = 0
        self.add_node()
        self.add_node()

    def add_node(self) -> None:
        self.born += 1
        self.nodes.append(f"w{self.born}")

    def step(self) -> None:
        """Do one thing that can be done now."""
        steps: list[Callable[[], None]] = [self.enqueue]
        if self._ready():
            steps += [self.claim] * 4
        if self._awake():
            steps += [self.go_on] * 8 + [self.give_back]
        if any(hold.started_at for hold in self._awake()):
            steps += [self.kill_worker]
        if len(self.nodes) > 1:
            steps += [self.kill_node, self.stop_node]
        if self.stopped:
            steps += [self.wake]
        self.random.choice(steps)()

    def drain(self) -> None:
        while self.stopped:
            self.wake()
        while self._ready() or self.holds:
            (self.go_on if self.holds else self.claim)()

    # --- steps ----------------------------------------------------------------------------------------
    def enqueue(self) -> None:
        job = f"j{len(self.jobs)}"
        self.jobs.append(job)
        slots = (SLOT,) if self.random.random() < 0.3 else ()
        self.world.enqueue(job, slots=slots, acknowledged=self.random.random() < 0.9)

    def claim(self) -> None:
        self.holds.append(self.world.claim(self.random.choice(self._ready()), self.random.choice(self.nodes)))

    def go_on(self) -> None:
        """The next thing that happens to a job in somebody's hands."""
        hold = self.random.choice(self._awake())
        if not hold.started_at:
            self.world.begin(hold, told=self.random.random() < 0.8)
        elif not hold.effects:
            self.world.effect(hold)
        elif not hold.how:
            again = hold.job.errors == 0 and self.random.random() < 0.3
            self.world.leave(hold, self.random.choice([How.RAISED, How.SNOOZED]) if again else How.RETURNED)
        else:
            assert self.world.settle(hold)
            self.holds.remove(hold)

    def give_back(self) -> None:
        unstarted = [hold for hold in self._awake() if not hold.started_at]
        if unstarted:
            self.world.release(unstarted[0])
            self.holds.remove(unstarted[0])

    def kill_worker(self) -> None:
        hold = self.random.choice([hold for hold in self._awake() if hold.started_at])
        self.world.kill(pid=hold.worker)
        self.world.settle(hold, Crashed(FAILURE))
        self.holds.remove(hold)

    def kill_node(self) -> None:
        node = self._taken_out()
        self.world.kill(node=node)
        self.world.rescue(node)
        self.holds = [hold for hold in self.holds if hold.node != node]

    def stop_node(self) -> None:
        """It stands still long enough to be rescued; jobs in slots are killed in it, as the lease demands."""
        node = self._taken_out()
        self.stopped[node] = self.world.fault(Kind.STOPPED, node=node)
        self.holds = [hold for hold in self.holds if hold.node != node or not hold.job.slots]
        self.world.rescue(node)

    def wake(self) -> None:
        """It goes on with what it held, and every word of it is refused."""
        node = self.random.choice(sorted(self.stopped))
        self.world.over(self.stopped.pop(node))
        for hold in [hold for hold in self.holds if hold.node == node]:
            if not hold.started_at and self.random.random() < 0.5:
                self.world.begin(hold)
            if hold.started_at and not hold.how:
                self.world.effect(hold)
                self.world.leave(hold)
            if hold.how:
                assert not self.world.settle(hold)
            self.holds.remove(hold)

    # --- what there is --------------------------------------------------------------------------------
    def _taken_out(self) -> str:
        node = self.random.choice(self.nodes)
        self.nodes.remove(node)
        self.add_node()
        return node

    def _awake(self) -> list[Hold]:
        return [hold for hold in self.holds if hold.node in self.nodes]

    def _ready(self) -> list[str]:
        jobs = [self.world.jobs[job] for job in self.jobs]
        full = any(job.slots and job.state is JobState.RUNNING for job in jobs)
        return [job.id for job in jobs if job.state is JobState.QUEUED and not (full and job.slots)]


def walk(world: World, random: Random, steps: int, between: Callable[[], None] = lambda: None) -> None:
    """So many steps, half of them before and half of them after what happens in between; then the end."""
    wanderer = Wanderer(world, random)
    for _ in range(steps // 2):
        wanderer.step()
    between()
    for _ in range(steps - steps // 2):
        wanderer.step()
    wanderer.drain()

"""The budget of a simulated node: who waits for memory, cores or tokens, and who holds them.

Decides nothing: `rules/resources/fit.py` is asked as a node asks it, and `rules/resources/learned_needs.py`
learns how long jobs take and what those really use that hold more than they say. Jobs of a task need the same
and stand in the order of their arrival, so the first of each stands for all of them.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from millpond.errors import OptionError
from millpond.node.resources.needs import LARGE
from millpond.rules.resources import fit
from millpond.rules.resources.amounts import amount, part, shown
from millpond.rules.resources.fit import Budget, Candidate, Need, Started
from millpond.rules.resources.learned_needs import Learned
from millpond.simulate.records import Usage, Workload

Held = tuple[float, float, str]  # since when it waits, for how long it will run, its task
NOTHING = Need()


class Given(NamedTuple):
    """A running job, and what it has been given."""

    task: str
    rank: int
    since: float
    need: Need
    used: int  # bytes that it really holds, where that is known


class Room:
    """What the jobs of a simulated node may use together."""

    def __init__(self, budget: Budget, workload: Workload) -> None:
        check(budget, workload)
        self.budget = budget
        self.size = 0  # jobs in line
        self.lines: dict[str, deque[tuple[int, Held]]] = {}  # by task, with their places in line
        self.lacking: dict[str, str] = {}  # what the first of a task waits for; none: for a worker, if at all
        self._declared, self._peaks = workload.needs, workload.peaks
        self._given: dict[int, Given] = {}
        self._learns = len(workload.names) > 1 or bool(self._peaks)  # else nobody asks
        self._learned: dict[str, Learned] = {}
        self._longest: dict[str, float | None] = {}
        self._free_of_need = {task for task in workload.names if not self._declared.get(task)}
        self._ranks = itertools.count()
        self._plan: Sequence[str] | None = None
        self._counted_at = 0.0
        self._waited: defaultdict[str, float] = defaultdict(float)  # seconds, by what was lacking
        self._in_use: defaultdict[str, float] = defaultdict(int)  # of each thing, or promised
        self._peak: dict[str, float] = {}

    # --- the line -------------------------------------------------------------------------------------
    def add(self, held: Held, now: float) -> None:
        """A job has arrived."""
        self._count(now)
        line = self.lines.setdefault(held[2], deque())
        if not line:
            self._plan = None
        line.append((next(self._ranks), held))
        self.size += 1

    def startable(self, now: float) -> Sequence[str]:
        """The tasks whose first job may begin now, in the order in which they should."""
        if self._plan is None:
            self._count(now)
            self._plan, self.lacking = self._asked(now) if len(self.lines) > 1 else self._alone(now)
        return self._plan

    def _asked(self, now: float) -> tuple[Sequence[str], dict[str, str]]:
        """Who may begin, and what the others lack."""
        budget = self.budget._replace(used=sum(given.used for given in self._given.values()))
        found = fit.fit(budget, self._started(now), self._candidates(now), now)
        held_back = found.reserved.lacks if found.reserved else "memory"
        waiting = self.lines.keys() - set(found.start)
        return found.start, {task: found.free.lacks(self.need_of(task, now)) or held_back for task in waiting}

    def _alone(self, now: float) -> tuple[Sequence[str], dict[str, str]]:
        """The same where at most one task has jobs in line: nobody could pass it, so that no room has to be
        made for it."""
        for task in self.lines:
            lacks = self._free().lacks(self.need_of(task, now), first=self._is_first())
            return ((), {task: lacks}) if lacks else ((task,), {})
        return (), {}

    def _candidates(self, now: float) -> Iterator[Candidate]:
        """The first of each task; for want of cores alone, no pool is without a running job."""
        first = self._is_first()
        for rank, task in sorted((line[0][0], task) for task, line in self.lines.items()):
            yield Candidate(task, rank, self.need_of(task, now), self._longest.get(task), first)
            first = False

    def _is_first(self) -> bool:
        return not any(given.need for given in self._given.values())

    def begin(self, task: str, number: int, now: float) -> Held:
        """The first job of this task begins, as this number; what it needs is set aside."""
        self._count(now)
        self._plan = None
        line = self.lines[task]
        rank, held = line.popleft()
        if not line:
            del self.lines[task]
        self.size -= 1
        given = self._given[number] = Given(
            task, rank, now, self.need_of(task, now), self._peaks.get(task, 0)
        )
        for name, much in _parts(given):
            self._in_use[name] += much
            self._peak[name] = max(self._peak.get(name, 0), self._in_use[name])
        return held

    def end(self, number: int, ran: float, now: float) -> None:
        """A job has ended well after so long: there is room, and its task is better known."""
        task = self._give_back(number).task
        if not self._learns:
            return
        learned = self._learned.get(task, Learned()).after_run(now, ran)
        if task in self._peaks:
            learned = learned.after(now, memory=self._peaks[task], cpu=None)
        self._learned[task] = learned
        self._longest[task] = learned.longest()
        if task in self._free_of_need and self.need_of(task, now):
            self._free_of_need.discard(task)

    def put_back(self, number: int, held: Held, now: float) -> None:
        """Its worker has died: it waits again, at its old place."""
        self._count(now)
        given = self._give_back(number)
        line = self.lines.setdefault(given.task, deque())
        line.append((given.rank, held))
        self.lines[given.task] = deque(sorted(line))
        self.size += 1

    def _give_back(self, number: int) -> Given:
        self._plan = None
        given = self._given.pop(number)
        for name, much in _parts(given):
            self._in_use[name] -= much
        return given

    # --- what there is --------------------------------------------------------------------------------
    def need_of(self, task: str, now: float) -> Need:
        """What a job is given: what its task declares, or was seen to use if that is more."""
        declared = self._declared.get(task, NOTHING)
        learned = self._learned.get(task) if task in self._peaks else None
        if learned is None:
            return declared
        memory = min(learned.memory_for(declared.memory, now), self.budget.memory)
        if memory <= declared.memory or memory < max(LARGE, self.budget.memory // 100):
            return declared
        return declared._replace(memory=memory)

    def with_room(self, now: float) -> dict[str, int]:
        """How many of each task only wait for a worker."""
        left = self._free()
        return {
            task: max(1, fit.how_many(left, self.need_of(task, now), len(line)))
            for task, line in self.lines.items()
            if task not in self.lacking
        }

    def cap(self, busy: int, most: int, now: float) -> tuple[int | None, str]:
        """How many workers can have work at present, and what there is too little of for more; None if all
        can, or if there are tasks that need nothing: those must find a worker."""
        wants = {given.task: given.need for given in self._given.values()}
        wants.update((task, self.need_of(task, now)) for task in self.lines)
        if not wants or self._free_of_need:
            return None, ""
        found = fit.places(self._free(), wants.values(), busy, most)
        return (None, "") if found is None else (max(1, found[0]), found[1])

    def _free(self) -> fit.Free:
        budget, used = self.budget, self._in_use
        tokens = {name: number - used[name] for name, number in budget.tokens.items()}
        return fit.Free(budget.memory - int(used["memory"]), budget.cpu - used["cpu"], tokens)

    def _started(self, now: float) -> list[Started]:
        longest = self._longest
        return [
            Started(one.need, one.used, max(now, one.since + (longest.get(one.task) or 0.0)))
            for one in self._given.values()
        ]

    # --- the books ------------------------------------------------------------------------------------
    def _count(self, now: float) -> None:
        """Those who lacked something have waited for it until now."""
        passed, self._counted_at = now - self._counted_at, now
        for task, what in self.lacking.items():
            self._waited[what] += passed * len(self.lines[task])

    def usage(self) -> Usage:
        """What became of the budget."""
        return Usage(self.budget, self._peak, dict(self._waited))


def _parts(given: Given) -> Iterator[tuple[str, float]]:
    """What a job holds: memory counts as used when it is, and when it has been promised."""
    need = given.need
    if need.memory or given.used:
        yield "memory", max(need.memory, given.used)
    if need.cpu:
        yield "cpu", need.cpu
    yield from need.tokens.items()


def check(budget: Budget, workload: Workload) -> None:
    """Refuse jobs that could never begin: they would be waited for until the end of days."""
    for task in sorted(workload.names):
        need = workload.needs.get(task, NOTHING)
        lacks = fit.never_fits(budget, need)
        if lacks is not None:
            has = budget.memory if lacks == "memory" else budget.tokens.get(lacks, 0.0)
            raise OptionError(
                f"jobs of {task!r:.80} need {amount(lacks, part(need, lacks))} and the budget has "
                f"{shown(lacks, has)}: they would never begin; let them need less, or give more"
            )

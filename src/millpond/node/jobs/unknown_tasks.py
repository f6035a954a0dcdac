"""Jobs that the code of this node cannot run: given back without a charge, and not claimed again and again.

A task that the app does not know is named in `Claim.without` for some minutes, so that nodes with other code
get its jobs at once and this one does not spin. A job whose arguments only the worker found unreadable is due
again after a while. Since when no live node has known a task is kept in one document of the store; only after
`unknown_after` of that does a job end dead(unknown).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from millpond.errors import Conflict
from millpond.job import Failure, Job, Outcome, Raised, Released, Unknown, Unread
from millpond.node.lease.code_hash import code_of
from millpond.rules.jobs import known_tasks
from millpond.rules.jobs.known_tasks import Known, Sighting
from millpond.store.protocol import Claim

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")
UNKNOWN_AFTER = 86_400.0
DOCUMENT = "tasks/unknown"
MOST = 50  # names that a claim leaves out; jobs of further ones are due again after a while
MOST_KEPT = 1000  # names in the document
FORGET = 300.0  # seconds until a name is claimed again, to see whether there are jobs of it still
MOST_DOUBTED = 10_000
SOONEST, LATEST = 1.0, 30.0  # seconds between two looks at one name
WARN_EVERY = 60.0


class _Met:
    """A task that is not known here."""

    def __init__(self, now: float) -> None:
        self.at = now
        self.look_at = now
        self.queues: set[str] = set()
        self.is_given_up = False


class _Doubt:
    """A job that could not be read here: since when, and how many times it came."""

    def __init__(self, now: float) -> None:
        self.at = now
        self.times = 0


class UnknownTasks:
    """What this node cannot run. Asked by the claim loop, kept up by the upkeep."""

    def __init__(self, state: NodeState, app: App | None = None, after: float = UNKNOWN_AFTER) -> None:
        self._state = state
        self._app = app
        self._after = after
        self._code = ""
        self._changes = -1  # of the app, when the facts were written
        self._met: dict[str, _Met] = {}
        self._doubted: dict[str, _Doubt] = {}  # by job
        self._resting: dict[tuple[str, str], float] = {}  # queue and task that are left to others, until when
        self._live: list[Known] = []
        self._counted_at = 0.0
        self._lock = threading.Lock()
        self._warned_at: dict[str, float] = {}
        self._is_announced = False

    # --- for the claim loop ---------------------------------------------------------------------------
    def sifted(self, jobs: Sequence[Job], give_up: Callable[[Job, Outcome], None]) -> Sequence[Job]:
        """The jobs whose task the app knows; the others are given up."""
        app = self._app
        if app is None or not jobs:
            return jobs
        kept = [job for job in jobs if job.task in app.tasks or app.knows(job.task)]
        if len(kept) < len(jobs):
            for job in jobs:
                if not app.knows(job.task):
                    give_up(job, self._refused(job))
            self._state.line.ring()
        return kept

    def shape(self, claims: list[Claim]) -> list[Claim]:
        """The same claims without the tasks that were found to be unknown."""
        if not self._met and not self._resting:
            return claims
        now = time.monotonic()
        with self._lock:
            left_out = {
                (queue, name)
                for name, one in self._met.items()
                for queue in one.queues
                if not one.is_given_up
            }
            self._resting = {place: until for place, until in self._resting.items() if until > now}
            left_out.update(self._resting)
        return [_without(claim, left_out) for claim in claims]

    def judged(self, job: Job, outcome: Unread) -> Outcome:
        """What it means that a worker could not read a job: while other code is at work, another node may."""
        is_over = known_tasks.is_given_up(known_tasks.due_since(job), self._state.store_now(), self._after)
        if is_over or self._is_alone_with(job):
            return Raised(outcome.failure)
        self._warn(
            job.task,
            "Job %s cannot be read by the code of this node (%s): it is given back uncharged, since another "
            "node may run other code; for old arguments give the task upgrade=...",
            job.id,
            outcome.failure.message,
        )
        return Released(self._put_off(job))

    def _put_off(self, job: Job) -> float:
        """How long until a job that could not be read here is due again; others get it first."""
        now = time.monotonic()
        with self._lock:
            doubt = self._doubted.get(job.id)
            times = 1 if doubt is None else doubt.times
            delay = known_tasks.back_off(job, times)
            rest = known_tasks.rest(delay, times)
            if rest and len(self._resting) < MOST:
                self._resting[job.queue, job.task] = now + rest
            return delay

    def _refused(self, job: Job) -> Outcome:
        with self._lock:
            met = self._met.get(job.task)
            if met is None:
                if len(self._met) >= MOST:
                    return Released(known_tasks.back_off(job, known_tasks.OFFERS + 2))
                met = self._met[job.task] = _Met(time.monotonic())
            met.queues.add(job.queue)
            is_given_up = met.is_given_up
        if is_given_up:
            return Unknown(Failure("UnknownTask", self._given_up(job.task)))
        self._warn(
            job.task,
            "Task %s is not known to this node: its jobs are left to others, uncharged; a renamed task takes "
            "them over with aliases=[%r]",
            job.task,
            job.task,
        )
        return Released()

    def _given_up(self, task: str) -> str:
        return (
            f"no live node has known task {task!r} for {self._after:g} s: deploy code that has it, or give "
            f"the renamed task aliases=[{task!r}], then replay the job"
        )

    def _warn(self, task: str, text: str, *values: object) -> None:
        now = time.monotonic()
        if now - self._warned_at.get(task, float("-inf")) < WARN_EVERY:
            return
        if len(self._warned_at) > MOST_KEPT:
            self._warned_at.clear()
        self._warned_at[task] = now
        logger.warning(text, *values)

    # A node with newer code may have started since the nodes were last counted: believing that count would
    # charge a job that a live node can read. So the job is given back once, and charged only if a count that
    # was taken after that shows no other code (test_arguments_that_this_code_cannot_read_...).
    def _is_alone_with(self, job: Job) -> bool:
        """Is it certain that no live node has other code for a job that could not be read here?"""
        with self._lock:
            doubt = self._doubted.get(job.id)
            if doubt is None:
                if len(self._doubted) >= MOST_DOUBTED:
                    self._doubted.clear()
                doubt = self._doubted[job.id] = _Doubt(time.monotonic())
            doubt.times += 1
            if self._counted_at <= doubt.at or known_tasks.runs_other_code(self._live, self._code, job):
                return False
            del self._doubted[job.id]
            return True

    # --- for the upkeep -------------------------------------------------------------------------------
    def tell(self) -> None:
        """Write what the app knows into this node's record; tasks may be registered while a node runs."""
        app = self._app
        if app is None or self._changes == app.changes:
            return
        self._changes = app.changes
        self._code = code_of(app)
        self._state.identity.facts.update(known_tasks.facts([*app.tasks, *app.aliases], self._code))

    def look(self) -> None:
        """Find out whether a live node knows what this one does not, and since when none does."""
        self.tell()
        if self._app is None:
            return
        if not self._is_announced:
            self._is_announced = self._note((), ()) is not None
        now = time.monotonic()
        due = self._due(now)
        if not (due or self._is_in_doubt(now)):
            return
        live = known_tasks.live(self._state.store.counts(ready_only=True).nodes)
        with self._lock:
            self._live, self._counted_at = live, now
        if not due:
            return
        given_up = self._note([name for name in due if not known_tasks.is_known(live, name)], live)
        if given_up is not None:
            self._looked(due, given_up, now)

    def _due(self, now: float) -> list[str]:
        """The names to look at; those of long ago and those that the app knows by now are forgotten."""
        assert self._app is not None
        with self._lock:
            for name, one in list(self._met.items()):
                if self._app.knows(name) or now - one.at > FORGET:
                    del self._met[name]
            return [name for name, one in self._met.items() if one.look_at <= now]

    def _is_in_doubt(self, now: float) -> bool:
        """Was a job not readable that the last count of the nodes says nothing about?"""
        with self._lock:
            for job, doubt in list(self._doubted.items()):
                if now - doubt.at > FORGET:
                    del self._doubted[job]
            return any(doubt.at >= self._counted_at for doubt in self._doubted.values())

    # Two nodes may write the document at once: the second is refused and tries again with its next look, so
    # no sighting is lost and `since` never moves back. A node that knows a task takes its name out when it
    # starts, so that "no live node" was also true between two looks (test_a_node_that_knows_a_task_ends_...).
    def _note(self, unknown: Collection[str], live: Sequence[Known]) -> set[str] | None:
        """Bring the document up to date; returns which of these are given up, None if another node wrote
        it meanwhile."""
        assert self._app is not None
        store, now = self._state.store, self._state.store_now()
        found = store.record(DOCUMENT)
        before = read(found.value if found.version else b"{}")
        after = {
            name: one
            for name, one in before.items()
            if not self._app.knows(name) and not known_tasks.is_known(live, name)
        }
        after |= {name: known_tasks.sighted(before.get(name), now) for name in unknown}
        after = dict(sorted(after.items(), key=lambda item: -item[1].seen)[:MOST_KEPT])
        if after != before:
            try:
                store.record(DOCUMENT, msgspec.json.encode(after), found.version)
            except Conflict:
                return None
        is_over = known_tasks.is_given_up
        return {name for name in unknown if name in after and is_over(after[name].since, now, self._after)}

    def _looked(self, names: Iterable[str], given_up: Collection[str], now: float) -> None:
        """What the look has shown. The next one comes soon at first, and while jobs end dead: a node that
        knows the task may start at any time."""
        with self._lock:
            for name in names:
                met = self._met.get(name)
                if met is None:
                    continue
                if name in given_up and not met.is_given_up:
                    logger.error("Jobs of task %s end dead (unknown): %s", name, self._given_up(name))
                met.is_given_up = name in given_up
                pause = SOONEST if met.is_given_up else (now - met.at) / 2
                met.look_at = now + min(LATEST, max(SOONEST, pause))


def _without(claim: Claim, left_out: Collection[tuple[str, str]]) -> Claim:
    names = [name for queue, name in left_out if queue == claim.queue]
    return Claim(claim.queue, claim.limit, (*claim.without, *names)) if names else claim


def read(data: bytes) -> dict[str, Sighting]:
    """The document: unknown tasks by name; nothing if it cannot be read."""
    try:
        return msgspec.json.decode(data, type=dict[str, Sighting])
    except (msgspec.DecodeError, RecursionError):
        return {}

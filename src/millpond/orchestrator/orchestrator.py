"""`app.orchestrator`: the recurring tasks of an app, seen and steered from a program.

Asks and changes only what is stored, so it works in any process, whichever node plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

import msgspec

from millpond.errors import OptionError, UnknownTask
from millpond.handle import JobHandle
from millpond.job import MICROSECONDS, Instant, Job
from millpond.options import check_text, check_whole, nearest
from millpond.orchestrator import triggers
from millpond.orchestrator.leader import Leader
from millpond.orchestrator.ledger import Entry, Ledger, shard_of
from millpond.orchestrator.read_status import Scene, history_of, is_enabled, status_of
from millpond.orchestrator.skip_log import KEEP, Skipped, log_name
from millpond.orchestrator.status import OrchestratorStatus, RecurringStatus, TickRecord
from millpond.orchestrator.switches import Switches
from millpond.orchestrator.tick import Draft
from millpond.orchestrator.tick_ids import tick_id
from millpond.payload.codec import encode
from millpond.recurring import (
    Exclusions,
    RecurringDecorator,
    RecurringKeywords,
    RecurringTask,
    check_all,
)
from millpond.rules.recurring.breaker import gate, runs_from
from millpond.rules.recurring.cadence import next_after
from millpond.units import seconds

if TYPE_CHECKING:
    from millpond.app import App

P = ParamSpec("P")
R = TypeVar("R")
TRIES = 100  # instants that a run begun by hand may find taken
PAGE = 500


class Orchestrator:
    """The recurring tasks of an app."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._max_concurrent: int | None = None
        self._checked: tuple[int, int | None, Exclusions] | None = None

    # --- what there is ---------------------------------------------------------------------------------
    def register(
        self, function: Callable[P, R], /, **options: Unpack[RecurringKeywords]
    ) -> RecurringTask[P, R]:
        """The same as `@app.recurring(...)` on the function."""
        return RecurringDecorator(self._app, options)(function)

    @property
    def tasks(self) -> dict[str, RecurringTask[..., Any]]:
        """The recurring tasks of the app, by name."""
        return {name: task for name, task in self._app.tasks.items() if isinstance(task, RecurringTask)}

    @property
    def max_concurrent(self) -> int | None:
        """How many ticks may run at a time on all nodes together; None for no limit.

        A continuous task does not count: it would take a place for ever. Ticks of a cadence take turns by
        priority, one level higher for each minute waited; triggers and jobs enqueued by hand go by priority.
        """
        return self._max_concurrent

    @max_concurrent.setter
    def max_concurrent(self, most: int | None) -> None:
        self._max_concurrent = None if most is None else check_whole(most, "max_concurrent", 1, 1_000_000)

    @property
    def exclusions(self) -> Exclusions:
        """Who keeps away from whom. Raises OptionError if tasks say impossible things about each other."""
        state = (self._app.changes, self._max_concurrent)
        if self._checked is None or self._checked[:2] != state:
            self._checked = (*state, check_all(self.tasks, self._max_concurrent))
        return self._checked[2]

    def check(self) -> None:
        """Raise OptionError if tasks depend on or block what is not there, or go in circles."""
        self._checked = None
        _ = self.exclusions

    def leader_document(self) -> str:
        """Where those who plan these very tasks agree on one: other code has other tasks, and a planner."""
        names = "\0".join(sorted(self.tasks)).encode()
        return f"recurring/{self._app.name}/leader/{blake2b(names, digest_size=6).hexdigest()}"

    # --- looking ---------------------------------------------------------------------------------------
    def status(self) -> OrchestratorStatus:
        """How everything stands."""
        store, tasks = self._app.store, self.tasks
        ledger = Ledger(store, self._app.name)
        ledger.load()
        entries = {**{name: Entry() for name in tasks}, **ledger.all()}
        scene = self._scene(entries)
        rows = {
            name: status_of(name, tasks.get(name), entry, scene) for name, entry in sorted(entries.items())
        }
        leader = self._leader()
        node = leader.node if leader.node in scene.nodes else None  # it may have died with the lead
        running = sum(row.running for row in rows.values())
        return OrchestratorStatus(node, leader.term, running, self._max_concurrent, rows)

    def status_of(self, task: RecurringTask[..., Any] | str) -> RecurringStatus:
        """How one task stands."""
        name = self._name(task, also_retired=True)
        entry = self._entry(name)
        scene = self._scene({name: entry})
        if any(job.parked is not None for job in scene.jobs.values()):  # who is in the way? others know
            return self.status().tasks[name]
        return status_of(name, self.tasks.get(name), entry, scene)

    def history(self, task: RecurringTask[..., Any] | str, limit: int = 50) -> list[TickRecord]:
        """What came of its last ticks, the newest first: how each ended, or why it did not run."""
        name = self._name(task, also_retired=True)
        return history_of(self._app.store, name, self.tasks.get(name), self._entry(name), limit)

    def upcoming(self, span: float | timedelta | str = "24h") -> Iterator[tuple[Instant, str]]:
        """When enabled tasks are due from now on, in order; of one whose breaker is open, only what comes
        after its probe, if there will be one."""
        import heapq

        now = self.now()
        until = now + round(seconds(span, name="span") * MICROSECONDS)
        switches = self._switches().read()
        ledger = Ledger(self._app.store, self._app.name)
        ledger.load()
        lines = []
        for name, task in self.tasks.items():
            begin = runs_from((ledger.get(name) or Entry()).breaker, now)
            if task.cadence is not None and begin is not None and is_enabled(task, switches.get(name)):
                lines.append(_instants(task, begin, until))
        return heapq.merge(*lines)

    def _scene(self, entries: dict[str, Entry]) -> Scene:
        store = self._app.store
        ids = [tick_id(name, at) for name, entry in entries.items() for at in entry.unfinished]
        jobs: dict[str, Job] = {}
        for first in range(0, len(ids), PAGE):
            found = store.get(ids[first : first + PAGE])
            jobs.update({job.id: job for job in found if job is not None})
        known = store.counts().nodes
        nodes = frozenset(node.id for node in known if node.lease_left > 0 and not node.sealed)
        return Scene(store.clock.now(), self._switches().read(), jobs, nodes)

    def _leader(self) -> Leader:
        found = self._app.store.record(self.leader_document())
        try:
            return msgspec.json.decode(found.value, type=Leader) if found.version else Leader()
        except msgspec.MsgspecError:
            return Leader()

    def _entry(self, name: str) -> Entry:
        ledger = Ledger(self._app.store, self._app.name)
        ledger.load([shard_of(name)])
        return ledger.get(name) or Entry()

    # --- steering --------------------------------------------------------------------------------------
    def enable(self, task: RecurringTask[..., Any] | str, *, by: str = "") -> None:
        """Let a task run again: a closed breaker, no failures counted."""
        self._turn(task, enabled=True, by=by)

    def disable(self, task: RecurringTask[..., Any] | str, *, by: str = "") -> None:
        """Let no more ticks of its cadence run until it is enabled; what runs goes on, and `trigger` still
        runs it. The machine never undoes it."""
        self._turn(task, enabled=False, by=by)

    def _turn(self, task: RecurringTask[..., Any] | str, *, enabled: bool, by: str) -> None:
        self._switches().turn(self._name(task), enabled=enabled, at=self.now(), by=by)

    def trigger(
        self,
        task: RecurringTask[..., Any] | str,
        payload: Any = None,
        *,
        key: str = "",
        wait: float | timedelta | str | None = None,
    ) -> bool:
        """Run a task now, whatever its cadence says, also one that is disabled. False if it runs already and
        may not overlap; of triggers that are gathered, if its breaker is open.

        `payload` and `key` are for triggered tasks: payloads that are gathered go to one run as a list.
        With `wait` the run must end within it; raises as `JobHandle.result()` does.
        """
        found = self.tasks[self._name(task)]
        self._check_trigger(found, payload, key)
        if payload is not None:
            found.payload_of([payload])  # refuse it here, not where nobody sees it
        if key or found.trigger_rule.debounce:
            if wait is not None:
                raise OptionError("wait is for a run that begins at once, not for triggers that are gathered")
            if gate(self._entry(found.name).breaker, self.now()) == "breaker":
                return False  # what is accepted runs
            said = triggers.Trigger(found.name, key=check_text(key, "key") if key else "")
            if payload is not None:
                said = msgspec.structs.replace(said, payload=msgspec.Raw(encode(payload, "payload")))
            self._say(said)
            return True
        job = self._run_now(found, payload)
        if job is not None and wait is not None:
            JobHandle(self._app.store, job).result(wait)
        return job is not None

    def _check_trigger(self, task: RecurringTask[..., Any], payload: Any, key: str) -> None:
        if task.mode == "continuous":
            raise OptionError(f"{task.name} is continuous: it is kept running, there is nothing to trigger")
        if (payload is not None and not task.takes_payloads) or (key and task.mode != "triggered"):
            raise OptionError(
                f"{task.name} takes no payload: that is for mode='triggered' and a function with a parameter"
            )

    def _run_now(self, task: RecurringTask[..., Any], payload: Any) -> str | None:
        """Enqueue a tick of this very moment; returns its job, or None if another holds its place."""
        store = self._app.store
        now = at = self.now()
        content = task.payload_of([] if payload is None else [payload]) if task.takes_payloads else None
        while not store.plan([Draft(task, at, at, payload=content).tick(now)])[0]:
            at += 1
            if at > now + TRIES:
                raise OptionError(f"{task.name} was triggered {TRIES} times in the same instant")
        job = tick_id(task.name, at)
        if store.get([job])[0] is None:
            line = msgspec.json.encode(Skipped(at, "overlap"))
            store.log(log_name(task.name), [line], limit=0, keep=KEEP)
            return None
        self._say(triggers.Trigger(task.name, at))
        return job

    def _say(self, trigger: triggers.Trigger) -> None:
        triggers.say(self._app.store, self._app.name, trigger)

    def forget(self, name: str) -> None:
        """Remember a retired task no longer. One that is in the code cannot be forgotten."""
        if name in self.tasks:
            raise OptionError(f"{name} is in the code: remove it there, or disable it")
        ledger = Ledger(self._app.store, self._app.name)
        ledger.load([shard_of(self._name(name, also_retired=True))])
        ledger.forget(name)
        ledger.flush(shard_of(name))
        self._switches().forget(name)

    def now(self) -> Instant:
        """The store's time; a server has to be asked something before its time is known."""
        self._leader()
        return self._app.store.clock.now()

    # --- names -----------------------------------------------------------------------------------------
    def _switches(self) -> Switches:
        return Switches(self._app.store, self._app.name)

    def _name(self, task: RecurringTask[..., Any] | str, *, also_retired: bool = False) -> str:
        name = task.name if isinstance(task, RecurringTask) else check_text(task, "the name of a task")
        tasks = self.tasks
        if name in tasks or (also_retired and self._is_remembered(name)):
            return name
        ending = [full for full in tasks if full.endswith(f".{name}")]
        if len(ending) == 1:  # the function's own name will do where it is clear
            return ending[0]
        raise UnknownTask(f"no recurring task is called {name!r:.200}{nearest(name, tasks)}")

    def _is_remembered(self, name: str) -> bool:
        ledger = Ledger(self._app.store, self._app.name)
        ledger.load([shard_of(name)])
        return ledger.get(name) is not None


def _instants(task: RecurringTask[..., Any], after: Instant, until: Instant) -> Iterator[tuple[Instant, str]]:
    assert task.cadence is not None
    at = next_after(task.cadence, after - task.offset)
    while at is not None and at + task.offset <= until:
        yield at + task.offset, task.name
        at = next_after(task.cadence, at)

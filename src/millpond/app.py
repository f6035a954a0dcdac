"""`App`: a store and a registry of tasks; what a program's jobs are made of.

Tasks are found by their registered names and by nothing else. The store is opened by its URL and connected
on first use.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from msgspec.structs import replace

from millpond.config import check_redact, load
from millpond.errors import OptionError, OutcomeUnknown, UnknownTask
from millpond.handle import JobHandle
from millpond.job import Enqueued, NewJob
from millpond.options import TaskKeywords, check_id, check_text, check_tokens, nearest
from millpond.pool_settings import PoolKeywords, PoolSettings, pool_settings
from millpond.redaction import also_hide
from millpond.store.open import open_store
from millpond.store.protocol import Store
from millpond.task import AsyncTask, Task
from millpond.units import shown

if TYPE_CHECKING:
    from millpond.orchestrator.orchestrator import Orchestrator
    from millpond.recurring import RecurringDecorator, RecurringKeywords
    from millpond.testing import Testing

DEFAULT_STORE = "sqlite:///millpond.db"
P = ParamSpec("P")
R = TypeVar("R")


class App:
    """The tasks of a program, and the store their jobs live in.

    Without one it is the `store` of the settings (a file, or MILLPOND_STORE), else sqlite:///millpond.db.
    `tokens` are what all nodes share: `tokens={"ffmpeg": 2}` lets two jobs run at once that need one.
    `redact` names arguments that are shown as `***`, beside those that are known: `redact=["iban"]`.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        name: str = "app",
        tokens: Mapping[str, int] | None = None,
        redact: Iterable[str] = (),
    ) -> None:
        self.name = check_text(name, "name", 200)
        if store is None:
            store = str(load()["store"] or DEFAULT_STORE)
        if not isinstance(store, str) and not hasattr(store, "exchange"):
            raise OptionError(f"store must be a URL such as 'sqlite:///jobs.db', not {shown(store)}")
        self.store: Store = open_store(store) if isinstance(store, str) else store
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.aliases: dict[str, Task[Any, Any]] = {}  # by the names that tasks had before
        self.changes = 0  # grows with every task that is registered: nodes that run take it up
        self.pools: dict[str, PoolSettings] = {}
        self.tokens: Mapping[str, int] = check_tokens(tokens or {})
        also_hide(check_redact(redact if isinstance(redact, str) else tuple(redact), "redact"))
        self._address = store if isinstance(store, str) else None

    # --- tasks ---------------------------------------------------------------------------------------
    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, /, **options: Unpack[TaskKeywords]) -> TaskDecorator: ...
    def task(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function: `@app.task` or `@app.task(queue="mail", timeout=30)`."""
        decorator = TaskDecorator(self, options)  # type: ignore[arg-type]
        return decorator if function is None else decorator(function)

    def recurring(self, /, **options: Unpack[RecurringKeywords]) -> RecurringDecorator:
        """Register a function that runs again and again: `@app.recurring(every="60s")`."""
        from millpond.recurring import RecurringDecorator

        return RecurringDecorator(self, options)

    @cached_property
    def orchestrator(self) -> Orchestrator:
        """The recurring tasks: how they stand, and what can be done with them."""
        from millpond.orchestrator.orchestrator import Orchestrator

        return Orchestrator(self)

    def register(self, task: Task[Any, Any]) -> None:
        """Add a task. A name belongs to one function; the same one, defined anew, takes its own place."""
        known = self.tasks.get(task.name)
        if known is not None and _place(known.function) != _place(task.function):
            raise OptionError(f"two tasks are called {task.name!r}: give one of them name='...'")
        self._check_aliases(task)
        for alias in known.aliases if known is not None else ():
            self.aliases.pop(alias, None)
        self.tasks[task.name] = task
        self.aliases.update(dict.fromkeys(task.aliases, task))
        self.changes += 1

    def _check_aliases(self, task: Task[Any, Any]) -> None:
        """Refuse an old name that is a task of its own, or that two tasks want to stand for."""
        other = self.aliases.get(task.name)
        if other is not None and other.name != task.name:
            raise OptionError(
                f"{task.name!r} is a task and an alias of {other.name!r}: its jobs can run as one of them; "
                "take the alias away, or give the task another name"
            )
        for alias in task.aliases:
            other = self.tasks.get(alias) or self.aliases.get(alias)
            if other is not None and other.name != task.name:
                raise OptionError(
                    f"the alias {alias!r} of {task.name!r} belongs to {other.name!r} already: its jobs can "
                    "run as one of them; leave it out of aliases"
                )

    def get_task(self, name: str) -> Task[Any, Any]:
        """The task of that name. Nothing else is ever looked up by a name from outside."""
        try:
            return self.tasks.get(name) or self.aliases[name]
        except KeyError:
            hint = nearest(str.__str__(name), self.tasks) if issubclass(type(name), str) else ""
            raise UnknownTask(f"no task is called {shown(name, 200)}{hint}") from None

    def knows(self, name: str) -> bool:
        """Is there a task of that name, or one that had it before?"""
        return name in self.tasks or name in self.aliases

    def pool(self, name: str, /, **options: Unpack[PoolKeywords]) -> None:
        """Describe a pool of this app's nodes: it serves the queue of its name, or those in `queues`."""
        settings = pool_settings(name, options)
        for other in self.pools.values():
            shared = set(settings.queues) & set(other.queues)
            if other.name != name and shared:
                raise OptionError(f"queue {min(shared)!r} has two pools, {other.name!r} and {name!r}")
        self.pools[name] = settings
        for task in self.tasks.values():  # whichever is described first, the pool or the task
            task._take_timeout()

    def _timeout_of(self, queue: str) -> float | None:
        """The timeout that the pool of a queue gives to jobs whose task has none of its own."""
        return next((pool.timeout for pool in self.pools.values() if queue in pool.queues), None)

    # --- jobs ----------------------------------------------------------------------------------------
    def handle(self, job_id: str) -> JobHandle[Any]:
        """The handle of a job by its id."""
        return JobHandle(self.store, check_id(job_id))

    def store_jobs(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """Store checked jobs, all or none. OutcomeUnknown tells their ids."""
        if "opentelemetry.trace" not in sys.modules:
            return self._store(jobs, transaction)
        with _traced(jobs) as carriers:
            return self._store(carriers, transaction)

    def _store(self, jobs: Sequence[NewJob], transaction: object | None) -> list[Enqueued]:
        try:
            return self.store.enqueue(jobs, transaction)
        except OutcomeUnknown as error:
            raise _unknown(error, jobs) from error

    async def astore_jobs(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """The same without blocking the event loop, but for a caller's own synchronous transaction."""
        if transaction is None:
            return await asyncio.to_thread(self.store_jobs, jobs)
        joins = getattr(self.store, "aenqueue", None)
        if joins is None or not inspect.iscoroutinefunction(getattr(type(transaction), "execute", None)):
            return self.store_jobs(jobs, transaction)
        try:
            with _traced(jobs) as carriers:
                return await joins(carriers, transaction)  # type: ignore[no-any-return]
        except OutcomeUnknown as error:
            raise _unknown(error, jobs) from error

    def testing(self) -> Testing:
        """A context for tests: memory store, frozen clock, jobs run when you say so."""
        from millpond.testing import Testing

        return Testing(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: the app of that module, or one on the same store, made once."""
        from millpond.pickling import app_by_value

        return app_by_value(self)

    def __repr__(self) -> str:
        return f"<App {self.name!r} on {self.store.url}, {len(self.tasks)} tasks>"


class TaskDecorator:
    """`@app.task(...)` with options: turns a function into a Task that keeps its types."""

    def __init__(self, app: App, options: TaskKeywords) -> None:
        self._app = app
        self._options = options

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Callable[P, Any], /) -> Task[P, Any]:
        """Make a task of the function and register it."""
        kind = AsyncTask if inspect.iscoroutinefunction(function) else Task
        task: Task[P, Any] = kind(self._app, function, self._options)
        self._app.register(task)
        return task


@contextmanager
def _traced(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """The jobs with what they carry for those who trace, if anybody does, in the span of their storing."""
    from millpond.tracing import enqueueing, is_on

    if not jobs or not is_on():
        yield jobs
        return
    later = any(job.delay or job.run_at is not None for job in jobs)
    with enqueueing(jobs[0].task, jobs[0].queue, len(jobs), is_scheduled=later) as trace:
        yield [replace(job, options=replace(job.options, trace=trace)) for job in jobs] if trace else jobs


def _unknown(error: OutcomeUnknown, jobs: Sequence[NewJob]) -> OutcomeUnknown:
    """The same for this caller alone: a store may hand one error to all who shared a commit."""
    told = OutcomeUnknown(str(error))
    told.ids = tuple(job.id for job in jobs)
    return told


def _place(function: Any) -> tuple[str | None, str | None]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", None)

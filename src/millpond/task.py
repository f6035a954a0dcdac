"""`Task`: a function that can be called as ever, or enqueued as a job.

Binds and checks calls; how a job is treated comes from the decorator and from `using()`. It talks to the
store only through its app.
"""

from __future__ import annotations

import inspect
import string
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import update_wrapper
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from millpond.errors import ArgumentsRefused, OptionError, PayloadRefused
from millpond.handle import JobHandle
from millpond.ids import new_id
from millpond.job import JobOptions, NewJob, Slot
from millpond.options import (
    TIMEOUT,
    Resources,
    Retry,
    TaskKeywords,
    UsingKeywords,
    check_priority,
    check_queue,
    check_text,
    check_together,
    check_whole,
    checked,
    job_options,
    limit,
    nearest,
)
from millpond.payload.codec import can_convert, decode, encode
from millpond.payload.signature import Signature, hints_of
from millpond.units import shown

if TYPE_CHECKING:
    from millpond.app import App

P = ParamSpec("P")
R = TypeVar("R")
Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]


class Call(Generic[R]):
    """A task with its arguments and options, checked, not enqueued yet: a step of a chain or group."""

    __slots__ = ("_options", "_task", "arguments")

    def __init__(self, task: Task[..., R], arguments: Arguments, options: Mapping[str, Any]) -> None:
        self._task = task
        self._options = options
        self.arguments = arguments
        task.signature.encode(*arguments)

    @property
    def task(self) -> Task[..., R]:
        """What is called."""
        return self._task

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of `using()`."""
        return self._options

    def new_job(self, after: Sequence[str] = ()) -> NewJob:
        """The job of this call, to be run when these have completed."""
        parents = dict.fromkeys((*self._options.get("depends_on", ()), *after))
        return self._task.new_job(self.arguments, {**self._options, "depends_on": tuple(parents)})

    def __repr__(self) -> str:
        return f"<Call of {self._task.name}>"


class Enqueuer(Generic[P, R]):
    """A task seen through a set of options; `Task` itself is one with the decorator's own."""

    def __init__(self, task: Task[P, R], options: Mapping[str, Any]) -> None:
        self._task = task
        self._options = options

    def using(self, **options: Unpack[UsingKeywords]) -> Enqueuer[P, R]:
        """The same task with other options for the jobs that are enqueued through it."""
        merged = {**self._options, **checked(options)}
        check_together(merged)
        return Enqueuer(self._task, merged)

    def bind(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """The call for later, as a step of `chain` or `group`; checked now."""
        return Call(self._task, (args, kwargs), self._options)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store a job that calls the task with these arguments."""
        (handle,) = self._stored([self._task.new_job((args, kwargs), self._options)])
        return handle

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """The same for async code."""
        (handle,) = await self._astored([self._task.new_job((args, kwargs), self._options)])
        return handle

    def enqueue_many(self, calls: Iterable[tuple[Any, ...] | Mapping[str, Any]]) -> list[JobHandle[R]]:
        """Store many jobs in one step, all or none: each call is a tuple or dict of arguments."""
        return self._stored(self._new_jobs(calls))

    async def aenqueue_many(self, calls: Iterable[tuple[Any, ...] | Mapping[str, Any]]) -> list[JobHandle[R]]:
        """The same for async code."""
        return await self._astored(self._new_jobs(calls))

    def _new_jobs(self, calls: Iterable[Any]) -> list[NewJob]:
        if "id" in self._options:
            raise OptionError("using(id=...) is for one job: enqueue_many gives each an id of its own")
        return [self._task.new_job(_arguments(call), self._options) for call in calls]

    def _stored(self, jobs: list[NewJob]) -> list[JobHandle[R]]:
        app = self._task.app
        stored = app.store_jobs(jobs, self._options.get("transaction"))
        return [JobHandle(app.store, item.id, item.created, self._task.returns) for item in stored]

    async def _astored(self, jobs: list[NewJob]) -> list[JobHandle[R]]:
        app = self._task.app
        stored = await app.astore_jobs(jobs, self._options.get("transaction"))
        return [JobHandle(app.store, item.id, item.created, self._task.returns) for item in stored]


def _arguments(call: Any) -> Arguments:
    if isinstance(call, Mapping):
        return (), call
    if isinstance(call, tuple):
        return call, {}
    raise ArgumentsRefused(
        f"enqueue_many takes a tuple or dict of arguments for each job, not {type(call).__name__}: "
        f"write ({shown(call, 40)},) for a single argument"
    )


class Task(Enqueuer[P, R]):
    """A registered function. Calling it runs it here; `enqueue` makes a job of it."""

    __name__: str
    __qualname__: str

    def __init__(self, app: App, function: Callable[P, Any], options: TaskKeywords) -> None:
        for name in options:
            if name not in TaskKeywords.__annotations__:
                raise TypeError(f"a task has no option {name!r}{nearest(name, TaskKeywords.__annotations__)}")
        update_wrapper(self, function)
        super().__init__(self, {})
        self.app = app
        self.given = options
        self.function = function
        check_function(function)
        self.name = check_text(options["name"] if "name" in options else name_of(function), "name", 200)
        self.queue = check_queue(options.get("queue", "default"))
        self.priority = check_priority(options.get("priority", 1))
        self.retry = _of_kind(options.get("retry", Retry()), Retry, "retry")
        self.resources = _of_kind(options.get("resources", Resources()), Resources, "resources")
        self.expires = limit(options.get("expires"), "expires")
        self.aliases = check_aliases(options.get("aliases", ()), self.name)
        self.upgrade = options.get("upgrade")
        if self.upgrade is not None and not callable(self.upgrade):
            raise OptionError(f"upgrade must be a function of a dict, not {shown(self.upgrade)}")
        self.is_async = inspect.iscoroutinefunction(function)
        self.signature = Signature(function, self.name)
        returns = hints_of(function).get("return", Any)
        self.returns = returns if can_convert(returns) else Any
        self._slots = SlotRule(self.name, self.signature, options.get("key"), options.get("limit"))
        self._has_timeout = "timeout" in options
        self.timeout = limit(options.get("timeout", TIMEOUT), "timeout")
        self._take_timeout()
        self._named = [name for name in self.resources.needs if name not in ("cpu", "memory")]
        self._is_plain = self.expires is None and not self._slots.is_given and not self._named

    def _take_timeout(self) -> None:
        """Its own timeout, else that of its queue's pool, else the usual one. Found when a pool or a task is
        described, so that no job costs a look at the pools."""
        self.timeout = self._timeout_on(self.queue)
        self._job_options = self._options_with(self.timeout)

    def _timeout_on(self, queue: str) -> float | None:
        if self._has_timeout:
            return self.timeout
        found = self.app._timeout_of(queue)
        return TIMEOUT if found is None else found

    def _options_with(self, timeout: float | None) -> JobOptions:
        return job_options(timeout, self.retry, self.resources, self.signature.hidden)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now."""
        return self.function(*args, **kwargs)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Task {self.name} on queue {self.queue!r}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A task is pickled as a function is: by the name of its global, or by value if it has none."""
        from millpond.pickling import task_by_value

        return task_by_value(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "function" not in vars(self):  # else it is known here already
            self.__init__(self.app, state["function"], state["options"])  # type: ignore[misc]
            self.app.register(self)

    def read(self, payload: bytes) -> tuple[list[Any], dict[str, Any]]:
        """The call that a job was stored with. What does not fit the signature is given to `upgrade`.

        Raises ArgumentsRefused if that leaves it unreadable, and whatever `upgrade` raises.
        """
        try:
            return self.signature.decode(payload)
        except ArgumentsRefused:
            if self.upgrade is None:
                raise
        upgraded = self.upgrade(decode(payload))
        if not isinstance(upgraded, dict):
            raise TypeError(f"upgrade of {self.name} must return a dict of arguments, not {shown(upgraded)}")
        try:
            return self.signature.decode(encode(upgraded, "the upgraded arguments"))
        except PayloadRefused as error:  # of what `upgrade` made; what is stored may be right
            raise TypeError(f"upgrade of {self.name}: {error}") from error

    def new_job(self, arguments: Arguments, options: Mapping[str, Any]) -> NewJob:
        """The job for one call, checked; `options` are those of `using()`, checked before."""
        payload = self.signature.encode(*arguments)
        if not options and self._is_plain:
            return NewJob(
                id=new_id(),
                task=self.name,
                payload=payload,
                queue=self.queue,
                priority=self.priority,
                options=self._job_options,
                fresh=True,
            )
        return self._new_job(payload, arguments, options)

    def _new_job(self, payload: bytes, arguments: Arguments, options: Mapping[str, Any]) -> NewJob:
        queue = options.get("queue", self.queue)
        timeout = self.timeout if queue == self.queue else self._timeout_on(queue)
        timeout = options.get("timeout", timeout)
        delay, expires = options.get("delay", 0.0), options.get("expires", self.expires)
        if expires is not None and delay >= expires:
            raise OptionError(
                f"expires={expires:g} s is over before delay={delay:g} s is, and both count from now: "
                "the job would never begin"
            )
        if options.get("id") in options.get("depends_on", ()):
            raise OptionError(f"job {options['id']} cannot depend on itself: it would wait for ever")
        return NewJob(
            id=options.get("id") or new_id(),
            task=self.name,
            payload=payload,
            queue=queue,
            priority=options.get("priority", self.priority),
            run_at=options.get("at"),
            delay=delay,
            expires=expires,
            unique=options.get("unique"),
            unique_for=options.get("unique_for", "done"),
            slots=(*self._slots.of(arguments), *self._tokens()),
            depends_on=options.get("depends_on", ()),
            options=self._job_options if timeout == self.timeout else self._options_with(timeout),
            fresh="id" not in options,
        )

    def _tokens(self) -> tuple[Slot, ...]:
        """The slots of what it needs and the whole fleet shares; other tokens are a node's own."""
        shared = self.app.tokens
        for name in self._named:
            if name in shared and self.resources.needs[name] != 1:
                raise OptionError(
                    f"{self.name} needs {self.resources.needs[name]:g} of the token {name!r}: a job can hold "
                    "one of a token that the fleet shares; count in larger units, or give it to nodes"
                )
        return tuple(Slot(fleet_token(name), shared[name]) for name in self._named if name in shared)


class AsyncTask(Task[P, R]):
    """A task that is an `async def`: calling it gives the coroutine."""

    if TYPE_CHECKING:

        def __call__(  # type: ignore[override]
            self, /, *args: P.args, **kwargs: P.kwargs
        ) -> Coroutine[Any, Any, R]: ...


class SlotRule:
    """Per-key concurrency: which slot a call needs, from `key` and `limit`."""

    def __init__(self, task: str, signature: Signature, key: Any, most: Any) -> None:
        if (key is None) != (most is None):
            raise OptionError("key and limit belong together: key='{user_id}', limit=2")
        if key is not None and not isinstance(key, str) and not callable(key):
            raise OptionError(f"key must be text such as '{{user_id}}' or a callable, not {shown(key)}")
        self.is_given = key is not None
        self._key = key
        self._limit = check_whole(most, "limit", 1, 1_000_000) if self.is_given else 0
        self._task = task
        self._signature = signature
        if isinstance(key, str):
            self._check_fields(key)

    def _check_fields(self, key: str) -> None:
        try:
            fields = [field for _, field, _, _ in string.Formatter().parse(key) if field is not None]
        except ValueError as error:
            raise OptionError(f"key={key!r} cannot be read: {error}") from None
        for field in fields:
            name = field.split(".")[0].split("[")[0]
            if name not in self._signature.names:
                hint = nearest(name, self._signature.names)
                raise OptionError(f"key={key!r}: {self._task} has no parameter {name!r}{hint}")

    def of(self, arguments: Arguments) -> tuple[Slot, ...]:
        """The slots of one call."""
        if not self.is_given:
            return ()
        args, kwargs = arguments
        key = self._filled(args, kwargs) if isinstance(self._key, str) else self._key(*args, **kwargs)
        text = check_text(str(key) if isinstance(key, int) else key, f"the key of {self._task}")
        return (Slot(f"{self._task}:{text}", self._limit),)

    def _filled(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        try:
            return str(self._key.format(**self._signature.bind(args, kwargs)))
        except (LookupError, AttributeError, ValueError, TypeError) as error:
            raise OptionError(f"key={self._key!r} of {self._task} cannot be filled: {error}") from None


def fleet_token(name: str) -> str:
    """The slot in the store that stands for a token which the whole fleet shares."""
    return f"token:{name}"


def check_function(function: Any) -> None:
    """Refuse what cannot be a task, whatever it is called."""
    if not callable(function):
        raise OptionError(f"@app.task needs a function, not {shown(function)}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        name = getattr(function, "__qualname__", shown(function))
        raise OptionError(f"{name} is a generator, whose values no one would take: return a list")


def check_aliases(aliases: Any, name: str) -> tuple[str, ...]:
    """The names that a task had before, or OptionError."""
    if isinstance(aliases, str) or not isinstance(aliases, Iterable):
        raise OptionError(f"aliases must be a list of names, such as ['shop.old_name'], not {shown(aliases)}")
    found = tuple(dict.fromkeys(check_text(alias, "an alias", 200) for alias in aliases))
    if name in found:
        raise OptionError(f"the alias {name!r} is the name of the task itself: leave it out of aliases")
    return found


def name_of(function: Any) -> str:
    """The name of a function as any process that imports it sees it, also when it is run as a script."""
    name = getattr(function, "__qualname__", None)
    if name is None or name.endswith("<lambda>"):
        raise OptionError(f"{shown(function)} has no name of its own: give name='...'")
    module = function.__module__
    if module == "__main__":
        module = _name_of_main()
    return f"{module}.{name}"


def _name_of_main() -> str:
    main = sys.modules["__main__"]
    if main.__spec__ is not None:
        return main.__spec__.name.removesuffix(".__main__")
    path = getattr(main, "__file__", None)
    return "__main__" if path is None else PurePath(path).stem


def _of_kind(value: Any, kind: type[R], name: str) -> R:
    if not isinstance(value, kind):
        raise OptionError(f"{name} must be {kind.__name__}(...), not {shown(value)}")
    return value

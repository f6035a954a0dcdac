"""The functions a pool has been given: each is pickled once and sent once to each worker.

Also keeps what has been learnt about each function: how long it runs. Closures, bound methods, partials
and other callables carry state that may change between calls, so they travel with their call instead.
Nothing here is sent: the link to a worker asks for the bytes.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from millpond.pool.channel.main_globals import MainGlobals, Required
from millpond.pool.channel.pickling import Names, pack

if TYPE_CHECKING:
    from millpond.pool.channel.definition import Definition

REMEMBERED = 128
CACHEABLE = (FunctionType, BuiltinFunctionType, type)


class Function:
    """One function as the pool knows it."""

    __slots__ = ("by_value", "data", "definitions", "estimate", "name", "number", "required")

    def __init__(
        self, number: int, name: str, data: bytes | None = None, definitions: Sequence[Definition] = ()
    ) -> None:
        self.number = number
        self.name = name
        self.data = data  # None: travels inside each call
        self.definitions = definitions  # what `__main__` must hold in the worker first
        self.by_value = False  # data says in which definition it is
        self.required: Required | None = None  # for which globals of `__main__` all this is true
        self.estimate: float | None = None  # seconds a run takes, by measurement


class Functions:
    """All functions of one pool; beyond a bound the oldest is forgotten, and learnt again if needed."""

    def __init__(self, *, by_value: bool) -> None:
        self._by_value = by_value
        self._known: dict[Any, Function] = {}
        self._kinds: dict[Any, Function] = {}
        self._globals = MainGlobals()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)  # several threads may learn at once

    def find(self, call: Any) -> Function:
        """The record for a callable; raises what pickling it raises."""
        if type(call) not in CACHEABLE:
            return self._of_kind(call)
        function = self._known.get(call)
        if function is None:
            function = self._learn(call) if is_constant(call) else self._of_kind(call)
        elif function.required is not None and not function.required.is_current():
            function = self._learn_again(call, function)
        return function

    def forget_all(self) -> None:
        """Drop every reference to user functions."""
        self._known = {}
        self._kinds = {}
        self._globals.clear()

    @property
    def by_value_used(self) -> bool:
        """Has anything of `__main__` been submitted yet?"""
        return bool(self._globals)

    def prepare(self, names: Names | None) -> tuple[Definition, ...]:
        """Pickle what `__main__` must hold over there; here, in the submitter, where errors belong."""
        return () if names is None else self._globals.require(names).definitions

    def _learn(self, call: Any) -> Function:
        packed = pack(call, by_value=self._by_value)
        if packed.buffers:  # a function that carries large arrays: let it travel with its buffers
            return self._of_kind(call)
        function = Function(next(self._numbers), name_of(call), packed.data)
        if packed.names is not None:
            function.required = self._globals.require(packed.names)
            function.definitions = function.required.definitions
            if packed.names.needed and (place := self._globals.place_of(call)) is not None:
                # By its definition: its name may come to mean another function later
                function.by_value, function.data = True, place
        with self._lock:
            if len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
            return self._known.setdefault(call, function)

    def _learn_again(self, call: Any, before: Function) -> Function:
        """A global that it uses is another object now. It gets a new number, so that every worker is sent
        what has changed before it is called. Shown in test_a_helper_that_is_defined_anew_is_the_new_one."""
        with self._lock:
            if self._known.get(call) is before:
                del self._known[call]
        function = self._learn(call)
        function.estimate = before.estimate
        return function

    def _of_kind(self, call: Any) -> Function:
        """Callables with state share one record per kind of callable, for the estimate only."""
        kind: Any = type(call)
        for name in ("__code__", "__func__", "func"):
            kind = getattr(call, name, None) or kind
        try:
            function = self._kinds.get(kind)
        except TypeError:  # not hashable
            return Function(0, name_of(call))
        if function is None:
            function = Function(0, name_of(call))
            with self._lock:
                if len(self._kinds) >= REMEMBERED:
                    del self._kinds[next(iter(self._kinds))]
                self._kinds[kind] = function
        return function


def is_constant(call: Any) -> bool:
    """Does a function mean the same at every call? One with a closure or bound to an object may not."""
    if type(call) is FunctionType:
        return call.__closure__ is None
    if type(call) is BuiltinFunctionType:
        return call.__self__ is None or isinstance(call.__self__, ModuleType)
    return True


def name_of(call: Any) -> str:
    """What to call a callable in messages."""
    name = getattr(call, "__qualname__", None) or type(call).__qualname__
    module = getattr(call, "__module__", None)
    return f"{module}.{name}" if module else str(name)

"""The pickler for what plain pickle cannot carry: functions and classes by value, and globals of `__main__`.

Two of a kind. A `CallPickler` writes arguments and names what they need of `__main__`; a `DefinitionPickler`
writes those globals themselves. Both leave the globals of a function out and only note their names.
Imported on first use: cloudpickle costs more than starting a worker.
"""

from __future__ import annotations

import copyreg
import pickle
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import cloudpickle
from cloudpickle.cloudpickle import _make_skeleton_class

from millpond.pool.channel.global_names import global_names
from millpond.pool.channel.pickling import PROTOCOL, Names, view
from millpond.pool.channel.reductions import NAMED, reduce
from millpond.pool.worker.main_module import (
    MAINS,
    defined,
    fill_function,
    make_class,
    make_function,
    value_of,
)

if "__mp_main__" in sys.modules:  # a child of `multiprocessing`: classes of its script go by value, too
    cloudpickle.register_pickle_by_value(sys.modules["__mp_main__"])


def namespace() -> dict[str, Any]:
    """The namespace of our own `__main__`."""
    return sys.modules["__main__"].__dict__


def path_in_main(item: Any) -> str | None:
    """The dotted name by which `__main__` holds a function, a class or the like; None if it does not."""
    if getattr(item, "__module__", None) not in MAINS:
        return None
    path: str | None = getattr(item, "__qualname__", None) or getattr(item, "__name__", None)
    if path is None or "<" in path:
        return None
    first, *rest = path.split(".")
    found = namespace().get(first)
    for name in rest:
        found = found.__dict__.get(name) if isinstance(found, type) else None
        found = found.__func__ if isinstance(found, staticmethod) else found
    return path if found is item else None


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """What both have in common: functions of `__main__` are built on the worker's own namespace."""

    to_worker = True  # whose `__main__` the pool fills

    def __init__(
        self, stream: Any, protocol: int, callback: Callable[[pickle.PickleBuffer], Any] | None
    ) -> None:
        super().__init__(stream, protocol, buffer_callback=callback)
        self.names: set[str] = set()  # globals that functions in here name
        self.extras: bool = False  # and they may use any other one

    def reducer_override(self, item: Any) -> Any:
        if type(item) is memoryview:
            data = item if item.c_contiguous else bytearray(item.tobytes())
            return view, (pickle.PickleBuffer(data), item.format, item.shape)
        if type(item) is FunctionType and item.__globals__.get("__name__") in MAINS:
            return self.reduce_function(item)
        reduced = super().reducer_override(item)
        if isinstance(reduced, tuple) and reduced[0] is _make_skeleton_class:
            return make_class, reduced[:1] + reduced[1], *reduced[2:]
        return reduced

    def reduce_function(self, function: FunctionType) -> Any:
        """By value, and to a worker without its globals: those are defined there beforehand."""
        state = super()._dynamic_function_reduce(function)[2]
        if self.to_worker and function.__globals__ is namespace():
            found = global_names(function.__code__)
            state[1]["__globals__"] = {}
            self.names |= found.names
            self.names |= found.hints & namespace().keys()
            self.extras = self.extras or found.dynamic
        arguments = (function.__code__, function.__closure__ is not None)
        return make_function, arguments, state, None, None, fill_function


class CallPickler(_Pickler):
    """Writes calls and arguments. What lives in `__main__` is named, and defined in the worker first."""

    def __init__(
        self,
        stream: Any,
        protocol: int,
        callback: Callable[[pickle.PickleBuffer], Any] | None,
        *,
        by_value: bool,
    ) -> None:
        super().__init__(stream, protocol, callback)
        self.to_worker = by_value
        self._roots: set[str] = set()

    def needs(self) -> Names | None:
        """What the worker's `__main__` must hold before this is loaded, and before it is run."""
        if not self.to_worker or not (self._roots or self.names or self.extras):
            return None
        return Names(frozenset(self._roots), frozenset(self.names), self.extras)

    def reducer_override(self, item: Any) -> Any:
        if isinstance(item, NAMED):
            path = path_in_main(item)
            if path is not None:
                self._roots.add(path.partition(".")[0])
                return path  # by name: the receiver's `__main__` will have it
        elif reduces_itself(item):
            reduced = item.__reduce_ex__(PROTOCOL)
            if isinstance(reduced, str):
                self._roots.add(reduced.partition(".")[0])
            return reduced
        return super().reducer_override(item)


class DefinitionPickler(_Pickler):
    """Writes globals of `__main__` by value: what is among them, or is in no earlier definition."""

    def __init__(self, stream: Any, protocol: int, earlier: Callable[[Any, str | None], Any]) -> None:
        super().__init__(stream, protocol, None)
        self._earlier = earlier  # how to refer to something that the worker has by then
        self.found: list[str] = []  # globals met on the way, which are in here now

    def reducer_override(self, item: Any) -> Any:
        path = path_in_main(item) if isinstance(item, NAMED) else None
        known = self._earlier(item, path)
        if known is not None:
            return known
        if path is not None:
            self.found.append(path.partition(".")[0])
        elif reduces_itself(item):
            reduced = item.__reduce_ex__(PROTOCOL)
            return _bare(item) if isinstance(reduced, str) else reduced
        reduced = reduce(item)
        return super().reducer_override(item) if reduced is None else reduced


def refer(number: int, path: str) -> Any:
    """A reference to a function or class in an earlier definition."""
    return defined, (number, path)


def refer_to_value(name: str) -> Any:
    """A reference to another global."""
    return value_of, (name,)


def reduces_itself(item: Any) -> bool:
    """Is this an object of a class of `__main__` that has a `__reduce__` of its own? A sentinel's may answer
    with its name."""
    kind = type(item)
    if kind.__module__ not in MAINS or isinstance(item, type):
        return False
    plain: Any = object
    return kind.__reduce__ is not plain.__reduce__ or kind.__reduce_ex__ is not plain.__reduce_ex__


def _bare(item: Any) -> Any:
    return copyreg.__newobj__, (type(item),), getattr(item, "__dict__", None)  # type: ignore[attr-defined]

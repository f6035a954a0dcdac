"""Python objects to bytes and back, with large buffers kept aside instead of copied into the pickle.

The plain C pickler does nearly everything. Only where it fails (lambdas, closures, memoryviews), or where
the pickle names `__main__`, does the slower one run. Classes and functions of `__main__` are collected
as definitions: the pool sends each once to each worker, and the pickles refer to them by name.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

ASIDE = 64 * 1024  # buffers from this size on travel outside the pickle
# Exactly these types may be marshalled instead of pickled: several times cheaper, and nothing about
# them can be lost. Never more: marshal turns a bytearray or an array into bytes without a word.
PLAIN = frozenset({int, float, str, bool, type(None)})
PROTOCOL = 5
PICKLE_TROUBLE = (pickle.PicklingError, AttributeError, TypeError)


class Aside(NamedTuple):
    """One buffer that travels outside the pickle.

    A transient buffer is copied by the receiver's own constructor (bytes, bytearray), so the receiver
    may hand it the arena itself; the others become the receiver's memory.
    """

    raw: memoryview
    transient: bool


class Packed(NamedTuple):
    """A pickled object, its large buffers, and what `__main__` must define before it is loaded."""

    data: bytes
    buffers: Sequence[Aside] = ()
    definitions: Sequence[Any] = ()


def pack(value: Any, *, by_value: bool) -> Packed:
    """Pickle `value`. `by_value`: the receiver does not share our `__main__`."""
    keep = _Keep()
    value = keep.set_aside(value)
    try:
        data = pickle.dumps(value, PROTOCOL, buffer_callback=keep.small)
    except PICKLE_TROUBLE:
        return _pack_slowly(value, by_value=by_value)
    if by_value and b"__main__" in data:
        return _pack_slowly(value, by_value=True)
    return Packed(data, keep.buffers)


def unpack(data: Any, buffers: Sequence[Any] = ()) -> Any:
    """The inverse of `pack`."""
    return pickle.loads(data, buffers=buffers)


class _Keep:
    """Collects the large buffers of one pickle."""

    def __init__(self) -> None:
        self.buffers: list[Aside] = []
        self._wrapped: set[int] = set()

    def small(self, buffer: pickle.PickleBuffer) -> bool:
        """The pickler's question: is this buffer small enough to stay inside?"""
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous: cannot travel outside
            return True
        if raw.nbytes < ASIDE:
            return True
        self.buffers.append(Aside(raw, id(raw.obj) in self._wrapped))
        return False

    def set_aside(self, value: Any) -> Any:
        """Wrap large bytes and bytearrays, which pickle would copy inside: at the top, one level down,
        and in the arguments of a call."""
        kind = type(value)
        if kind in _LARGE_KINDS:
            return self._wrap(value)
        if kind is tuple or kind is list:
            return kind([self._inner(item) for item in value]) if _any_large(value) else value
        if kind is dict and _any_large(value.values()):
            return {key: self._inner(item) for key, item in value.items()}
        return value

    def _inner(self, value: Any) -> Any:
        if type(value) in _LARGE_KINDS:
            return self._wrap(value)
        return self.set_aside(value) if type(value) in (tuple, dict, list) else value

    def _wrap(self, value: bytes | bytearray) -> Any:
        if len(value) < ASIDE:
            return value
        self._wrapped.add(id(value))
        return _Large(value)


_LARGE_KINDS = frozenset({bytes, bytearray})


def _any_large(values: Any) -> bool:
    for value in values:
        kind = type(value)
        if kind in _LARGE_KINDS:
            if len(value) >= ASIDE:
                return True
        elif kind in (tuple, list):
            if any(type(v) in _LARGE_KINDS and len(v) >= ASIDE for v in value):
                return True
        elif kind is dict and any(type(v) in _LARGE_KINDS and len(v) >= ASIDE for v in value.values()):
            return True
    return False


class _Large:
    """Stands for large bytes in a pickle: the receiver gets the bytes, never this."""

    def __init__(self, value: bytes | bytearray) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self.value), (pickle.PickleBuffer(self.value),)


def _view(buffer: Any, form: str, shape: Sequence[int]) -> memoryview:
    view = memoryview(buffer).cast("B")
    return view if form == "B" and len(shape) == 1 else view.cast(form, list(shape))  # type: ignore[call-overload]


def _pack_slowly(value: Any, *, by_value: bool) -> Packed:
    pickler_class = _slow_pickler()
    keep = _Keep()
    value = keep.set_aside(value)
    stream = io.BytesIO()
    pickler = pickler_class(stream, PROTOCOL, buffer_callback=keep.small)
    pickler.by_value = by_value
    pickler.definitions = []
    pickler.dump(value)
    return Packed(stream.getvalue(), keep.buffers, pickler.definitions)


def define(item: Any) -> bytes:
    """Pickle a function or class of `__main__` by value, under its name."""
    import cloudpickle

    data: bytes = cloudpickle.dumps((item.__qualname__, item), PROTOCOL)
    return data


_slow_class: type[Any] | None = None


def _slow_pickler() -> type[Any]:
    """The cloudpickle pickler that also speaks memoryview and collects `__main__`; made on first use,
    because importing cloudpickle costs more than starting a worker."""
    global _slow_class
    if _slow_class is not None:
        return _slow_class
    import cloudpickle

    class SlowPickler(cloudpickle.Pickler):  # type: ignore[misc]
        by_value = False
        definitions: list[Any]

        def reducer_override(self, item: Any) -> Any:
            if type(item) is memoryview and item.contiguous:
                return _view, (pickle.PickleBuffer(item), item.format, item.shape)
            if isinstance(item, (type, FunctionType)) and _lives_in_main(item):
                if self.by_value:
                    self.definitions.append(item)
                return NotImplemented  # by name: the receiver's __main__ will have it
            return super().reducer_override(item)

    _slow_class = SlowPickler
    return SlowPickler


def _lives_in_main(item: Any) -> bool:
    if getattr(item, "__module__", None) != "__main__":
        return False
    return getattr(sys.modules.get("__main__"), item.__qualname__, None) is item

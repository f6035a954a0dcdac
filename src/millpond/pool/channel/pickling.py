"""Python objects to bytes and back, with large buffers kept aside instead of copied into the pickle.

The plain C pickler does nearly everything. Only where it fails (lambdas, closures, memoryviews), or where
the pickle names `__main__`, does the slower one of `by_value.py` run. What is needed of `__main__` is noted
by name: the pool sends each global once to each worker.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ASIDE = 64 * 1024  # buffers from this size on travel outside the pickle
# Exactly these types may be marshalled instead of pickled: several times cheaper, and nothing about
# them can be lost. Never more: marshal turns a bytearray or an array into bytes without a word.
PLAIN = frozenset({int, float, str, bool, type(None)})
PLAIN_SIZED = frozenset({str, bytes})  # as a value, plain too as long as it is small
PROTOCOL = 5
PICKLE_TROUBLE = (pickle.PicklingError, AttributeError, TypeError)


class Aside(NamedTuple):
    """One buffer that travels outside the pickle.

    A transient buffer is copied by the receiver's own constructor (bytes, bytearray), so the receiver
    may hand it the arena itself; the others become the receiver's memory.
    """

    raw: memoryview
    transient: bool


class Names(NamedTuple):
    """Globals of `__main__` that a pickle refers to."""

    needed: frozenset[str]  # without these it cannot even be loaded
    used: frozenset[str] = frozenset()  # its functions look these up when they run
    extras: bool = False  # and they may look up any other


class Packed(NamedTuple):
    """A pickled object, its large buffers, and what it needs of `__main__`."""

    data: bytes
    buffers: Sequence[Aside] = ()
    names: Names | None = None
    definitions: Sequence[Any] = ()  # the names, packed, when it is about to be sent


def pack(value: Any, *, by_value: bool, scan: bool = True, aside: bool = True) -> Packed:
    """Pickle `value`. `by_value`: the receiver does not share our `__main__`. `scan`: look for large
    bytes inside, which is not worth it for a long list of small things. `aside`: large buffers may
    travel outside."""
    keep = _Keep()
    if scan and aside:
        value = keep.set_aside(value)
    callback = keep.small if aside else None
    try:
        data = pickle.dumps(value, PROTOCOL, buffer_callback=callback)
    except PICKLE_TROUBLE:
        return _pack_slowly(value, by_value=by_value, aside=aside)
    if by_value and b"_main__" in data:  # or `__mp_main__`
        return _pack_slowly(value, by_value=True, aside=aside)
    return Packed(data, keep.buffers)


def unpack(data: Any, buffers: Sequence[Any] = ()) -> Any:
    """The inverse of `pack`."""
    return pickle.loads(data, buffers=buffers)


class _Keep:
    """Collects the large buffers of one pickle."""

    def __init__(self) -> None:
        self.buffers: list[Aside] = []
        self._memo: dict[int, tuple[Any, Any]] = {}

    def small(self, buffer: pickle.PickleBuffer) -> bool:
        """The pickler's question: is this buffer small enough to stay inside?"""
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous: cannot travel outside
            return True
        if raw.nbytes < ASIDE:
            return True
        self.buffers.append(Aside(raw, id(raw.obj) in self._memo))
        return False

    def set_aside(self, value: Any, depth: int = 3) -> Any:
        """Wrap large bytes and bytearrays, which pickle would copy inside: in the arguments of a call
        and up to one level down in them. What is shared stays shared, through the memo."""
        kind = type(value)
        if kind in LARGE_KINDS:
            return value if len(value) < ASIDE else self._memoised(value, _Large)
        if kind not in (tuple, list, dict) or not depth or not _holds_large(value, depth):
            return value
        if kind is tuple:
            return tuple([self.set_aside(item, depth - 1) for item in value])
        known = self._memo.get(id(value))
        if known is not None:
            return known[1]
        copy = self._memoised(value, kind)  # known before it is filled: it may contain itself
        for key, item in list(value.items()) if kind is dict else enumerate(value):
            copy[key] = self.set_aside(item, depth - 1)
        return copy

    def _memoised(self, value: Any, make: Callable[[Any], Any]) -> Any:
        known = self._memo.get(id(value))
        if known is None:
            known = self._memo[id(value)] = (value, make(value))  # holding the value keeps its id its own
        return known[1]


LARGE_KINDS = frozenset({bytes, bytearray})


SCANNED = frozenset({bytes, bytearray, tuple, list, dict})


def _holds_large(values: Any, depth: int) -> bool:
    if type(values) is dict:
        values = values.values()
    if SCANNED.isdisjoint(map(type, values)):  # a long list of numbers is told at the speed of C
        return False
    for value in values:
        kind = type(value)
        if kind in LARGE_KINDS:
            if len(value) >= ASIDE:
                return True
        elif kind in (tuple, list, dict) and depth > 1 and _holds_large(value, depth - 1):
            return True
    return False


class _Large:
    """Stands for large bytes in a pickle: the receiver gets the bytes, never this."""

    def __init__(self, value: bytes | bytearray) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self.value), (pickle.PickleBuffer(self.value),)


def view(buffer: Any, form: str, shape: Sequence[int]) -> memoryview:
    """Rebuild a memoryview."""
    flat = memoryview(buffer).cast("B")
    return flat if form == "B" and len(shape) == 1 else flat.cast(form, list(shape))  # type: ignore[call-overload]


def _pack_slowly(value: Any, *, by_value: bool, aside: bool) -> Packed:
    from millpond.pool.channel.by_value import (
        CallPickler,  # importing cloudpickle costs more than starting a worker
    )

    keep = _Keep()
    stream = io.BytesIO()
    pickler = CallPickler(stream, PROTOCOL, keep.small if aside else None, by_value=by_value)
    pickler.dump(value)
    return Packed(stream.getvalue(), keep.buffers, pickler.needs())

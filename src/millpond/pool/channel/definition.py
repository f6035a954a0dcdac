"""One definition: globals of `__main__` that were first needed together, in one pickle, by value.

It takes in whatever its globals need that no earlier definition has, so it refers to earlier ones only.
What cannot be pickled is left out with its reason: the function that misses it says so when it runs.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple

from millpond.pool.channel.by_value import DefinitionPickler
from millpond.pool.channel.pickling import PROTOCOL
from millpond.pool.worker.main_module import HEADER, Facts

LARGEST_EXTRA = 1_000_000  # bytes of a global that no code names, but that `eval` or `globals()` may find
OF_THE_MODULE = ("__file__", "__package__", "__doc__")  # what a worker's `__main__` gets from ours as it is
NEVER = frozenset(
    {*OF_THE_MODULE, "__name__", "__builtins__", "__spec__", "__loader__", "__cached__", "__annotations__"}
)


class Definition(NamedTuple):
    """Some globals of `__main__`, pickled by value."""

    number: int
    data: bytes
    needs: tuple[Definition, ...] = ()  # earlier ones that this one refers to, and what those need


class Known(NamedTuple):
    """One global as it was packed."""

    value: Any  # held, so that its identity stays its own
    definition: Definition
    names: frozenset[str] = frozenset()  # other globals that it needs
    extras: frozenset[str] = frozenset()  # and those that it may find by text
    reason: str | None = None  # why it could not be packed


class _Packed(NamedTuple):
    """One global in a definition that is not complete yet."""

    value: Any
    names: frozenset[str] = frozenset()
    extras: frozenset[str] = frozenset()
    reason: str | None = None


class _Bounded(io.BytesIO):
    """A stream that refuses to grow beyond a bound."""

    bound: int | None = None

    def write(self, data: Any) -> int:
        if self.bound is not None and self.tell() + memoryview(data).nbytes > self.bound:
            raise ValueError(f"it is larger than {LARGEST_EXTRA} bytes, and no code names it")
        return super().write(data)


class Packing:
    """A definition in the making."""

    def __init__(
        self,
        space: dict[str, Any],
        is_known: Callable[[str, Any], bool],
        earlier: Callable[[Any, str | None], tuple[Any, Definition] | None],
    ) -> None:
        self._space = space
        self._is_known = is_known  # is this global, with this value, in an earlier definition?
        self._earlier = earlier  # how to refer to an object in an earlier definition, and in which
        self._needs: dict[int, Definition] = {}
        self._reasons: dict[str, str] = {}
        self._imports: dict[str, str] = {}

    def pack(self, number: int, names: dict[str, bool]) -> dict[str, Known]:
        """Pack the names (True: code names it, False: it is an extra) and all that they need."""
        while (done := self._attempt(names)) is None:
            pass  # a pickle that has failed half-way cannot be continued: begin again without that global
        packed, stream = done
        order = [name for name in packed if name not in self._imports and name not in self._reasons]
        module = {name: self._space[name] for name in OF_THE_MODULE if name in self._space}
        facts = pickle.dumps(tuple(Facts(module, order, self._imports, self._reasons)), PROTOCOL)
        needs = tuple(self._needs[key] for key in sorted(self._needs))
        definition = Definition(number, HEADER.pack(number, len(facts)) + facts + stream, needs)
        return {
            name: Known(item.value, definition, item.names, item.extras, item.reason)
            for name, item in packed.items()
        }

    def _attempt(self, names: dict[str, bool]) -> tuple[dict[str, _Packed], bytes] | None:
        stream = _Bounded()
        pickler = DefinitionPickler(stream, PROTOCOL, self._refer)
        self._needs, self._imports = {}, {}
        packed: dict[str, _Packed] = {}
        todo = dict(names)
        while todo:
            name, tracked = todo.popitem()
            if name in packed or name not in self._space:
                continue
            value = self._space[name]
            stream.bound = None if tracked else stream.tell() + LARGEST_EXTRA
            try:
                packed[name] = self._pack_one(pickler, name, value)
            except Exception as error:
                self._reasons[name] = f"{type(value).__name__}: {error}"
                return None
            todo.update(self._unknown(packed[name].extras, packed, tracked=False))
            todo.update(self._unknown(packed[name].names, packed, tracked=True))
        return packed, stream.getvalue()

    def _pack_one(self, pickler: DefinitionPickler, name: str, value: Any) -> _Packed:
        reason = self._reasons.get(name)
        if reason is not None:
            return _Packed(value, reason=reason)
        if isinstance(value, ModuleType) and sys.modules.get(value.__name__) is value:
            self._imports[name] = value.__name__
            return _Packed(value)
        pickler.names, pickler.extras, pickler.found = set(), False, []
        pickler.dump(value)
        extras = extra_names(self._space) if pickler.extras else frozenset()
        return _Packed(value, frozenset(pickler.names.union(pickler.found)) - NEVER, extras)

    def _unknown(self, names: Iterable[str], packed: dict[str, _Packed], *, tracked: bool) -> dict[str, bool]:
        found = {}
        for name in names:
            if name in packed or name not in self._space:
                continue
            if not self._is_known(name, self._space[name]):
                found[name] = tracked
        return found

    def _refer(self, item: Any, path: str | None) -> Any:
        found = self._earlier(item, path)
        if found is None:
            return None
        reference, definition = found
        for needed in (*definition.needs, definition):
            self._needs[needed.number] = needed
        return reference


def extra_names(space: dict[str, Any]) -> frozenset[str]:
    """What code may find that looks globals up by text."""
    return frozenset(name for name in list(space) if not name.startswith("_"))

"""The globals of `__main__` as the pool has packed them: each once, and anew when its object has changed.

A worker that gets definitions in the order of their numbers has whatever they refer to. Packing runs user
code, so nothing here holds a lock: two threads that pack the same global at once make two definitions of
it, and the later one counts.
"""

from __future__ import annotations

import builtins
import itertools
import pickle
from collections.abc import Iterable
from itertools import repeat
from operator import is_
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from millpond.pool.channel.pickling import Names
from millpond.pool.worker.main_module import PLACE, cannot_travel

if TYPE_CHECKING:
    from millpond.pool.channel.definition import Definition, Known

MISSING = object()
REMEMBERED = 128  # sets of names whose definitions are known without a search
MOST_NAMES = 4096  # packed globals that are looked through for those that `__main__` holds no more


class Required(NamedTuple):
    """What some names need: the definitions in order, and for which objects that is so."""

    definitions: tuple[Definition, ...]
    names: tuple[str, ...]
    values: tuple[Any, ...]
    space: dict[str, Any]

    def is_current(self) -> bool:
        """Does `__main__` still hold the same objects?"""
        return all(map(is_, map(self.space.get, self.names, repeat(MISSING)), self.values))


class MainGlobals:
    """Everything of `__main__` that workers have been sent, or will be."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._places: dict[int, str] = {}  # id of a packed value -> its name
        self._required: dict[Names, Required] = {}
        self._numbers = itertools.count(1)

    def __bool__(self) -> bool:
        return bool(self._known)

    def clear(self) -> None:
        """Drop every reference to user objects."""
        self._known, self._places, self._required = {}, {}, {}

    def require(self, names: Names) -> Required:
        """The definitions that these names need; raises PicklingError for a needed one that cannot travel."""
        required = self._required.get(names)
        if required is None or not required.is_current():
            required = self._find(names)
            if len(self._required) >= REMEMBERED:
                self._required = {}
            self._required[names] = required
        return required

    def place_of(self, call: Any) -> bytes | None:
        """Where a worker finds a function or class of `__main__` that has been required: its definition and
        its name. None if it is not held there by name."""
        from millpond.pool.channel.by_value import path_in_main

        path = path_in_main(call)
        if path is None:
            return None
        return PLACE.pack(self._known[path.partition(".")[0]].definition.number) + path.encode()

    def _find(self, names: Names) -> Required:
        from millpond.pool.channel.by_value import namespace
        from millpond.pool.channel.definition import NEVER, Packing, extra_names

        space = namespace()
        wanted = (names.needed | names.used) - NEVER
        extras = extra_names(space) if names.extras else frozenset()
        while True:
            seen, found, missing = self._reach(space, wanted, extras)
            if not missing:
                break
            packing = Packing(space, self._is_known, self._refer)
            self._remember(packing.pack(next(self._numbers), missing))
        for name in names.needed:
            if name in found and (reason := found[name].reason) is not None:
                raise pickle.PicklingError(cannot_travel(name, reason))
        definitions = {
            definition.number: definition
            for known in found.values()
            for definition in (*known.definition.needs, known.definition)
        }
        ordered = tuple(definitions[number] for number in sorted(definitions))
        return Required(ordered, tuple(seen), tuple(seen.values()), space)

    def _reach(
        self, space: dict[str, Any], wanted: Iterable[str], extras: Iterable[str]
    ) -> tuple[dict[str, Any], dict[str, Known], dict[str, bool]]:
        """All that follows from these names: the objects they stand for now, what is packed, and what is not
        (True: code names it, False: it is an extra). An extra counts as it was when it was packed."""
        seen: dict[str, Any] = {}
        found: dict[str, Known] = {}
        missing: dict[str, bool] = {}
        todo = [(name, False) for name in extras] + [(name, True) for name in wanted]
        while todo:
            name, tracked = todo.pop()
            if name in seen or (not tracked and name in found):
                continue
            value = space.get(name, MISSING)
            if value is MISSING and hasattr(builtins, name):
                continue
            if tracked:
                seen[name] = value
            if value is MISSING:
                continue
            known = self._known.get(name)
            if known is None or (tracked and known.value is not value):
                missing[name] = tracked or missing.get(name, False)
                continue
            found[name] = known
            todo += [(other, False) for other in known.extras]
            todo += [(other, True) for other in known.names]
        return seen, found, missing

    def _is_known(self, name: str, value: Any) -> bool:
        known = self._known.get(name)
        return known is not None and known.value is value

    def _remember(self, packed: dict[str, Known]) -> None:
        for name, known in packed.items():
            before = self._known.get(name)
            if before is not None:
                self._places.pop(id(before.value), None)
            self._known[name] = known
            if known.reason is None and not isinstance(known.value, ModuleType):
                self._places[id(known.value)] = name
        if len(self._known) > MOST_NAMES:
            self._prune()

    def _prune(self) -> None:
        from millpond.pool.channel.by_value import namespace

        space = namespace()
        for name in [name for name in list(self._known) if name not in space]:
            known = self._known.pop(name, None)
            if known is not None:
                self._places.pop(id(known.value), None)

    def _refer(self, item: Any, path: str | None) -> tuple[Any, Definition] | None:
        """How a new definition refers to an object that an earlier one has; None: not at all."""
        from millpond.pool.channel.by_value import refer, refer_to_value

        name = self._places.get(id(item), "") if path is None else path.partition(".")[0]
        known = self._known.get(name)
        if known is None or known.reason is not None:
            return None
        if path is None:
            return (refer_to_value(name), known.definition) if known.value is item else None
        from millpond.pool.channel.by_value import namespace

        if namespace().get(name) is not known.value:
            return None
        return refer(known.definition.number, path), known.definition

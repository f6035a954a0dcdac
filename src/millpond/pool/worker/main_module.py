"""The worker's `__main__`: empty at first, filled with what the parent sends of its own.

Everything that arrives shares this one namespace, as it did at home: what an initializer sets with `global`
is there for the tasks. A global follows the parent's until code in this worker has set it; then it is the
worker's own. Nothing of the parent's script is ever run here.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType, ModuleType, resolve_bases
from typing import Any, NamedTuple

HEADER = struct.Struct("<QI")  # the definition's number, the length of its facts
PLACE = struct.Struct("<Q")  # the number of the definition that holds a function; its name follows
MAINS = ("__main__", "__mp_main__")  # the second: the script as a child that `spawn` made has imported it
KEPT = 512  # definitions whose functions are kept beside the namespace


class Facts(NamedTuple):
    """What a definition tells of the parent's `__main__` before its values."""

    module: dict[str, Any]  # `__file__` and the like
    names: list[str]  # of the values that follow
    imports: dict[str, str]  # global -> the module it is
    absent: dict[str, str]  # global -> why it cannot be here


_callables: dict[int, dict[str, Any]] = {}  # by definition: what other definitions and tasks refer to
_placed: dict[str, tuple[int, Any]] = {}  # global -> the definition it came with, and its value
_absent: dict[str, str] = {}


def fresh_main() -> None:
    """Give this process an empty `__main__`."""
    main_module = ModuleType("__main__")
    main_module.__dict__["__builtins__"] = __builtins__
    for name in MAINS:
        sys.modules[name] = main_module


def space() -> dict[str, Any]:
    """The namespace of `__main__`."""
    return sys.modules["__main__"].__dict__


def define(data: bytes) -> None:
    """Take in one definition: modules, functions, classes and values of the parent's `__main__`."""
    number, length = HEADER.unpack_from(data)
    if number in _callables:
        return
    start = HEADER.size + length
    facts = Facts(*pickle.loads(data[HEADER.size : start]))
    space().update(facts.module)
    for name, module in facts.imports.items():
        _import(number, name, module)
    for name, reason in facts.absent.items():
        _leave_out(number, name, reason)
    kept = _callables[number] = {}
    while len(_callables) > KEPT:
        del _callables[next(iter(_callables))]
    unpickler = pickle.Unpickler(io.BytesIO(data[start:]))
    left = list(facts.names)
    try:
        while left:
            value = unpickler.load()
            name = left.pop(0)
            _place(number, name, value)
            if callable(value):
                kept[name] = value
    except Exception as error:
        for name in left:
            _leave_out(number, name, f"it cannot be unpickled there: {type(error).__name__}: {error}")


def _place(number: int, name: str, value: Any) -> None:
    if _is_ours(number, name):
        space()[name] = value
        _placed[name] = number, value
        _absent.pop(name, None)


def _is_ours(number: int, name: str) -> bool:
    """May this definition set that global? Not over a newer one, nor over what code in this worker has set:
    an initializer's connection must not become the parent's None again when the parent's changes. Shown in
    test_what_code_in_a_worker_has_set_stays_its_own."""
    before, now = _placed.get(name), space()
    if before is None:
        return name not in now
    return before[0] <= number and (name not in now or now[name] is before[1])


def _import(number: int, name: str, module: str) -> None:
    try:
        __import__(module)
        _place(number, name, sys.modules[module])
    except Exception as error:
        _leave_out(number, name, f"importing {module} failed there: {type(error).__name__}: {error}")


def _leave_out(number: int, name: str, reason: str) -> None:
    if _is_ours(number, name):
        _placed.pop(name, None)
        space().pop(name, None)
        _absent[name] = reason


def explain(error: BaseException) -> None:
    """A task has missed a global that could not come along: have the error say so."""
    missed = type(error) is NameError
    missed = missed or (type(error) is AttributeError and error.obj is sys.modules["__main__"])
    name = getattr(error, "name", None) if missed else None
    if name in _absent:
        error.args = (cannot_travel(name, _absent[name]),)


def cannot_travel(name: str, reason: str) -> str:
    """What to tell the user about a global that stays at home."""
    return (
        f"the global {name!r} of __main__ could not be sent to the worker: {reason}. Move it to "
        "a module that the workers import, make it in an initializer, or pass "
        "mp_context=multiprocessing.get_context('fork')"
    )


# --- named by pickles --------------------------------------------------------------------------------------
def defined(number: int, path: str) -> Any:
    """A function or class that came with a definition."""
    name, *rest = path.split(".")
    kept = _callables.get(number, {})
    found = kept[name] if name in kept else value_of(name)
    for part in rest:
        found = getattr(found, part)
    return found


def value_of(name: str) -> Any:
    """A global, by its name."""
    try:
        return space()[name]
    except KeyError:
        reason = _absent.get(name, "it is not there")
        raise pickle.UnpicklingError(cannot_travel(name, reason)) from None


def function_at(place: bytes) -> Any:
    """The function that a task calls, by definition and name."""
    (number,) = PLACE.unpack_from(place)
    return defined(number, place[PLACE.size :].decode())


def make_function(code: CodeType, is_closure: bool) -> FunctionType:
    """A function on this process's `__main__`; its state follows."""
    closure = tuple(CellType() for _ in code.co_freevars) if is_closure else None
    return FunctionType(code, space(), None, None, closure)


def fill_function(function: FunctionType, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Fill in a function's state. Globals come along only from a namespace that merely calls itself
    `__main__`, as some debuggers make one; here they are defaults."""
    from cloudpickle.cloudpickle import _function_setstate

    for name, value in state[1]["__globals__"].items():
        space().setdefault(name, value)
    _function_setstate(function, (state[0], {**state[1], "__globals__": {}}))


def make_class(
    make: Callable[..., type],
    kind: type,
    name: str,
    bases: tuple[type, ...],
    given: dict[str, Any],
    *more: Any,
) -> type:
    """What cloudpickle does, but without running the script's own code for new classes: what its
    `__init_subclass__` and metaclass have done at home comes along, and here the globals that they use may
    not be defined yet."""
    from cloudpickle.cloudpickle import _lookup_class_or_track

    with _quiet(part for base in resolve_bases(bases) for part in base.__mro__):
        if kind.__module__ not in MAINS:
            return make(kind, name, bases, given, *more)
        library = next(part for part in kind.__mro__ if part.__module__ not in MAINS)
        made: type = library.__new__(kind, name, resolve_bases(bases), dict(given))
        return _lookup_class_or_track(more[0], made)  # type: ignore[no-any-return]


def _do_nothing(_: type, **__: object) -> None:
    """In the place of `__init_subclass__`."""


@contextmanager
def _quiet(bases: Iterable[type]) -> Iterator[None]:
    """For a while, these classes do nothing when they get a subclass."""
    hooks = [
        (base, vars(base)["__init_subclass__"])
        for base in dict.fromkeys(bases)
        if base.__module__ in MAINS and "__init_subclass__" in vars(base)
    ]
    for base, _ in hooks:
        base.__init_subclass__ = classmethod(_do_nothing)  # type: ignore[arg-type,assignment,method-assign]
    try:
        yield
    finally:
        for base, hook in hooks:
            base.__init_subclass__ = hook  # type: ignore[method-assign]

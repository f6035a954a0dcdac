"""How objects travel that pickle refuses, where a copy means in a worker what it meant at home.

Used for globals of `__main__` only: each worker gets one object of its own, as it would in a forked child.
Never for arguments: there a second lock or a second connection would be a surprise.
"""

from __future__ import annotations

import ast
import contextvars
import functools
import inspect
import io
import itertools
import queue
import sys
import threading
import typing
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from types import CellType, FunctionType, GeneratorType
from typing import Any

Reduced = tuple[Any, ...]
ALIASES: tuple[type, ...] = (vars(typing)["TypeAliasType"],) if "TypeAliasType" in vars(typing) else ()
LRU = type(functools.lru_cache(lambda: None))
# What belongs to the process that made it. Some of these could be pickled, and waiting for a copy never ends.
REFUSED: tuple[tuple[type, str], ...] = (
    (threading.Thread, "a thread stays in the process that started it"),
    (Executor, "an executor belongs to the process that made it"),
    (Future, "a future belongs to the process that waits for it"),
)

_pinned: list[Any] = []  # what weak references of `__main__` point to: at home, something holds it


def reduce(item: Any) -> Reduced | None:
    """A way to rebuild this object in a worker; None if it has no way of its own."""
    found = REDUCTIONS.get(type(item))
    if found is not None:
        return found(item)
    for kind, reason in REFUSED:
        if isinstance(item, kind):
            raise TypeError(reason)
    if isinstance(item, threading.local):
        return _make_local, (type(item), dict(item.__dict__))
    sqlite3, tempfile = sys.modules.get("sqlite3"), sys.modules.get("tempfile")
    if sqlite3 is not None and isinstance(item, sqlite3.Connection):
        return _connection(item)
    if tempfile is not None and isinstance(item, tempfile._TemporaryFileWrapper):
        return reduce(item.file)  # not the part of it that deletes the file
    return None


# --- threads --------------------------------------------------------------------------------------------
def _make_local(kind: type[Any], values: dict[str, Any]) -> Any:
    made = kind()
    made.__dict__.update(values)
    return made


def _simple_queue(item: queue.SimpleQueue[Any]) -> Reduced:
    if not item.empty():
        raise TypeError("a SimpleQueue that holds something cannot be copied; use queue.Queue")
    return queue.SimpleQueue, ()


def _context_variable(item: contextvars.ContextVar[Any]) -> Reduced:
    value = (item.get(),) if item in contextvars.copy_context() else ()
    default: tuple[Any, ...] = ()
    with suppress(LookupError):
        default = (contextvars.Context().run(item.get),)
    return _make_context_variable, (item.name, default, value)


def _make_context_variable(name: str, default: tuple[Any, ...], value: tuple[Any, ...]) -> Any:
    made: contextvars.ContextVar[Any] = (
        contextvars.ContextVar(name, default=default[0]) if default else contextvars.ContextVar(name)
    )
    if value:
        made.set(value[0])
    return made


# --- functions and types that pickle knows only by name ---------------------------------------------------
def _cached(item: Any) -> Reduced:
    state = {name: value for name, value in vars(item).items() if name != "__wrapped__"}
    parameters = item.cache_parameters()
    return _make_cached, (item.__wrapped__, parameters["maxsize"], parameters["typed"]), state


def _make_cached(function: Callable[..., Any], maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize, typed)(function)


def _cached_property(item: functools.cached_property[Any]) -> Reduced:
    # It has a lock before Python 3.12
    state = {name: value for name, value in vars(item).items() if name not in ("func", "lock")}
    return functools.cached_property, (item.func,), state


def _new_type(item: Any) -> Reduced:
    state = {"__qualname__": item.__qualname__, "__module__": item.__module__}
    return typing.NewType, (item.__name__, item.__supertype__), state


def _type_parameter(item: Any) -> Reduced:
    return _make_type_parameter, (type(item), item.__name__, item.__module__)


def _make_type_parameter(kind: Any, name: str, module: str) -> Any:
    made = kind(name)
    with suppress(AttributeError):
        made.__module__ = module
    return made


def _type_alias(item: Any) -> Reduced:
    return _make_type_alias, (item.__name__, item.__value__, item.__type_params__)


def _make_type_alias(name: str, value: Any, parameters: Any) -> Any:
    kind: Any = vars(typing)["TypeAliasType"]
    return kind(name, value, type_params=parameters)


# --- iterators ---------------------------------------------------------------------------------------------
def _generator(item: GeneratorType[Any, Any, Any]) -> Reduced:
    frame = item.gi_frame
    if frame is None or inspect.getgeneratorstate(item) != inspect.GEN_CREATED:
        raise TypeError("a generator that has begun cannot be copied")
    code, held = item.gi_code, dict(frame.f_locals)
    cells = [CellType(held[name]) if name in held else CellType() for name in code.co_freevars]
    function = FunctionType(code, frame.f_globals, item.__name__, None, tuple(cells))
    function.__qualname__ = item.__qualname__
    return _make_generator, (function, held)


def _make_generator(function: FunctionType, held: Mapping[str, Any]) -> Any:
    code = function.__code__
    names, count = code.co_varnames, code.co_argcount
    end = count + code.co_kwonlyargcount
    args = [held[name] for name in names[:count]]
    keywords = {name: held[name] for name in names[count:end]}
    if code.co_flags & inspect.CO_VARARGS:
        args += held[names[end]]
        end += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords.update(held[names[end]])
    return function(*args, **keywords)


def _count(item: Any) -> Reduced:
    # Its own way through pickle goes away with Python 3.14
    numbers = ast.literal_eval(repr(item).removeprefix("count"))
    return itertools.count, numbers if isinstance(numbers, tuple) else (numbers,)


# --- weak references ---------------------------------------------------------------------------------------
def _reference(item: weakref.ReferenceType[Any]) -> Reduced:
    return _make_reference, (item(),)


class _Gone:
    """What a dead reference pointed to."""


def _make_reference(target: Any) -> Any:
    if target is None:
        return weakref.ref(_Gone())
    _pinned.append(target)
    return weakref.ref(target)


def _weak_collection(item: Any) -> Reduced:
    held = list(item) if isinstance(item, weakref.WeakSet) else dict(item)
    return _make_weak_collection, (type(item), held)


def _make_weak_collection(kind: Any, held: Any) -> Any:
    _pinned.append(held)
    return kind(held)


# --- files and databases -----------------------------------------------------------------------------------
def _file(item: Any) -> Reduced | None:
    """An open file is opened anew, at the same place; one that is written from its start, for appending."""
    name, mode = getattr(item, "name", None), str(getattr(item, "mode", ""))
    if item.closed or item in (sys.stdout, sys.stderr, sys.stdin) or not isinstance(name, str):
        return None
    if "+" in mode:
        mode = mode.replace("w", "r").replace("x", "r")
    else:
        mode = mode.replace("w", "a").replace("x", "a")
    text = (item.encoding, item.errors) if isinstance(item, io.TextIOWrapper) else ()
    return _open_at, (name, mode, None if "a" in mode else item.tell(), text)


def _open_at(name: str, mode: str, position: int | None, text: tuple[Any, ...]) -> Any:
    file = open(name, mode, -1, *text)  # noqa: SIM115  it is a global of the script
    if position is not None:
        file.seek(position)
    return file


def _connection(item: Any) -> Reduced:
    """An SQLite database in memory is copied, one in a file is opened anew."""
    files = {row[1]: row[2] for row in item.execute("PRAGMA database_list").fetchall()}
    data = None if files.get("main") else item.serialize()
    settings = (item.isolation_level, item.row_factory, item.text_factory)
    return _make_connection, (type(item), files.get("main") or ":memory:", data, settings)


def _make_connection(kind: Any, place: str, data: bytes | None, settings: tuple[Any, ...]) -> Any:
    made = kind(place)
    if data is not None:
        made.deserialize(data)
    made.isolation_level, made.row_factory, made.text_factory = settings
    return made


REDUCTIONS: Mapping[type, Callable[[Any], Reduced | None]] = {
    type(threading.Lock()): lambda _: (threading.Lock, ()),
    type(threading.RLock()): lambda _: (threading.RLock, ()),
    queue.SimpleQueue: _simple_queue,
    contextvars.ContextVar: _context_variable,
    LRU: _cached,
    functools.cached_property: _cached_property,
    typing.NewType: _new_type,
    typing.ParamSpec: _type_parameter,
    typing.TypeVarTuple: _type_parameter,
    **dict.fromkeys(ALIASES, _type_alias),
    GeneratorType: _generator,
    itertools.count: _count,
    weakref.ReferenceType: _reference,
    weakref.WeakValueDictionary: _weak_collection,
    weakref.WeakKeyDictionary: _weak_collection,
    weakref.WeakSet: _weak_collection,
    io.TextIOWrapper: _file,
    io.BufferedWriter: _file,
    io.BufferedReader: _file,
    io.BufferedRandom: _file,
}
# Types whose objects pickle refers to by their name, as it does to functions and classes
NAMED: tuple[type, ...] = (
    *(type, FunctionType, LRU, typing.NewType),
    *(typing.ParamSpec, typing.TypeVar, typing.TypeVarTuple),
    *ALIASES,
)

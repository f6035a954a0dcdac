"""Import CPython's test modules and point them at the target.

The modules are patched in this process only; workers import them untouched, which is all they need
to unpickle functions. ``BrokenProcessPool`` stays the standard library's class on purpose: code
that catches it must keep working.
"""

from __future__ import annotations

import concurrent.futures
import functools
import importlib
import os
import pkgutil
import types
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from .target import Target

PACKAGE = "test.test_concurrent_futures"
DEADLOCK_LIMIT = 20.0
PROCESS_MIXINS = ("ProcessPoolForkMixin", "ProcessPoolForkserverMixin", "ProcessPoolSpawnMixin")
PRELUDE = "import multiprocessing; from tests.cpython.inside import target; target.install_in_script()\n"
SHARED_FUTURES = (
    ("PENDING_FUTURE", {"state": "PENDING"}),
    ("RUNNING_FUTURE", {"state": "RUNNING"}),
    ("CANCELLED_FUTURE", {"state": "CANCELLED"}),
    ("CANCELLED_AND_NOTIFIED_FUTURE", {"state": "CANCELLED_AND_NOTIFIED"}),
    ("EXCEPTION_FUTURE", {"state": "FINISHED", "exception": OSError()}),
    ("SUCCESSFUL_FUTURE", {"state": "FINISHED", "result": 42}),
)


def test_modules() -> list[types.ModuleType]:
    """The package's modules, or the single module of Python 3.11's early releases."""
    root = importlib.import_module(PACKAGE)
    if not hasattr(root, "__path__"):
        return [root]
    names = [info.name for info in pkgutil.iter_modules(root.__path__)]
    wanted = [name for name in names if name != "test_interpreter_pool"]
    return [importlib.import_module(f"{PACKAGE}.{name}") for name in wanted]


def test_classes(modules: list[types.ModuleType]) -> Iterator[type[unittest.TestCase]]:
    """Every TestCase with tests, in the module that defines it."""
    for module in modules:
        for value in vars(module).values():
            is_case = isinstance(value, type) and issubclass(value, unittest.TestCase)
            if is_case and value.__module__ == module.__name__:
                yield value


def family(case: type[unittest.TestCase]) -> str:
    """Which executor a TestCase builds: a start method, "thread", or "none"."""
    context = getattr(case, "ctx", None)
    if context is not None:
        return str(context)
    mixins = {base.__name__ for base in case.__mro__}
    return "thread" if "ThreadPoolMixin" in mixins else "none"


def point_at(target: Target, modules: list[types.ModuleType]) -> None:
    """Patch every module in place."""
    stand_in = _futures_stand_in(target)
    for module in modules:
        names = vars(module)
        if "futures" in names:
            names["futures"] = stand_in
        if "assert_python_ok" in names:
            names["assert_python_ok"] = _script_runner(names["assert_python_ok"])
        if "ExecutorDeadlockTest" in names:
            names["ExecutorDeadlockTest"].TIMEOUT = DEADLOCK_LIMIT
        for mixin in PROCESS_MIXINS:
            if mixin in names:
                names[mixin].executor_type = target.process_pool
        if "ThreadPoolMixin" in names:
            names["ThreadPoolMixin"].executor_type = target.thread_pool
    if target.future is not None:
        _replace_future(target.future, modules)


def _futures_stand_in(target: Target) -> types.ModuleType:
    """``concurrent.futures`` with the target in it.

    Its process pool differs from ``executor_type`` where the tests that the standard library
    skips for its own pool shall run: they skip on equality.
    """
    stand_in = types.ModuleType("concurrent.futures")
    stand_in.__getattr__ = functools.partial(getattr, concurrent.futures)  # type: ignore[method-assign]
    process_pool = target.process_pool
    if target.runs_known_hangs:
        process_pool = type(process_pool.__name__, (process_pool,), {"__slots__": ()})
    stand_in.ProcessPoolExecutor = process_pool  # type: ignore[attr-defined]
    stand_in.ThreadPoolExecutor = target.thread_pool  # type: ignore[attr-defined]
    return stand_in


def _script_runner(original: Callable[..., Any]) -> Callable[..., Any]:
    def assert_python_ok(*args: str, **environment: str) -> Any:
        if args and args[0] == "-c":
            args = ("-c", PRELUDE + args[1], *args[2:])
        # Naming a variable also turns off isolated mode, so the script sees our path.
        environment.setdefault("PYTHONPATH", os.environ["PYTHONPATH"])
        return original(*args, **environment)

    return assert_python_ok


def _replace_future(future: type[Any], modules: list[types.ModuleType]) -> None:
    made: dict[str, Any] = {}
    for module in modules:
        names = vars(module)
        if "Future" in names:
            names["Future"] = future
        if not made and "create_future" in names:
            made = {name: names["create_future"](**spec) for name, spec in SHARED_FUTURES}
    for module in modules:
        for name in made.keys() & vars(module).keys():
            setattr(module, name, made[name])

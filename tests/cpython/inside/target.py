"""The executor class under test, dressed as the standard library's.

The classes made here answer to the names ``ProcessPoolExecutor`` and ``ThreadPoolExecutor`` and
translate only what a worker kind needs: which ``mp_context`` reaches the pool, and ``kind``. They
must never soften a behaviour, or a passing test would mean nothing.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from dataclasses import dataclass
from typing import Any

ASYNC_SLOTS = 2
"""Few slots per async worker, so that tests which fill a pool of five workers still fill it."""

CONTEXT_KINDS = ("fork", "forkserver", "spawn")


@dataclass(frozen=True)
class Target:
    """What stands in for each name of ``concurrent.futures``."""

    process_pool: type[Any]
    thread_pool: type[Any]
    future: type[Any] | None
    """Replaces the name ``Future`` in the tests, when the future class itself is under test."""
    runs_known_hangs: bool
    """Whether to run the tests that the standard library skips for its own process pool."""


def from_environment() -> Target:
    """The target that the pytest process asked for."""
    kind = os.environ["MILLPOND_CPYTHON_KIND"]
    if os.environ["MILLPOND_CPYTHON_TARGET"] == "stdlib":
        return _stdlib_target(kind)
    return _pool_target(kind)


def install_in_script() -> None:
    """Make ``from concurrent.futures import ...`` give the target: for ``python -c`` scripts."""
    target = from_environment()
    concurrent.futures.ProcessPoolExecutor = target.process_pool  # type: ignore[misc]
    concurrent.futures.ThreadPoolExecutor = target.thread_pool  # type: ignore[misc]


def _stdlib_target(kind: str) -> Target:
    future = concurrent.futures.Future if kind == "future" else None
    process_pool = concurrent.futures.ProcessPoolExecutor
    return Target(process_pool, concurrent.futures.ThreadPoolExecutor, future, False)


def _pool_target(kind: str) -> Target:
    future = _named("Future", _pool_future()) if kind == "future" else None
    return Target(_process_pool(kind), _thread_pool(), future, True)


def _pool_future() -> type[Any]:
    from millpond.pool.future import PoolFuture

    return PoolFuture


def _named(name: str, *bases: type[Any], **members: Any) -> type[Any]:
    return type(name, bases, {"__module__": __name__, "__slots__": (), **members})


def _process_pool(kind: str) -> type[Any]:
    from millpond import Pool

    def adapted(options: dict[str, Any]) -> dict[str, Any]:
        if kind in CONTEXT_KINDS:
            options.setdefault("mp_context", multiprocessing.get_context(kind))
        elif kind in ("process", "async"):
            options.pop("mp_context", None)
        if kind == "async":
            options.update(kind="async", concurrency=ASYNC_SLOTS)
        return options

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        Pool.__init__(self, *args, **adapted(options))

    return _named("ProcessPoolExecutor", Pool, __init__=__init__)


def _thread_pool() -> type[Any]:
    from millpond import Pool

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        Pool.__init__(self, *args, kind="thread", **options)

    return _named("ThreadPoolExecutor", Pool, __init__=__init__)

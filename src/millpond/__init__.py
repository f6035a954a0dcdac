"""Millpond: workers that survive crashes, hangs and leaks, behind the standard Executor interface.

Public names only, imported on first use: a worker process imports this package too and must start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millpond.errors import (
        MemoryExceeded,
        MillpondError,
        OptionError,
        PayloadError,
        PoolClosed,
        PoolDegraded,
        PoolError,
        PoolFull,
        TaskExpired,
        TaskKilled,
        TaskTimeout,
        WorkerDied,
    )
    from millpond.pool.executor import Pool

__all__ = [
    "MemoryExceeded",
    "MillpondError",
    "OptionError",
    "PayloadError",
    "Pool",
    "PoolClosed",
    "PoolDegraded",
    "PoolError",
    "PoolFull",
    "TaskExpired",
    "TaskKilled",
    "TaskTimeout",
    "WorkerDied",
]
__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'millpond' has no attribute {name!r}")
    module = import_module("millpond.pool.executor" if name == "Pool" else "millpond.errors")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

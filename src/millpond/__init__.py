"""Millpond: workers that survive crashes, hangs and leaks, and durable jobs that survive everything else.

Public names only, imported on first use: a worker process imports this package too and must start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.errors import (
        ArgumentsRefused,
        Conflict,
        JobCancelled,
        JobError,
        JobFailed,
        MemoryExceeded,
        MillpondError,
        NodeRefused,
        OptionError,
        OutcomeUnknown,
        PayloadError,
        PayloadRefused,
        PoolClosed,
        PoolDegraded,
        PoolError,
        PoolFull,
        ResultTimeout,
        SchemaOutdated,
        StoreBusy,
        StoreError,
        StoreRefused,
        StoreUnavailable,
        TaskExpired,
        TaskKilled,
        TaskTimeout,
        UnknownJob,
        UnknownTask,
        WorkerDied,
    )
    from millpond.handle import JobHandle
    from millpond.job import (
        Job,
        JobState,
        Priority,
        Slot,
    )
    from millpond.node.node import Node
    from millpond.options import (
        Resources,
        Retry,
    )
    from millpond.pool.executor import Pool
    from millpond.recurring import (
        RecurringTask,
        all_missed,
        fresh,
        not_running,
        same_tick,
        success_since,
    )
    from millpond.redaction import Secret
    from millpond.rules.scaling.policies import (
        Fixed,
        ScaleByDepth,
        ScaleForWait,
    )
    from millpond.task import (
        Call,
        Task,
    )
    from millpond.task_context import (
        Cancel,
        RetryAfter,
        Snooze,
        current_job,
    )
    from millpond.workflows import (
        chain,
        group,
    )

__all__ = [
    "App",
    "ArgumentsRefused",
    "Call",
    "Cancel",
    "Conflict",
    "Fixed",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobHandle",
    "JobState",
    "MemoryExceeded",
    "MillpondError",
    "Node",
    "NodeRefused",
    "OptionError",
    "OutcomeUnknown",
    "PayloadError",
    "PayloadRefused",
    "Pool",
    "PoolClosed",
    "PoolDegraded",
    "PoolError",
    "PoolFull",
    "Priority",
    "RecurringTask",
    "Resources",
    "ResultTimeout",
    "Retry",
    "RetryAfter",
    "ScaleByDepth",
    "ScaleForWait",
    "SchemaOutdated",
    "Secret",
    "Slot",
    "Snooze",
    "StoreBusy",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "Task",
    "TaskExpired",
    "TaskKilled",
    "TaskTimeout",
    "UnknownJob",
    "UnknownTask",
    "WorkerDied",
    "all_missed",
    "chain",
    "current_job",
    "fresh",
    "group",
    "not_running",
    "same_tick",
    "success_since",
]
__version__ = "0.1.0.dev0"

# Where each public name lives; those not listed are errors.
_HOMES = {
    "App": "millpond.app",
    "chain": "millpond.workflows",
    "group": "millpond.workflows",
    "Cancel": "millpond.task_context",
    "RetryAfter": "millpond.task_context",
    "Snooze": "millpond.task_context",
    "current_job": "millpond.task_context",
    "JobHandle": "millpond.handle",
    "Job": "millpond.job",
    "JobState": "millpond.job",
    "Priority": "millpond.job",
    "Slot": "millpond.job",
    "Node": "millpond.node.node",
    "Resources": "millpond.options",
    "Retry": "millpond.options",
    "Pool": "millpond.pool.executor",
    "Fixed": "millpond.rules.scaling.policies",
    "ScaleByDepth": "millpond.rules.scaling.policies",
    "ScaleForWait": "millpond.rules.scaling.policies",
    "Secret": "millpond.redaction",
    "RecurringTask": "millpond.recurring",
    "all_missed": "millpond.recurring",
    "fresh": "millpond.recurring",
    "not_running": "millpond.recurring",
    "same_tick": "millpond.recurring",
    "success_since": "millpond.recurring",
    "Call": "millpond.task",
    "Task": "millpond.task",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'millpond' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "millpond.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

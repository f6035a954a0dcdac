"""Libraries with threads of their own use as many as their jobs have cores: OMP_NUM_THREADS and friends.

Eight workers that each start a thread for every core are slower than eight that do not. What the user has
set is never changed; pools whose tasks declare no cores are left alone.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millpond.task import Task

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def threads_by_queue(tasks: Iterable[Task[Any, Any]]) -> dict[str, int]:
    """For every queue whose tasks declare cores: the most that one of them has, whole ones."""
    found: dict[str, int] = {}
    for task in tasks:
        cores = task.resources.needs.get("cpu")
        if cores:
            found[task.queue] = max(found.get(task.queue, 1), int(cores))
    return found


def for_all(by_queue: Mapping[str, int], queues: Iterable[str]) -> dict[str, str]:
    """What can be set for workers of every queue, before anything is imported: only if all have a number."""
    numbers = [by_queue.get(queue) for queue in queues]
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        return {}
    return {name: str(max(known)) for name in VARIABLES if name not in os.environ}


def limit(threads: int | None) -> None:
    """In a worker, before it imports the app: set what nobody has set. A library that came with the template
    has read its variables already; threadpoolctl, where it is installed, reaches most of them."""
    if threads is None:
        return
    unset = [name for name in VARIABLES if name not in os.environ]
    for name in unset:
        os.environ[name] = str(threads)
    if unset and "numpy" in sys.modules:
        try:
            threadpoolctl = importlib.import_module("threadpoolctl")
        except ImportError:
            return
        threadpoolctl.threadpool_limits(threads)

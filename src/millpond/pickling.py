"""How tasks and apps get into another process: by the name of their module, or by value.

What a module holds is imported there. What has no such name (a script's `__main__`, a function inside a
function) is rebuilt, once a process: the same app on the same store, the same task in it.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from millpond.errors import StoreRefused

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.pool_settings import PoolSettings
    from millpond.task import Task

_rebuilt: dict[str, App] = {}  # by the key of the app they stand for


def place_of(app: App) -> tuple[str, str] | None:
    """The module and name under which any process that imports it finds this app; None if there is none."""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__name__", "__main__") != name or name == "__main__":
            continue  # not a module that can be imported by this name
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is app:
                return name, attribute
    return None


def is_importable(task: Task[Any, Any]) -> bool:
    """Does the module of this task hold it under its own name?"""
    if task.__module__ == "__main__":
        return False
    found: Any = sys.modules.get(task.__module__)
    for name in task.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is task


def task_by_value(task: Task[Any, Any]) -> str | tuple[Any, ...]:
    """What pickle needs to make this task anew, or its name."""
    if is_importable(task):
        return task.__qualname__
    # The function comes as state, after the task itself: it may refer to its own task, as recursion does
    state = {"function": task.function, "options": {**task.given, "name": task.name}}
    return _task_shell, (type(task), task.app, task.name), state


def app_by_value(app: App) -> tuple[Any, ...]:
    """What pickle needs to find or make this app."""
    place = place_of(app)
    if place is not None:
        return _found_app, place
    key = vars(app).setdefault("_key", uuid.uuid4().hex)
    _rebuilt[key] = app  # here it stays itself
    pools = [pool._replace(policy=None) for pool in app.pools.values() if pool.timeout is not None]
    return _same_app, (key, app._address, app.name, dict(app.tokens), pools)


def _found_app(module: str, attribute: str) -> App:
    import importlib

    app: App = getattr(importlib.import_module(module), attribute)
    return app


def _same_app(
    key: str, address: str | None, name: str, tokens: dict[str, int], pools: Sequence[PoolSettings] = ()
) -> App:
    """`pools` are those that bound the jobs of tasks without a timeout: a job may enqueue others."""
    from millpond.app import App

    app = _rebuilt.get(key)
    if app is None:
        if address is None:
            raise StoreRefused(f"app {name!r} was given a store object, which cannot follow: give it a URL")
        app = _rebuilt[key] = App(address, name=name, tokens=tokens)
        app.pools.update({pool.name: pool for pool in pools})
    return app


def _task_shell(kind: type[Task[Any, Any]], app: App, name: str) -> Task[Any, Any]:
    known = app.tasks.get(name)
    if known is not None:
        return known
    task = kind.__new__(kind)
    task.app = app
    return task

"""How the workers of a node get the app: by importing its modules once, in the template, or by value.

A module's app and tasks are imported there before any worker exists. An app made in a script or in a
function travels with its tasks to each worker.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millpond.pickling import is_importable, place_of

FIRST = (
    "millpond.node.worker.limit_watch",
    "millpond.node.worker.entry",
)  # what a template imports before the app

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.pool.process.starters import Hub
    from millpond.task import Task


class ImportedApp(NamedTuple):
    """An app that lies in a module."""

    module: str
    attribute: str
    also: tuple[str, ...]  # modules whose import registers further tasks

    def __call__(self) -> App:
        for name in self.also:
            importlib.import_module(name)
        app: App = getattr(importlib.import_module(self.module), self.attribute)
        return app


class CarriedApp:
    """An app and its tasks, taken along by value."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.tasks: list[Task[Any, Any]] = list(app.tasks.values())

    def __call__(self) -> App:
        return self.app


class Definitions:
    """The tasks that were registered after the workers' app was fixed, pickled for those workers."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._first = {**app.tasks, **app.aliases}
        self._changes = app.changes
        self._pickled: dict[str, tuple[Task[Any, Any], bytes]] = {}

    def of(self, name: str) -> bytes | None:
        """What a worker needs to know the task of that name; None if its app has it already."""
        if self._app.changes == self._changes or not self._app.knows(name):
            return None
        task = self._app.get_task(name)
        if self._first.get(name) is task:
            return None
        known = self._pickled.get(name)
        if known is None or known[0] is not task:
            import cloudpickle

            known = self._pickled[name] = (task, cloudpickle.dumps(task))
        return known[1]


class Source(NamedTuple):
    """What a worker calls to get the app, and what its template should import first."""

    load: ImportedApp | CarriedApp
    preload: tuple[str, ...]
    hub: Hub | None = None  # the template that all pools share
    doorway: str | None = None  # the way to a store in the node's memory
    threads: Mapping[str, int] = {}  # by queue: how many threads libraries may start in a worker
    definition: Callable[[str], bytes | None] = lambda _: None  # of a task that workers may not have
    printed: Callable[[str, Any], None] | None = None  # takes over the output of a worker, by its pool
    known_at: Callable[[], float] | None = None  # when the node last heard whether there is work


def source_of(app: App) -> Source:
    """The way for this app."""
    place = place_of(app)
    if place is None or not all(is_importable(task) for task in app.tasks.values()):
        return Source(CarriedApp(app), FIRST, definition=Definitions(app).of)
    also = tuple(dict.fromkeys(task.__module__ for task in app.tasks.values()))
    preload = tuple(dict.fromkeys((*FIRST, place[0], *also)))
    return Source(ImportedApp(*place, also), preload, definition=Definitions(app).of)

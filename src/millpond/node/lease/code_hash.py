"""Which code a node runs, as a short hash: two nodes with the same hash read the same arguments.

It covers the names and parameters of the tasks, and the source files that define the tasks and the classes of
their parameters. Reads files; decides nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.task import Task

LARGEST = 2**22  # bytes of a source file that is looked into
MOST_FILES = 500
DEEPEST = 5  # steps into list[dict[str, Order]]


def code_of(app: App) -> str:
    """The hash of what this app can read."""
    digest = blake2b(digest_size=8)
    for name, task in sorted(app.tasks.items()):
        digest.update(f"{name}{task.signature.described()}{sorted(task.aliases)}\n".encode())
    modules = {name for task in app.tasks.values() for name in _modules(task)}
    for name in sorted(modules)[:MOST_FILES]:
        digest.update(name.encode() + _source(name))
    return digest.hexdigest()


def _modules(task: Task[Any, Any]) -> Iterator[str]:
    yield str(getattr(task.function, "__module__", ""))
    for kind in task.signature.kinds():
        yield from _defining(kind, DEEPEST)


def _defining(kind: Any, depth: int) -> Iterator[str]:
    if isinstance(kind, type):
        yield kind.__module__
    parts: Iterable[Any] = get_args(kind) if depth else ()
    for part in parts:
        yield from _defining(part, depth - 1)


def _source(module: str) -> bytes:
    """The text of a module; nothing for what has none, such as builtins."""
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None or not path.endswith(".py"):
        return b""
    try:
        with Path(path).open("rb") as file:
            return file.read(LARGEST)
    except OSError:
        return b""

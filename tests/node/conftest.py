"""Fixtures of the node tests: an app on each sort of store, and nodes that are stopped in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from millpond import App
from millpond.node.node import Node
from tests.stores.places import STORES, place


@pytest.fixture(params=STORES)
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[App]:
    """An app on a store with nothing in it; one test runs over every sort of store."""
    with place(request.param, tmp_path) as url:
        made = App(url)
        made.store.migrate()
        yield made
        made.store.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[App]:
    """An app on SQLite, where the store makes no difference."""
    made = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield made
    made.store.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Node]]:
    """Start nodes that are stopped when the test ends."""
    nodes: list[Node] = []

    def start_one(app: App, **options: Any) -> Node:
        node = Node(app, **options)
        nodes.append(node)
        node.start()
        return node

    yield start_one
    for node in nodes:
        node.stop(0.0)

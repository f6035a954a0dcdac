"""A store of each sort for the tests of planners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millpond.store.open import open_store
from tests.stores.places import place


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A store with nothing in it."""
    with place(request.param, tmp_path) as url:
        store = open_store(url)
        store.migrate()
        yield store
        store.close()


@pytest.fixture
def memory() -> Iterator[Any]:
    """The same in memory, for what is no business of the store."""
    store = open_store("memory://")
    yield store
    store.close()

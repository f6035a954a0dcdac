"""Fixtures of the API tests: an app with some tasks on each sort of store, and clients that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond import App
from millpond.api.security.gate import Gate
from tests.api.asking import ADMIN, Client, gate_for
from tests.stores.places import STORES, place


def with_tasks(url: str) -> App:
    app = App(url)
    app.store.migrate()
    app.pool("images", workers=(1, 3), max_wait="10s")

    @app.task(queue="images", name="resize")
    def resize(path: str, width: int = 100, password: str = "") -> str:
        return path

    @app.task(queue="mail", name="send")
    async def send(user: int) -> None: ...

    return app


@pytest.fixture(params=STORES)
def everywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[App]:
    """The app on each sort of store."""
    with place(request.param, tmp_path) as url:
        app = with_tasks(url)
        yield app
        app.store.close()


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """The app where the store makes no difference."""
    made = with_tasks("memory://")
    yield made
    made.store.close()


@pytest.fixture
def gate(app: App) -> Iterator[Gate]:
    found = gate_for(app)
    yield found
    found.close()


@pytest.fixture
def admin(gate: Gate) -> Client:
    return Client(gate, ADMIN)

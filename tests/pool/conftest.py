"""Fixtures of the pool tests: gates, journals, pools that always end, and ears for their events."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from millpond import Pool
from millpond.events import Event
from tests.pool.tasks import PATIENCE, Gate

E = TypeVar("E")


class Heard:
    """Every event of a pool, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind so far."""
        with self._changed:
            return [event for event in self.events if isinstance(event, kind)]

    def wait_for(self, kind: type[E], count: int = 1, **facts: object) -> list[E]:
        """Wait until so many events of a kind, with these facts, have come."""

        def fitting() -> list[E]:
            return [
                event
                for event in self.events
                if isinstance(event, kind) and all(getattr(event, name) == facts[name] for name in facts)
            ]

        with self._changed:
            arrived = self._changed.wait_for(lambda: len(fitting()) >= count, PATIENCE)
            assert arrived, f"heard {len(fitting())} of {count} {kind.__name__} {facts}: {self.events}"
            return fitting()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so, looking at every event."""
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), self.events


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    folder = tmp_path / "gate"
    folder.mkdir()
    made = Gate(folder)
    yield made
    made.close()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def new_pool(gate: Gate) -> Iterator[Callable[..., Pool]]:
    """Makes pools that are ended whatever happens to the test: with the gate open, then by force."""
    made: list[Pool] = []

    def make(*args: Any, **options: Any) -> Pool:
        pool = Pool(*args, **options)
        made.append(pool)
        return pool

    yield make
    gate.open()
    # In a thread: a pool that cannot be shut down must fail its test, not hold up the others
    ender = threading.Thread(target=_end, args=(made,), daemon=True)
    ender.start()
    ender.join(2 * PATIENCE)
    assert not ender.is_alive(), "a pool cannot be shut down"


def _end(pools: list[Pool]) -> None:
    for pool in pools:
        pool.shutdown(cancel_futures=True, timeout=PATIENCE)


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., str]:
    """Runs a program in a process of its own, as a user would, and returns what it printed."""

    def run(source: str, *args: str) -> str:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source))
        done = subprocess.run(
            [sys.executable, str(script), *args],
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def listen() -> Callable[[Pool], Heard]:
    """Subscribes to a pool and returns what was heard."""

    def subscribe(pool: Pool) -> Heard:
        heard = Heard()
        pool.subscribe(heard)
        return heard

    return subscribe

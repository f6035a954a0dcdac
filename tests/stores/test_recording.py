"""What the benchmark of the stores writes down and sends again by the bare driver does the same once more."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from millpond.ids import new_id
from millpond.job import JobOptions, NewJob
from tests.stores.acting import Node, tally
from tests.stores.places import address_and_name, place

SOURCE = Path(__file__).parents[2] / "bench" / "stores" / "recording.py"
KINDS = {"sqlite": "SQLite", "postgres": "Postgres", "redis": "Redis"}


@pytest.fixture(scope="module")
def recording():
    return runpy.run_path(str(SOURCE))


@pytest.mark.parametrize("name", KINDS)
def test_a_tape_that_is_played_to_an_empty_store_leaves_what_the_recorded_calls_left(
    recording, name, tmp_path
):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    kind, replay = recording[f"Recording{KINDS[name]}"], recording[f"replay_{name}"]
    with place(name, tmp_path / "a") as first, place(name, tmp_path / "b") as second:
        recorded, played = (kind(url.removeprefix("sqlite:///")) for url in (first, second))
        for store in (recorded, played):
            store.migrate()
        recorded.tape = []
        _work(recorded)
        tape, recorded.tape = recorded.tape, None
        elsewhere = [(what, _renamed(said, _name(first), _name(second)), more) for what, said, more in tape]
        assert replay(played, elsewhere) > 0
        assert tally(played) == tally(recorded) == {"queued": 1, "running": 1, "completed": 1}
        for store in (recorded, played):
            store.close()


def _work(store):
    node = Node(store)
    store.enqueue(
        [NewJob(id=new_id(), task="t", payload=b"1", options=JobOptions(), fresh=True) for _ in range(3)]
    )
    node.settle(node.claim_one())
    node.claim_one()


def _name(url):
    """The schema or the namespace; a file has none."""
    return "" if url.startswith("sqlite") else address_and_name(url)[1]


def _renamed(said, old, new):
    """A text or the words of a command, for the other place."""
    if isinstance(said, tuple):
        return tuple(_renamed(word, old, new) for word in said)
    if isinstance(said, bytes):
        return said.replace(old.encode(), new.encode()) if old else said
    return said.replace(old, new) if isinstance(said, str) and old else said

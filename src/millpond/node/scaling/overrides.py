"""Bounds of a pool that somebody has set while it runs: a document in the store, obeyed by every node.

`millpond pools set images --workers 2:8` writes it. Nodes look every few seconds whether any such document
has changed, which is one look however many pools they have. What cannot be read changes nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from millpond.errors import Conflict, OptionError
from millpond.pool_settings import pool_settings

if TYPE_CHECKING:
    from millpond.store.protocol import Store

logger = logging.getLogger("millpond")
CHANGES = "pools"
TRIES = 100


class Bounds(NamedTuple):
    """The size a pool may have."""

    least: int
    most: int


class _Document(msgspec.Struct):
    workers: tuple[int, int] | None = None


def read_bounds(store: Store, pool: str) -> Bounds | None:
    """The bounds in force for a pool of this name; None: those of the app."""
    data = store.record(_name(pool)).value
    if not data:
        return None
    try:
        found = msgspec.json.decode(data, type=_Document).workers
        return None if found is None else checked(pool, found)
    except (msgspec.DecodeError, RecursionError, OptionError) as error:
        logger.warning("The bounds set for pool %s cannot be used, and are ignored: %s", pool, error)
        return None


def write_bounds(store: Store, pool: str, bounds: Bounds | None) -> None:
    """Have every node obey these, or the app's own again."""
    version = store.record(_name(pool)).version
    value = msgspec.json.encode(_Document(None if bounds is None else (bounds.least, bounds.most)))
    store.record(_name(pool), value, version)
    _tell(store)


def changes(store: Store) -> int:
    """A number that is another one whenever bounds have been set."""
    return store.record(CHANGES).version


def _tell(store: Store) -> None:
    for _ in range(TRIES):
        try:
            store.record(CHANGES, b"1", store.record(CHANGES).version)
        except Conflict:
            continue  # somebody else has told the nodes to look, perhaps before they could see ours
        return


def checked(pool: str, workers: tuple[int, int]) -> Bounds:
    """The bounds, or OptionError, by the same rules as in `app.pool`."""
    settings = pool_settings(pool, {"workers": workers})
    return Bounds(settings.least, settings.most)


def _name(pool: str) -> str:
    return f"pools/{pool}"

"""What people have switched: a document that planners read and never write.

So a task that somebody disabled stays disabled, whatever the machine thinks of it. Enabling also resets
the breaker: each switch has a number, and a planner obeys one it has not seen.
"""

from __future__ import annotations

import logging

import msgspec

from millpond.errors import Conflict
from millpond.job import Instant
from millpond.store.protocol import Store

logger = logging.getLogger("millpond")
TRIES = 20


class Switch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last word of a person on one task."""

    enabled: bool
    number: int  # grows with every switch
    at: Instant
    by: str = ""


_decoder = msgspec.json.Decoder(dict[str, Switch])


class Switches:
    """The document of an app."""

    def __init__(self, store: Store, app: str) -> None:
        self._store = store
        self._name = f"recurring/{app}/switches"

    def read(self) -> dict[str, Switch]:
        """All of them, by the name of the task."""
        return self._read()[0]

    def _read(self) -> tuple[dict[str, Switch], int]:
        found = self._store.record(self._name)
        try:
            return (_decoder.decode(found.value) if found.version else {}), found.version
        except msgspec.MsgspecError:
            logger.error("The document %s cannot be read: no switch counts", self._name)
            return {}, found.version

    def turn(self, name: str, *, enabled: bool, at: Instant, by: str = "") -> None:
        """Enable or disable a task."""
        for attempt in range(TRIES):
            switches, version = self._read()
            before = switches.get(name)
            switches[name] = Switch(enabled, before.number + 1 if before else 1, at, by)
            if self._written(switches, version, last=attempt == TRIES - 1):
                return

    def forget(self, name: str) -> None:
        """As if nobody had ever touched it."""
        for attempt in range(TRIES):
            switches, version = self._read()
            if switches.pop(name, None) is None:
                return
            if self._written(switches, version, last=attempt == TRIES - 1):
                return

    def _written(self, switches: dict[str, Switch], version: int, *, last: bool) -> bool:
        try:
            self._store.record(self._name, msgspec.json.encode(switches), version)
        except Conflict:
            if last:
                raise
            return False
        return True

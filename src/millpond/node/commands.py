"""Words to one node, left in the store by the HTTP API or a command line, and obeyed within a second or two.

A bounded log that all nodes read on from where they were. Each line names an incarnation, and only that very
one obeys: a node that was started again has another name. What cannot be read is passed over.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from millpond.store.protocol import Entry, Store

logger = logging.getLogger("millpond.node")
LOG = "commands"
KEEP = 1_000  # lines; a node reads them every other second
AT_ONCE = 100
EVERY = 1.9  # seconds between two looks of a node
LONGEST_GRACE = 86_400.0


def send(store: Store, node: str, command: str, **facts: Any) -> int:
    """Leave a word for a node; returns its number in the log."""
    mark = secrets.token_hex(8)
    line = msgspec.json.encode({"node": node, "command": command, "mark": mark, **facts})
    last = 0
    for entry in store.log(LOG, [line], limit=2 * KEEP, keep=KEEP):
        last = entry.number
        if mark.encode() in entry.data:
            break
    return last


class Commands:
    """What a node was told. Used by one thread."""

    def __init__(
        self, store: Store, name: Callable[[], str], verbs: Mapping[str, Callable[[Mapping[str, Any]], None]]
    ) -> None:
        self._store = store
        self._name = name
        self._verbs = verbs
        self._after = 0
        self._due = 0.0

    def look_now_and_then(self) -> None:
        """Look if it is time."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + EVERY
            self.look()

    def look(self) -> None:
        """Obey what was said since the last look."""
        while True:
            found = self._store.log(LOG, after=self._after, limit=AT_ONCE)
            for entry in found:
                self._after = entry.number
                self._obey(entry)
            if len(found) < AT_ONCE:
                return

    def _obey(self, entry: Entry) -> None:
        try:
            said = msgspec.json.decode(entry.data)
        except (msgspec.DecodeError, RecursionError):
            return
        if not isinstance(said, dict) or said.get("node") != self._name():
            return
        verb = self._verbs.get(str(said.get("command")))
        if verb is None:
            logger.warning("The command %r is not known here: this node may be older", said.get("command"))
            return
        logger.info("Command %d: %s", entry.number, said["command"])
        try:
            verb(said)
        except Exception:  # one command that fails must not keep the next from being heard
            logger.exception("The command %s failed", said["command"])


def grace_of(said: Mapping[str, Any], usual: float) -> float:
    """The grace that a drain was told, if that is a sound number."""
    value = said.get("grace")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return usual
    return min(LONGEST_GRACE, max(0.0, float(value)))

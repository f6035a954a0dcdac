"""What one store knows about its schema: the version its code knows, and the last one that it saw.

A node hears of a change with its next renewal. A program that only enqueues asks again once a minute. Verbs
that end what was begun never ask: where a contraction must not be met by older code it takes a table or a
column away, and then they fail by themselves.
"""

from __future__ import annotations

import logging
import time

from millpond.errors import SchemaOutdated
from millpond.rules.store.schema import Schema, refusal

EVERY = 60.0  # seconds after which a program that enqueues asks again

logger = logging.getLogger("millpond")


class Versions:
    """The version that the code knows, and what the store was last seen to have."""

    def __init__(self, known: int, place: str) -> None:
        self.known = known
        self.seen: Schema | None = None  # that this code may work on, or could until now
        self.trouble: str | None = None  # why it may not any more
        self._place = place
        self._asked_at = 0.0

    def check(self, found: Schema | None) -> None:
        """Raise SchemaOutdated unless this code may work on such a store; else remember it."""
        reason = refusal(found, self.known, self._place)
        if reason is not None:
            raise SchemaOutdated(reason)
        assert found is not None
        self.note(found)

    def note(self, found: Schema) -> None:
        """The store has this now. A change while we run is logged once."""
        self._asked_at = time.monotonic()
        before, self.seen = self.seen, found
        self.trouble = refusal(found, self.known, self._place)
        if before is None or before == found:
            return
        if self.trouble is not None:
            logger.error(
                "%s. What has begun is finished as far as it can be, nothing new begins", self.trouble
            )
        else:
            logger.info(
                "%s has schema %d now; this process knows %d and goes on",
                self._place,
                found.version,
                self.known,
            )

    def is_due(self) -> bool:
        """Is it time to ask the store again, before something new is stored?"""
        if self.seen is None:  # the first call asks by itself
            return False
        return self.trouble is not None or time.monotonic() - self._asked_at > EVERY

    def refuse(self) -> None:
        """Raise SchemaOutdated if the store was last seen with a schema that this code may not work on."""
        if self.trouble is not None:
            raise SchemaOutdated(self.trouble)

    def forget(self) -> None:
        """Ask with the next call."""
        self.seen = self.trouble = None

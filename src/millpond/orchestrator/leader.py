"""Who plans: one node at a time holds a document in the store. It saves work and guards nothing.

A lease is judged without comparing clocks: whoever sees the document unchanged for a full lease, by its own
boot clock, may take it; a holder that could not renew for as long, by its own, stops believing. Every
error means "not leader". Two that both believe plan the same ticks, which the store records once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

import msgspec

from millpond.errors import Conflict
from millpond.store.protocol import Document, Store
from millpond.system import boot_clock

logger = logging.getLogger("millpond")
LEASE = 10.0
RENEWALS = 10 / 3  # in the length of a lease
LOOKS = 10.0  # of one who does not lead, in the length of a lease
SILENT = 0.4  # the part of a lease after which a holder that the store does not know as a node is dead


class Leader(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the document says."""

    node: str | None = None  # None: given up in good order
    term: int = 0  # grows with every change of hands
    read: int = 0  # how far the log of triggers has been dealt with


class Leadership:
    """One node's part in the election."""

    def __init__(
        self,
        store: Store,
        name: str,
        identity: Callable[[], str],
        alive: Callable[[], Collection[str] | None] = lambda: None,
        lease: float = LEASE,
    ) -> None:
        self._store = store
        self._name = name
        self._identity = identity
        self._alive = alive  # the nodes known to the store, when somebody has looked
        self.lease = lease
        self.seen = Leader()
        self.trigger = 0  # how far we have read; renewed with the lease
        self._version = -1
        self._seen_at = 0.0  # when the document was last seen to change
        self._held_as: str | None = None
        self._renewed_at = 0.0
        self._look_at = 0.0

    @property
    def is_leader(self) -> bool:
        """Do we hold the lease for certain, by our own clock?"""
        mine = self._held_as is not None and self._held_as == self._identity()
        return mine and boot_clock.seconds() - self._renewed_at < self.lease

    @property
    def term(self) -> int:
        """Of the leader that was last seen."""
        return self.seen.term

    def attend(self) -> bool:
        """Renew or try to win, when it is time; returns whether we lead. Never raises."""
        now = boot_clock.seconds()
        if now < self._look_at:
            return self.is_leader
        try:
            self._renew(now) if self.is_leader else self._stand(now)
        except Exception as error:  # whatever it is: who cannot be sure does not lead
            logger.debug("The election could not be held: %s", error)
            self._held_as = None
        self._look_at = now + self.lease / (RENEWALS if self.is_leader else LOOKS)
        return self.is_leader

    def _renew(self, now: float) -> None:
        """Only what is still ours: a server that lost the document counts its versions from the beginning."""
        if _read(self._store.record(self._name)).node != self._held_as:
            self._held_as = None
            return
        self._write(Leader(self._identity(), self.seen.term, self.trigger), now)

    def _stand(self, now: float) -> None:
        """Look whether the place is free, and take it."""
        self._held_as = None
        found = self._store.record(self._name)
        if found.version != self._version:
            self._version, self._seen_at = found.version, now
            self.seen = _read(found)
        if self._is_free(now):
            self.trigger = self.seen.read
            self._write(Leader(self._identity(), self.seen.term + 1, self.trigger), now)
            if self._held_as is not None:
                logger.info("This node plans the recurring tasks, term %d", self.seen.term)

    def _is_free(self, now: float) -> bool:
        holder = self.seen.node
        if holder is None or holder == self._identity():
            return True
        if now - self._seen_at >= self.lease:
            return True
        alive = self._alive() if now - self._seen_at >= self.lease * SILENT else None
        return alive is not None and holder not in alive

    def _write(self, said: Leader, began: float) -> None:
        try:
            written = self._store.record(self._name, msgspec.json.encode(said), self._version)
        except Conflict:  # somebody else has won
            self._held_as = None
            return
        self._version, self.seen = written.version, said
        self._seen_at = self._renewed_at = began
        self._held_as = said.node

    def give_up(self) -> None:
        """Let another begin at once."""
        if self._held_as is None:
            return
        try:
            self._write(Leader(None, self.seen.term, self.trigger), boot_clock.seconds())
        except Exception as error:  # the lease runs out by itself
            logger.debug("Leadership could not be given up: %s", error)
        self._held_as = None


def _read(found: Document) -> Leader:
    try:
        return msgspec.json.decode(found.value, type=Leader) if found.version else Leader()
    except msgspec.MsgspecError:  # somebody wrote nonsense: whoever comes first puts it right
        return Leader()

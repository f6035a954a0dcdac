"""What is remembered of each recurring task: documents in the store, many tasks to one.

The ledger may lag behind the ticks. A planner that starts from an old entry plans instants that are there
already, is told so by the store, finds their jobs by their ids, and comes to the same conclusions. So
entries are written together, after the fact; one that another planner has changed meanwhile is taken over
as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import msgspec

from millpond.errors import Conflict
from millpond.job import Instant
from millpond.rules.recurring.breaker import Breaker
from millpond.rules.recurring.continuous import Restarts
from millpond.rules.recurring.correction import Dispute
from millpond.store.protocol import Store

logger = logging.getLogger("millpond")
SHARDS = 32
RECENT = 16  # ticks remembered of each task
TRIES = 4
SHORTEST, LONGEST = 0.2, 10.0  # seconds between two writes of a document
WRITES = 20  # a second, of all documents together
BYTES = 500_000  # a second, likewise


class Recent(msgspec.Struct, array_like=True, frozen=True):
    """A tick that has ended."""

    at: Instant
    result: str  # completed, dead, cancelled, gone


class Waiting(msgspec.Struct, array_like=True, frozen=True):
    """A tick that is due and is held back."""

    at: Instant
    due_at: Instant
    reason: str


class Entry(msgspec.Struct, omit_defaults=True):
    """One recurring task. Changed only by whoever plans."""

    cursor: Instant = 0  # the scheduled instant up to which everything has been decided
    serial: int = 0  # grows with every write, so that two planners notice each other
    unfinished: tuple[Instant, ...] = ()  # ticks whose jobs have not ended, as far as is known
    doubts: tuple[Recent, ...] = ()  # of those, why one did not run, should it turn out to have no job
    waiting: tuple[Waiting, ...] = ()
    breaker: Breaker = Breaker()
    switch: int = 0  # the last switch that was obeyed
    restarts: Restarts = Restarts()
    started_at: Instant | None = None  # the last tick that began
    succeeded_at: Instant | None = None  # when the last tick that succeeded ended
    succeeded: Instant | None = None  # its scheduled instant
    failed_at: Instant | None = None
    error: str = ""  # of the last tick that failed
    job: str = ""  # the last one
    late: float = 0.0  # seconds by which the last tick was enqueued after it was due
    skipped: str = ""  # why the last tick that did not run did not
    skipped_at: Instant | None = None
    recent: tuple[Recent, ...] = ()
    is_new: bool = False  # its first tick comes at once, and was not planned yet
    dispute: Dispute | None = None  # instants on which a clock that was ahead has decided


Shard = dict[str, Entry]
_decoder = msgspec.json.Decoder(Shard)
_encoder = msgspec.json.Encoder()


@lru_cache(65_536)
def shard_of(name: str) -> int:
    """Where a task is kept."""
    return blake2b(name.encode(), digest_size=2).digest()[0] % SHARDS


class Ledger:
    """The entries of an app, as one planner or reader has them."""

    def __init__(self, store: Store, app: str) -> None:
        self._store = store
        self._app = app
        self._shards: list[Shard] = [{} for _ in range(SHARDS)]
        self._base: dict[str, int] = {}  # the serial under which an entry was last seen in the store
        self._versions = [0] * SHARDS
        self._dirty: dict[int, dict[str, None]] = {}  # by shard, the longest waiting first
        self._sizes = [0] * SHARDS

    def document(self, shard: int) -> str:
        """The name of a document."""
        return f"recurring/{self._app}/{shard}"

    # --- reading -------------------------------------------------------------------------------------
    def get(self, name: str) -> Entry | None:
        """What is remembered of a task, or None."""
        return self._shards[shard_of(name)].get(name)

    def need(self, name: str) -> Entry:
        """The same of a task that is planned; one that somebody has forgotten begins anew."""
        entry = self.get(name)
        if entry is None:
            entry = Entry(cursor=self._store.clock.now())
            self.put(name, entry)
        return entry

    def all(self) -> dict[str, Entry]:
        """Every task that is remembered, also those that no code knows any more."""
        return {name: entry for shard in self._shards for name, entry in shard.items()}

    def load(self, shards: Iterable[int] = range(SHARDS)) -> None:
        """Read anew; what was not written is forgotten."""
        for shard in shards:
            found = self._shards[shard] = self._read(shard)
            self._dirty.pop(shard, None)
            self._base.update({name: entry.serial for name, entry in found.items()})

    def _read(self, shard: int) -> Shard:
        found = self._store.record(self.document(shard))
        self._versions[shard], self._sizes[shard] = found.version, len(found.value)
        try:
            return _decoder.decode(found.value) if found.version else {}
        except msgspec.MsgspecError:
            logger.error("The document %s cannot be read and begins anew", self.document(shard))
            return {}

    # --- writing -------------------------------------------------------------------------------------
    def put(self, name: str, entry: Entry) -> None:
        """Remember a new task."""
        self._shards[shard_of(name)][name] = entry
        self.change(name)

    def forget(self, name: str) -> None:
        """Remember it no longer."""
        self._shards[shard_of(name)].pop(name, None)
        self.change(name)

    def change(self, name: str) -> None:
        """Note that an entry was changed, and is to be written."""
        self._dirty.setdefault(shard_of(name), {})[name] = None

    def pause(self) -> float:
        """Seconds between two writes of a document: it is written whole, and the store has more to do. With
        many tasks what is shown lags by as much; what is planned does not depend on it."""
        return min(LONGEST, max(SHORTEST, len(self._dirty) / WRITES, sum(self._sizes) / BYTES))

    def dirty(self) -> list[int]:
        """The shards with something to write, the longest waiting first."""
        return list(self._dirty)

    def changed(self, shard: int) -> list[str]:
        """The tasks of a shard that are to be written."""
        return list(self._dirty.get(shard, ()))

    def flush(self, shard: int) -> list[str]:
        """Write what changed in a shard; returns the tasks that somebody else had changed meanwhile."""
        taken: list[str] = []
        for _ in range(TRIES):
            mine = self._dirty.get(shard)
            if not mine:
                break
            try:
                self._write(shard, mine)
            except Conflict:
                taken += self._merge(shard, mine)
        return taken

    def _write(self, shard: int, mine: Iterable[str]) -> None:
        content = self._shards[shard]
        for name in mine:
            if name in content:
                content[name].serial = self._base.get(name, 0) + 1
        value = _encoder.encode(content)
        self._sizes[shard] = len(value)
        written = self._store.record(self.document(shard), value, self._versions[shard])
        self._versions[shard] = written.version
        for name in mine:
            if name in content:
                self._base[name] = content[name].serial
        del self._dirty[shard]

    def _merge(self, shard: int, mine: dict[str, None]) -> list[str]:
        """Take over what others wrote. Ours stays where they did not touch it."""
        ours, found = self._shards[shard], self._read(shard)
        taken = [name for name in mine if name in found and found[name].serial != self._base.get(name, 0)]
        self._base.update({name: entry.serial for name, entry in found.items()})
        for name in taken:
            del mine[name]
        for name in mine:
            if name in ours:
                found[name] = ours[name]
            else:
                found.pop(name, None)
        self._shards[shard] = found
        return taken

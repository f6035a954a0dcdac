"""One of a crowd whose jobs share slots: a process that claims, settles and enqueues for some seconds.

`python -m tests.proof_stores.keyed_hand URL NAME KEYS SECONDS`. Each exchange settles all that the one
before it claimed and claims anew, as a node's does. Prints what it saw as one JSON document: a `Ledger`.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence

import msgspec

from millpond.errors import StoreBusy
from millpond.ids import new_id
from millpond.job import Job, NewJob, Returned, Settlement, Slot
from millpond.rules.jobs.lifecycle import settle
from millpond.store.open import open_store
from millpond.store.protocol import Claim, Exchanged

QUEUE = "default"
BATCH = 20
OVERTIME = 30.0  # seconds that the last settlements may take before a hand gives up
REST = 0.005  # seconds before the next claim when there was nothing


class Span(msgspec.Struct, array_like=True):
    """A time in which a job held its slot for certain: from the answer of the claim until just before the
    settlement was sent. Seconds of the monotonic clock, which all processes of a machine share."""

    slot: str
    begin: float
    end: float


class Ledger(msgspec.Struct):
    """What one hand saw."""

    spans: list[Span] = []
    exchanges: list[float] = []  # seconds of each, also of those that failed
    enqueues: list[float] = []
    busy: list[str] = []  # the words of every StoreBusy
    stale: list[str] = []
    created: int = 0


def capacity(key: int) -> int:
    """How many jobs of a key may run at once: of most one, of some two or three."""
    return max(1, key % 8 - 4)


def keyed_job(key: int) -> NewJob:
    return NewJob(
        id=new_id(), task="t", payload=b"{}", slots=(Slot(f"k{key}", capacity(key)),), queue=QUEUE, fresh=True
    )


class KeyedHand:
    """A node at store level, without workers."""

    def __init__(self, url: str, name: str, keys: int) -> None:
        self.store, self.name, self.keys = open_store(url), name, keys
        self.ledger = Ledger()
        self.sequence = 0
        self.until = 0.0
        self._choice = random.Random(name)
        self._since: dict[str, float] = {}

    def work(self, seconds: float) -> None:
        """Claim and settle until time is up, then settle what is left."""
        self.store.renew(self.name, "host", b"{}", 3600.0)
        self.until = time.monotonic() + seconds
        held: dict[str, Job] = {}
        while held or time.monotonic() < self.until:
            claims = [Claim(QUEUE, BATCH)] if time.monotonic() < self.until else []
            answer = self.exchange(list(held.values()), claims)
            self.ledger.stale += answer.stale
            ended = len(held) - len(answer.deferred)
            deferred = {job: held[job] for job in answer.deferred}
            held = deferred | {job.id: job for job in answer.claimed}
            if claims and ended:
                self.refill(ended)
            if not held:
                time.sleep(REST)

    def exchange(self, jobs: Sequence[Job], claims: Sequence[Claim]) -> Exchanged:
        """Settle and claim, again if nothing happened; notes how long each of them took."""
        self.sequence += 1
        self._let_go(jobs)
        settlements = [_done(job) for job in jobs]
        while True:
            begin = time.monotonic()
            try:
                answer = self.store.exchange(self.name, self.sequence, settlements=settlements, claims=claims)
            except StoreBusy as error:
                self.ledger.busy.append(str(error))
                if begin > self.until + OVERTIME:
                    raise
            else:
                self._since |= dict.fromkeys([job.id for job in answer.claimed], time.monotonic())
                return answer
            finally:
                self.ledger.exchanges.append(time.monotonic() - begin)

    def _let_go(self, jobs: Sequence[Job]) -> None:
        now = time.monotonic()
        for job in jobs:
            since = self._since.pop(job.id, now)  # a deferred one is sent again: its span has been noted
            self.ledger.spans += [Span(slot.name, since, now) for slot in job.slots]

    def refill(self, number: int) -> None:
        """As many new jobs as have ended, so that the line stays as long as it was."""
        begin = time.monotonic()
        try:
            made = self.store.enqueue([keyed_job(self._choice.randrange(self.keys)) for _ in range(number)])
        except StoreBusy as error:
            self.ledger.busy.append(str(error))
        else:
            self.ledger.created += len(made)
        self.ledger.enqueues.append(time.monotonic() - begin)


def _done(job: Job) -> Settlement:
    return Settlement(job.id, job.token, settle(job, Returned(b"1"), time.time_ns() // 1000))


def main() -> None:
    url, name, keys, seconds = sys.argv[1:]
    hand = KeyedHand(url, name, int(keys))
    hand.work(float(seconds))
    hand.store.close()
    sys.stdout.buffer.write(msgspec.json.encode(hand.ledger))


if __name__ == "__main__":
    main()

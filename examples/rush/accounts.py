"""Holds the ledger against what the store says and against what really happened outside of it.

A job is accounted for if it completed and its effect is there (a whole file, a line in a server's book), or
if it is dead with a reason. Every other one counts as lost.
"""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from examples.rush.plan import Piece
from examples.rush.shop import COUNTRIES, Shop, orders
from millpond.job import MICROSECONDS, Attempt, Job, JobState
from millpond.store.protocol import PAGE, Store

CUT_SHORT = ("crashed", "lost")  # how attempts end whose worker or node was killed
FAILED = ("raised", "timed out")


class Account(NamedTuple):
    """One queue, in the end."""

    enqueued: int
    completed: int
    retried: int  # completed after an attempt that failed
    recovered: int  # completed after an attempt whose worker or node died
    dead: int
    lost: int
    repeated: int  # effects that were seen more than once
    wait: float | None  # the 95th percentile of the waits for the first attempt, in seconds


class Death(NamedTuple):
    """Dead jobs of one cause."""

    task: str
    reason: str
    message: str
    jobs: int
    example: str


class Accounts(NamedTuple):
    """Everything, in the end."""

    queues: dict[str, Account]
    deaths: list[Death]
    lost: list[str]  # a sentence on each

    @property
    def total(self) -> Account:
        """All queues together."""
        rows = list(self.queues.values())
        waits = [row.wait for row in rows if row.wait is not None]
        counts = [sum(column) for column in zip(*(row[:-1] for row in rows), strict=True)]
        return Account._make([*counts, max(waits, default=None)])


def settle_accounts(shop: Shop, store: Store, queues: Sequence[str]) -> Accounts:
    """Look at every job of the ledger, in the store and outside of it."""
    found = list(jobs_of(store, list(shop.ledger)))
    seen = Evidence(shop)
    lost: list[str] = []
    rows: dict[str, Account] = {}
    for queue in queues:
        mine = [
            (piece, job)
            for piece, job in zip(shop.ledger.values(), found, strict=True)
            if piece.queue == queue
        ]
        troubles = [
            f"{piece.queue} {piece.number}: {why}"
            for piece, job in mine
            if (why := trouble(piece, job, seen))
        ]
        lost += troubles
        rows[queue] = account([job for _, job in mine], len(troubles), seen.repeated(queue))
    return Accounts(rows, deaths([job for job in found if job is not None]), lost)


def trouble(piece: Piece, job: Job | None, seen: Evidence) -> str | None:
    """Why a job must count as lost; None if it is accounted for."""
    if job is None:
        return "the store does not know it any more"
    if job.state is JobState.COMPLETED:
        return (
            None
            if seen.effect_of(piece)
            else f"job {job.id} is said to be completed, but its effect is not there"
        )
    if job.state is JobState.DEAD and job.reason:
        return None
    return f"job {job.id} is {job.state}"


def account(jobs: Sequence[Job | None], lost: int, repeated: int) -> Account:
    """The numbers of one queue."""
    known = [job for job in jobs if job is not None]
    completed = [job for job in known if job.state is JobState.COMPLETED]
    waits = sorted(wait for job in known if (wait := first_wait(job)) is not None)
    return Account(
        enqueued=len(jobs),
        completed=len(completed),
        retried=sum(ended_like(job, FAILED) for job in completed),
        recovered=sum(ended_like(job, CUT_SHORT) for job in completed),
        dead=sum(job.state is JobState.DEAD for job in known),
        lost=lost,
        repeated=repeated,
        wait=waits[int(0.95 * (len(waits) - 1))] if waits else None,
    )


def ended_like(job: Job, ends: Sequence[str]) -> bool:
    """Did an attempt of it end like that?"""
    return any(attempt.ended in ends for attempt in job.attempts)


def first_wait(job: Job) -> float | None:
    """Seconds from enqueued to begun."""
    began = [attempt.started_at for attempt in job.attempts if attempt.started_at is not None]
    return (min(began) - job.created_at) / MICROSECONDS if began else None


def deaths(jobs: Sequence[Job]) -> list[Death]:
    """The dead jobs by their cause."""
    dead = [job for job in jobs if job.state is JobState.DEAD]
    causes = {job.id: (job.task.rpartition(".")[2], job.reason or "", cause(job)) for job in dead}
    example = {causes[job.id]: job.id for job in dead}
    return [Death(*key, count, example[key]) for key, count in sorted(Counter(causes.values()).items())]


def cause(job: Job) -> str:
    """What its last attempt says, without what differs from one to the next."""
    last: Attempt | None = job.attempts[-1] if job.attempts else None
    if last is None:
        return "-"
    if last.ended == "crashed":
        message = last.message or ""
        signals = [word.strip(",.") for word in message.split() if word.startswith("SIG")]
        return f"its worker died each time{': ' + signals[0] if signals else ''}"
    words = [word for word in (last.message or "").split() if not word.startswith("/")]
    return f"{(last.error or '').rpartition('.')[2]}: {' '.join(words)}"


def jobs_of(store: Store, ids: Sequence[str]) -> Iterator[Job | None]:
    """The whole jobs, a page at a time."""
    for start in range(0, len(ids), PAGE):
        yield from store.get(ids[start : start + PAGE])


# --- outside the store -----------------------------------------------------------------------------------
class Evidence:
    """What the servers have written down and which files lie in the folders."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._received = {queue: book(shop.folder / f"{queue}.log") for queue in ("mail", "webhooks")}
        sold = Counter(country for _, _, country, _ in orders())
        self._rows = [1 + sold[country] for country in COUNTRIES]

    def effect_of(self, piece: Piece) -> bool:
        """Has this work been done, and wholly?"""
        if piece.queue in self._received:
            return self._received[piece.queue][piece.number] > 0
        path = self._shop.file(piece)
        try:
            match piece.queue:
                case "images":
                    return is_picture(path)
                case "pdf":
                    content = path.read_bytes()
                    return content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF")
                case _:
                    with path.open(newline="") as file:
                        return sum(1 for _ in csv.reader(file)) == self._rows[piece.number % len(COUNTRIES)]
        except OSError:
            return False

    def repeated(self, queue: str) -> int:
        """Messages that came more than once: their worker was killed between the act and its record."""
        return sum(count > 1 for count in self._received.get(queue, Counter()).values())


def book(path: Path) -> Counter[int]:
    """How often each number was received."""
    if not path.exists():
        return Counter()
    with path.open() as file:
        return Counter(int(line) for line in itertools.filterfalse(str.isspace, file))


def is_picture(path: Path) -> bool:
    """Open it and read all of it."""
    with Image.open(path) as image:
        image.load()
        return image.width > 0

"""Which jobs: from the words of a request to a store's filter, and the rest of it job by job.

A store finds by state, queue, task and id. Time is a matter of ids, since they sort by it. What remains is
compared here, page by page, with a bound on how much is looked at: no question takes longer the more jobs
there are, it only gets a cursor instead of an end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from millpond.api.options import Limits
from millpond.api.problems import Problem
from millpond.disclosure import knowing
from millpond.errors import OptionError
from millpond.job import Job, JobState
from millpond.options import check_id, check_queue, check_text, instant
from millpond.store.protocol import Filter, Store

CHUNK = 50  # jobs read at once: each may carry two megabytes
_VARIABLE = re.compile(
    r"0x[0-9a-f]++|[0-9a-f]{8}-[0-9a-f-]{27}|\d++(?:\.\d++)?|'[^']{0,200}'|\"[^\"]{0,200}\"", re.IGNORECASE
)


class Wanted(NamedTuple):
    """What a request asks for; everything that is given must hold."""

    states: tuple[JobState, ...] = ()
    queue: str | None = None
    task: str | None = None
    ids: tuple[str, ...] = ()
    reason: str | None = None
    error: str | None = None
    cause: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    text: str | None = None

    @property
    def is_everything(self) -> bool:
        """Does it leave no job out but by state?"""
        return not any(value for name, value in self._asdict().items() if name != "states")

    @property
    def is_exact(self) -> bool:
        """Can the store alone tell which jobs are meant?"""
        return not (self.reason or self.error or self.cause or self.text)


class Found(NamedTuple):
    """Some jobs, how many were looked at, and where to go on."""

    jobs: list[Job]
    scanned: int
    cursor: str | None


def wanted(**said: object) -> Wanted:
    """The words of a request, checked."""
    given = {name: value for name, value in said.items() if value not in (None, "", (), [])}
    found = Wanted(**given)  # type: ignore[arg-type]
    return found._replace(
        states=tuple(JobState(state) for state in found.states),
        queue=None if found.queue is None else check_queue(found.queue),
        task=None if found.task is None else check_text(found.task, "task", 200),
        ids=tuple(dict.fromkeys(check_id(job) for job in found.ids)),
    )


def find(store: Store, asked: Wanted, limit: int, cursor: str | None, limits: Limits) -> Found:
    """Up to `limit` jobs, newest first."""
    jobs: list[Job] = []
    walk = Walk(store, asked, cursor)
    size = 0
    most = limit if asked.is_exact else limits.scan
    for job in walk.jobs(most):
        jobs.append(job)
        size += len(job.payload) + len(job.result or b"")
        if len(jobs) >= limit or size > limits.page_bytes:
            break
    return Found(jobs, walk.scanned, walk.cursor)


class Walk:
    """One pass over the jobs that were asked for; where it stopped is its `cursor`, None at the end."""

    def __init__(self, store: Store, asked: Wanted, cursor: str | None) -> None:
        self._store = store
        self._asked = asked
        self._filter = Filter(states=asked.states, queue=asked.queue, task=asked.task, ids=asked.ids)
        self._is_match = _matcher(asked)
        self._oldest = "" if asked.created_after is None else _first_id(asked.created_after, "created_after")
        self.cursor = _start(asked, cursor)
        self.scanned = 0

    def jobs(self, most: int) -> Iterator[Job]:
        """Those that match, until `most` were looked at."""
        while self.scanned < most:
            size = min(CHUNK, most - self.scanned)
            page = self._store.search(self._filter, size, self.cursor)
            for job in page.jobs:
                if job.id < self._oldest:
                    self.cursor = None
                    return
                self.scanned += 1
                is_last = page.cursor is None and job is page.jobs[-1]
                self.cursor = None if is_last else job.id
                if self._is_match(job):
                    yield job
            self.cursor = page.cursor
            if page.cursor is None or len(page.jobs) < size:  # the store has looked at many and found few
                return


def _start(asked: Wanted, cursor: str | None) -> str | None:
    """Where to begin: after the last page, or before an instant, whichever comes later in the list."""
    starts = []
    if cursor is not None:
        try:
            starts.append(check_id(cursor))
        except OptionError:
            raise Problem("invalid", "cursor must be what the answer before gave as its cursor") from None
    if asked.created_before is not None:
        starts.append(_first_id(asked.created_before, "created_before"))
    return min(starts, default=None)


def _first_id(moment: datetime, name: str) -> str:
    """The smallest id that a job made at this instant can have: ids begin with their millisecond."""
    text = f"{instant(moment, name) // 1000:012x}"
    return f"{text[:8]}-{text[8:]}-0000-0000-000000000000"


def _matcher(asked: Wanted) -> Callable[[Job], bool]:
    """What the store cannot tell."""
    text = None if asked.text is None else asked.text.lower()

    def is_match(job: Job) -> bool:
        last = job.attempts[-1] if job.attempts else None
        if asked.reason is not None and job.reason != asked.reason:
            return False
        if asked.error is not None and (last is None or last.error != asked.error):
            return False
        if asked.cause is not None and cause_of(job) != asked.cause:
            return False
        return text is None or _mentions(job, text)

    return is_match


def _mentions(job: Job, text: str) -> bool:
    """Looks only where people could read it too: what is hidden cannot be guessed by searching for it.

    Secrets are looked for only where the text is at all: one answer searches some thousand jobs.
    """
    last = job.attempts[-1] if job.attempts else None
    plain = (job.id, job.task, job.reason or "", "" if last is None else last.error or "")
    if any(text in part.lower() for part in plain):
        return True
    may = knowing(job)
    said = "" if last is None else (last.message or "")[:4_000]
    payload = job.payload[:4_000].decode(errors="replace")
    return any(text in part.lower() and text in may.plain(part).lower() for part in (said, payload))


def general(job: Job) -> str:
    """The message a job ended with, without what differs from job to job: numbers, ids, quoted names."""
    last = job.attempts[-1] if job.attempts else None
    message = "" if last is None else (last.message or "")[:500]
    return _VARIABLE.sub("…", knowing(job).plain(message))[:200]


def cause_of(job: Job) -> str:
    """What a dead job died of, as a short name that jobs with the same fate share."""
    last = job.attempts[-1] if job.attempts else None
    error = "" if last is None else last.error or ""
    said = "\0".join((job.task, job.queue, job.reason or "", error, general(job)))
    return sha256(said.encode(errors="replace")).hexdigest()[:16]

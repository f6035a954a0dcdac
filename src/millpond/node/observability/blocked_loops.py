"""Notices event loops that do not come round: a job in an async worker that blocks all its neighbours.

Each is named once, with the place in the code where it is; nothing is stopped for it.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from millpond.pool.channel import shared_page as layout

if TYPE_CHECKING:
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.pool.process.worker_link import Link

logger = logging.getLogger("millpond")
TOO_LONG = 2.0  # seconds without a turn of the loop; it shows itself twice a second
OURS = ("/millpond/", "/asyncio/", "selectors.py", "/concurrent/futures/")


class LoopWatch:
    """Looks at the async workers of a node, once a second."""

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}  # pid -> when its loop last came round, as of asking for its stack

    def look(self, pool: QueuePool) -> None:
        """Ask blocked workers for their stack; one look later, say where they are."""
        if pool.settings.concurrency == 1:
            return
        for engine in pool.engines():
            if engine.dispatcher is None:
                continue
            with engine.exclusive():
                found = [self._seen(link) for link in engine.links.values() if not link.closed]
            for text in found:
                if text:
                    logger.warning("Pool %s: %s", pool.settings.name, text)

    def _seen(self, link: Link) -> str:
        came_round = link.page.words[layout.LOOP_AT]
        quiet = (time.monotonic_ns() - came_round) / 1e9
        if not came_round or not link.inflight or quiet < TOO_LONG:
            self._asked.pop(link.pid, None)
            return ""
        asked = self._asked.get(link.pid)
        if asked is None:
            self._asked[link.pid] = came_round
            link.ask_for_stack()
            return ""
        if asked < 0:
            return ""  # said already
        self._asked[link.pid] = -1
        jobs = ", ".join(link.inflight[number].name for number in list(link.running())[:3])
        place = _place(link.page.stack())
        return (
            f"the event loop of worker {link.pid} has been blocked for {quiet:.1f} s{place}; "
            f"nothing else runs there meanwhile. In it: {jobs}. Await what takes time, or use kind='thread'"
        )


def _place(stack: str) -> str:
    """The innermost line of the last dump that is not ours or the loop's."""
    dump = stack.rpartition("Current thread")[2] or stack
    for line in dump.splitlines():
        if line.strip().startswith("File") and not any(part in line for part in OURS):
            return f" at {line.strip()}"
    return ""

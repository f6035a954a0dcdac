"""The threads behind the screen: one looks at the store again and again, one for each thing that is done.

The screen never waits for a store. A look that fails or hangs shows as trouble with the moment it began, and
the last view stays; the next look follows. All threads are daemons: a store that never answers keeps nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NamedTuple

from millpond.errors import MillpondError
from millpond.shown_text import shown
from millpond.tui.snapshot import Looking, View

SLOW = 3.0  # seconds after which a look that has not come back is told
AGAIN = 1.0  # seconds until the next look after one that failed
MOST_AT_ONCE = 4  # things being done


class Trouble(NamedTuple):
    """Why there is nothing new to be seen."""

    since: float  # seconds since 1970, by this machine's clock
    cause: str


class Sight(NamedTuple):
    """What the screen knows: the last view, if there was one, and what is wrong."""

    view: View | None
    trouble: Trouble | None


class Said(NamedTuple):
    """What came of something that was done."""

    text: str
    is_well: bool


class Watching:
    """Looks from `start()` to `stop()`."""

    def __init__(self, looking: Looking, *, slow: float = SLOW) -> None:
        self._slow = slow
        self._looking = looking
        self._view: View | None = None
        self._trouble: Trouble | None = None
        self._began: float | None = None  # the look that is under way
        self._is_stale = False  # something was changed since the last look began
        self._wake = threading.Event()
        self._is_over = False
        self._said: SimpleQueue[Said] = SimpleQueue()
        self._doing = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="millpond-top", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> bool:
        """Look no more; False if a thread is still waiting for the store."""
        self._is_over = True
        self._wake.set()
        self._thread.join(timeout)
        return not self._thread.is_alive() and not self._doing

    # --- for the screen ---------------------------------------------------------------------------------
    def sight(self) -> Sight:
        """What is known by now. Never waits."""
        began, trouble = self._began, self._trouble
        if trouble is None and began is not None and time.monotonic() - began > self._slow:
            since = time.time() - (time.monotonic() - began)
            trouble = Trouble(since, "it does not answer")
        return Sight(self._view, trouble)

    def do(self, deed: Callable[[], str]) -> bool:
        """Do something in a thread of its own; False if too much is being done already."""
        with self._lock:
            if self._doing >= MOST_AT_ONCE:
                return False
            self._doing += 1
        threading.Thread(target=self._do, args=(deed,), name="millpond-top-deed", daemon=True).start()
        return True

    def news(self) -> list[Said]:
        """What came of things since the last time."""
        found = []
        while True:
            try:
                found.append(self._said.get_nowait())
            except Empty:
                return found

    # --- the threads --------------------------------------------------------------------------------------
    def _watch(self) -> None:
        while not self._is_over:
            self._began = time.monotonic()
            if self._is_stale:
                self._is_stale = False
                self._looking.forget()
            try:
                self._view = self._looking.look()
                self._note(self._view.overview["store"]["trouble"])
            except Exception as error:  # whatever it is, the next look follows
                self._note(_words(error))
            self._began = None
            self._wake.wait(self._pause())
            self._wake.clear()

    def _pause(self) -> float:
        """As long as the gathering wants; a store that failed is asked again soon, however long it took."""
        if self._trouble is None:
            return self._looking.gathering.every
        self._is_stale = True
        return AGAIN

    def _note(self, cause: str | None) -> None:
        if cause is None:
            self._trouble = None
        else:
            since = time.time() if self._trouble is None else self._trouble.since
            self._trouble = Trouble(since, cause)

    def _do(self, deed: Callable[[], str]) -> None:
        try:
            said = Said(deed(), is_well=True)
        except Exception as error:  # told on the screen; nothing else depends on it
            said = Said(_words(error), is_well=False)
        with self._lock:
            self._doing -= 1
        self._said.put(said)
        self._is_stale = True
        self._wake.set()


def _words(error: Exception) -> str:
    text = str(error) if isinstance(error, MillpondError) else f"{type(error).__name__}: {error}"
    return shown(text)

"""Says a round's news to the store and brings its answer; meanwhile the loop may go on with its own work.

Where a server does the work this process would only wait. So there the caller's `meanwhile` is called again
and again until the answer is here: in the same thread where the store can send first and listen later, and
beside a second thread where its driver cannot. What is said, and whether twice, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from millpond.store.protocol import LOOK, Exchanged, Said

if TYPE_CHECKING:
    from millpond.store.protocol import Store

Meanwhile = Callable[[], None]


class Speaker:
    """Talks to one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sends_first = getattr(store, "exchange_meanwhile", None)
        self._elsewhere = getattr(store, "works_elsewhere", False)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="millpond-exchange")

    @property
    def is_free(self) -> bool:
        """Can anything be done while the store works? Where it works in this process, two threads would
        only fight for the interpreter."""
        return self._elsewhere or self._sends_first is not None

    def say(self, node: str, sequence: int, said: Said) -> Exchanged:
        """One exchange; returns when it is answered."""
        return self._store.exchange(
            node,
            sequence,
            settlements=said.settlements,
            started=said.started,
            progress=said.progress,
            claims=said.claims,
        )

    def say_meanwhile(self, node: str, sequence: int, said: Said, meanwhile: Meanwhile) -> Exchanged:
        """The same, with something to do until then; it may never be called if the answer is quick."""
        if self._sends_first is not None:
            answer: Exchanged = self._sends_first(meanwhile, node, sequence, said)
            return answer
        speaking = self._thread.submit(self.say, node, sequence, said)
        try:
            while not wait([speaking], LOOK).done:
                meanwhile()
        finally:
            wait([speaking])  # two exchanges at once would be refused
        return speaking.result()

    def close(self) -> None:
        """Nothing more is said."""
        self._thread.shutdown(wait=False)

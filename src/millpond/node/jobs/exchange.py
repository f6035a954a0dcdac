"""Says a round's news to the store and brings its answer; meanwhile the loop may go on with its own work.

Where a server does the work this process would only wait. So there the caller's `meanwhile` is called again
and again until the answer is here: in the same thread where the store can send first and listen later, and
beside a second thread where its driver cannot. What is said, and whether twice, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Lock, Thread
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
        self._beside = _Beside()

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
        speaking = self._beside.begin(lambda: self.say(node, sequence, said))
        if speaking is None:
            return self.say(node, sequence, said)
        try:
            while not wait([speaking], LOOK).done:
                meanwhile()
        finally:
            wait([speaking])  # two exchanges at once would be refused
        return speaking.result()

    def close(self) -> None:
        """Nothing more is said."""
        self._beside.close()


class _Beside:
    """A second thread, started when it is first needed. A daemon, unlike those of an executor: a program that
    ends does not wait for a server that says nothing."""

    def __init__(self) -> None:
        self._orders: SimpleQueue[tuple[Callable[[], Exchanged], Future[Exchanged]] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._is_closed = False
        self._lock = Lock()  # an order put in after the last one would never be answered

    def begin(self, step: Callable[[], Exchanged]) -> Future[Exchanged] | None:
        """Have it done over there; what comes of it is in the future. None where no thread can be had."""
        answer: Future[Exchanged] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("nothing more is said: the node has stopped")
            if not self._has_thread():
                return None
            self._orders.put((step, answer))
        return answer

    def _has_thread(self) -> bool:
        if self._thread is None:
            thread = Thread(target=self._obey, name="millpond-exchange", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the machine has no more: an order given now would never be answered
                return False
            self._thread = thread
        return True

    def _obey(self) -> None:
        while (order := self._orders.get()) is not None:
            step, answer = order
            try:
                answer.set_result(step())
            except BaseException as error:  # whoever waits must hear of it
                answer.set_exception(error)
            del order, step, answer  # nothing of an exchange lies about until the next one

    def close(self) -> None:
        """Let the thread end when it has nothing to do."""
        with self._lock:
            self._is_closed = True
            self._orders.put(None)

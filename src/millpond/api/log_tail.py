"""The end of a store's log, kept here and read on from where it was: each line is fetched once."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from millpond.api.job_documents import moment
from millpond.disclosure import finite
from millpond.store.protocol import Entry, Store

logger = logging.getLogger("millpond.api")
AT_ONCE = 1_000
Line = dict[str, Any]


class Tail:
    """The last lines of one log. May be read from any thread."""

    def __init__(
        self, store: Store, name: str, keep: int = 1_000, make: Callable[[Line], Line] = dict
    ) -> None:
        self._store = store
        self._make = make
        self._name = name
        self._lines: deque[Line] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self.last = 0

    def read(self) -> None:
        """Fetch what was appended since."""
        with self._lock:
            while True:
                found = self._store.log(self._name, after=self.last, limit=AT_ONCE)
                for entry in found:
                    self._lines.append(self._made(entry))
                    self.last = entry.number
                if len(found) < AT_ONCE:
                    return

    def _made(self, entry: Entry) -> Line:
        """What whoever reads this can show of a line, whatever stands in it."""
        line = _line(entry)
        try:
            return self._make(line)
        except Exception as error:
            logger.debug("A line of the log %s cannot be read: %s", self._name, error)
            return self._make(
                {"number": line["number"], "at": line["at"], "text": "a line that cannot be read"}
            )

    def lines(self, after: int = 0, until: int | None = None) -> list[Line]:
        """Those after a number, the oldest first."""
        with self._lock:
            return [
                line
                for line in self._lines
                if line["number"] > after and (until is None or line["number"] <= until)
            ]


def _line(entry: Entry) -> Line:
    """A line as a document; what is not JSON is shown as text."""
    try:
        data = json.loads(entry.data, parse_constant=str, parse_float=finite)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        data = {"text": entry.data[:2_000].decode(errors="backslashreplace")}
    return {**data, "number": entry.number, "at": moment(entry.at)}

"""A connection that does not wait for ever: every call is given up when the server says nothing for long.

The server's own limits end what runs too long there. They do not help against a connection that is open
and never answers again, as a forgotten proxy or a stopped server leaves it.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

from psycopg import Connection, OperationalError

from millpond.store.postgres.timeouts import ANSWER

T = TypeVar("T")


class NoAnswer(OperationalError):
    """Nothing came within the bound."""


class PatientConnection(Connection[Any]):
    """As psycopg's, but each call ends with an OperationalError when nothing comes within `patience`."""

    patience = ANSWER
    generation = 0  # of its hosts, when it was made
    place = ("", 0)  # host and port: once closed, the driver does not know them any more

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        """Run one of psycopg's steps, within the bound."""
        try:
            return super().wait(_within(gen, self.patience), *args, **kwargs)
        except NoAnswer:
            self.close()  # an answer may still come, and is not for the next call
            raise


def _within(gen: Generator[Any, Any, T], patience: float) -> Generator[Any, Any, T]:
    """Drive a generator of psycopg's until it is done or has heard nothing for too long."""
    until = time.monotonic() + patience
    try:
        wish = next(gen)
        while True:
            ready = yield wish
            if ready:
                until = time.monotonic() + patience
            elif time.monotonic() > until:
                gen.close()
                raise NoAnswer(f"the server has not answered for {patience:g} s")
            wish = gen.send(ready)
    except StopIteration as end:
        found: T = end.value
        return found

"""Make a store stumble before the n-th thing it says to its engine, or after the n-th thing it has done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Stumbled(Exception):
    """The n-th statement was not to be."""


class Wire:
    """From now on `stumble` is called before statement `number`; if late, after commit `number`."""

    def __init__(self, store: Any, number: int, stumble: Callable[[], Any], *, late: bool) -> None:
        if hasattr(store, "_server"):  # every script is a step of its own
            self.place, self.name = store._server, "run"
        else:
            self.place, self.name = store, "write" if late else "_answer"
        self.speak = getattr(self.place, self.name)
        self.number, self.stumble, self.said, self.late = number, stumble, 0, late
        setattr(self.place, self.name, self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.said += 1
        if self.said == self.number and not self.late:
            self.stumble()
        answer = self.speak(*arguments, **options)
        if self.said == self.number and self.late:
            self.stumble()
        return answer

    def remove(self) -> None:
        """It lies on this very store; its class is whole."""
        delattr(self.place, self.name)


def fail() -> None:
    """The mild way to stumble: an error, and the transaction is taken back."""
    raise Stumbled

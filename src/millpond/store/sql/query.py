"""The vocabulary between a verb and its driver: named statements, and the clock of the leases."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


class Query(NamedTuple):
    """Run a statement once. A list among the parameters stands for a set of values."""

    name: str
    parameters: Sequence[Any] = ()


class Many(NamedTuple):
    """Run a statement for every row of parameters; the answers of all come back together. What is `shared`
    by the rows is said once and stands before them."""

    name: str
    rows: Sequence[Row]
    shared: Row = ()


class LeaseClock(NamedTuple):
    """Ask for the time that leases are measured by: [(microseconds, epoch)]. Another epoch is another
    boot of the machine, whose times mean nothing here."""


class Hint(NamedTuple):
    """There may be work in these queues once this transaction is committed: nodes that wait are woken then.
    Never inside the transaction, because a commit that notifies keeps every other commit waiting."""

    queues: frozenset[str]


Request = Query | Many | LeaseClock | Hint
Steps = Generator[Request, list[Row], T]

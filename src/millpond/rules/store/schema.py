"""Which code may work on which schema of a store, and what to do where it may not.

A store has two numbers: the version of its schema, and the oldest version of the code that may use it. A step
adds first (expand): code of the version before goes on beside the new code. Only a later step takes away what
nothing needs any more (contract), and raises the second number. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec


class Schema(NamedTuple):
    """What a store says about its schema."""

    version: int
    compatible_from: int  # the oldest version of the code that may work on it


class Change(NamedTuple):
    """One statement or script of a step."""

    text: str
    note: str = ""  # what it is for
    locks: str = ""  # what waits for it
    is_alone: bool = False  # not inside a transaction


class Step(NamedTuple):
    """The way from one version to the next, or, if `after` is the same, what a contraction takes away."""

    before: int
    after: int
    compatible_from: int  # what the store says afterwards
    changes: tuple[Change, ...]
    stops: bool = False  # nodes and programs that enqueue must be stopped for it

    @property
    def name(self) -> str:
        """In words."""
        if self.after == self.before:
            return f"contract version {self.before}"
        return f"version {self.before} to {self.after}"


class _Facts(msgspec.Struct, frozen=True):
    """The part of a node's record that matters here."""

    schema: int = 0  # the version that its code knows; 0: it does not say, so it is old


def refusal(found: Schema | None, known: int, place: str) -> str | None:
    """Why code that knows this version must not work on such a store, and what to do; None if it may."""
    if found is None:
        return f"{place} has no tables, version {known} is needed: run `millpond migrate`"
    if found.version < known:
        return (
            f"{place} has schema version {found.version}, version {known} is needed: "
            "run `millpond migrate` first"
        )
    if found.compatible_from > known:
        return (
            f"{place} has schema version {found.version} and takes code from version {found.compatible_from} "
            f"on, this Millpond knows {known}: use the newer Millpond that made it"
        )
    return None


def needing_older(nodes: Iterable[tuple[str, bytes]], compatible_from: int) -> list[str]:
    """Which of these nodes, by id and record, run code that is older than that."""
    return sorted(node for node, info in nodes if _known_to(info) < compatible_from)


def _known_to(info: bytes) -> int:
    try:
        return msgspec.json.decode(info, type=_Facts).schema
    except (msgspec.DecodeError, RecursionError):
        return 0

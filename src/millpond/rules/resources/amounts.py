"""Quantities of memory, cores and tokens in words, for messages about them."""

from __future__ import annotations

from millpond.rules.resources.fit import Need
from millpond.units import shown_size


def part(wants: Need, what: str) -> float:
    """How much of one thing is needed."""
    if what == "memory":
        return wants.memory
    return wants.cpu if what == "cpu" else wants.tokens.get(what, 0.0)


def shown(what: str, number: float) -> str:
    """A quantity of it, for people."""
    return shown_size(int(number)) if what == "memory" else f"{number:g}"


def amount(what: str, number: float) -> str:
    """The same with what it is."""
    if what == "memory":
        return f"{shown_size(int(number))} of memory"
    return f"{number:g} cores" if what == "cpu" else f"{number:g} {what!r}"

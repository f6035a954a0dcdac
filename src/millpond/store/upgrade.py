"""How a store's schema is brought from version to version: the same for every store, whose driver does it.

A step that needs no stop may be killed anywhere and is repeated from its beginning: each of its changes may
be made twice. The store says the new version with the last of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext

from millpond.errors import StoreRefused
from millpond.rules.store.schema import Schema, Step, needing_older
from millpond.store.versions import Versions


class Upgrade(ABC):
    """The way of one store to the version that this code knows."""

    things = "the tables"

    def __init__(self, url: str, known: int) -> None:
        self.url, self.known = url, known

    # --- what the driver does -------------------------------------------------------------------------
    @abstractmethod
    def found(self) -> Schema | None:
        """What the store says; None if there is nothing yet."""

    @abstractmethod
    def create(self) -> bool:
        """Make everything in the version that this code knows; False if another process has."""

    @abstractmethod
    def apply(self, step: Step) -> bool:
        """Go one step, or what is left of it; False if another process has."""

    @abstractmethod
    def live(self) -> list[tuple[str, bytes]]:
        """The nodes that have a lease, with their records."""

    @abstractmethod
    def steps(self) -> Mapping[int, Step]:
        """By the version that each begins with."""

    def contractions(self) -> Mapping[int, Step]:
        """What may be taken away once no code needs it any more, by the version that made it so."""
        return {}

    def alone(self) -> AbstractContextManager[None]:
        """Keeps other migrations out, where the steps do not do so themselves."""
        return nullcontext()

    # --- the same for all -------------------------------------------------------------------------------
    def migrate(self) -> list[str]:
        """Make or upgrade everything; returns what was done. Refuses what a newer version has made."""
        with self.alone():
            if self.found() is None and self.create():
                return [f"created {self.things} of version {self.known} in {self.url}"]
            return list(self._upgraded())

    def _upgraded(self) -> Iterator[str]:
        # Asked again before each step: where `alone` keeps nothing out, another process may have gone it
        steps = self.steps()
        while (found := self.found()) is not None and found.version < self.known and found.version in steps:
            step = steps[found.version]
            self._refuse_live(step, found)
            if self.apply(step):
                yield f"brought {self.url} from {step.name}"
        Versions(self.known, self.url).check(found)

    def pending(self, since: int | None = None) -> list[Step]:
        """The steps that `migrate` would go, from what is there or from a version."""
        found = self.found()
        version = since if since is not None else None if found is None else found.version
        if version is None:
            return []
        return [step for before, step in sorted(self.steps().items()) if version <= before < self.known]

    def contract(self) -> list[str]:
        """Take away what only older code needs; returns what was done."""
        with self.alone():
            found = self.found()
            Versions(self.known, self.url).check(found)
            assert found is not None
            step = self.contractions().get(found.version)
            if step is None or found.compatible_from >= step.compatible_from:
                return []
            self._refuse_live(step, found)
            self.apply(step)
            return [f"{self.url} takes code from version {step.compatible_from} on"]

    # A node of older code would fail on every call from the moment of the step on, with its jobs half done.
    # Asked before the step; a node that starts in between is refused by the version that the store says
    # (test_a_step_that_needs_a_stop_is_refused_while_an_older_node_lives).
    def _refuse_live(self, step: Step, found: Schema) -> None:
        if step.compatible_from <= found.compatible_from:
            return
        names = needing_older(self.live(), step.compatible_from)
        if names:
            raise StoreRefused(
                f"{self.url} was not changed ({step.name}): these nodes run code older than version "
                f"{step.compatible_from}, stop them first: {', '.join(names[:10])}"
                + (f" and {len(names) - 10} more" if len(names) > 10 else "")
            )

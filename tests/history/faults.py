"""What a fault explains: which executions it may have broken off, forgotten, or left running unseen.

Pure. Everything that is not explained here by something that was done to the very worker or node is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from tests.history.entries import Breaking, Kind, Moment

FOR_EVER: Moment = 2**63
SECOND: Moment = 1_000_000_000
SLACK: Moment = SECOND // 20  # in which a signal that was sent takes hold
HELPLESS = frozenset({Kind.KILLED, Kind.STOPPED, Kind.FROZEN, Kind.CUT})  # a node that others may rescue
LEAVING = HELPLESS | {Kind.TERMINATED}


class Injected(msgspec.Struct, frozen=True):
    """Something that was done, at some moment between two."""

    kind: Kind
    since: Moment
    until: Moment
    pid: int | None = None
    node: str | None = None


class Run(Protocol):
    """What has to be known of an execution."""

    @property
    def node(self) -> str: ...
    @property
    def worker(self) -> int: ...
    @property
    def began_at(self) -> Moment: ...


class Faults:
    """All that was done, by whom it was done to."""

    def __init__(
        self,
        injected: Iterable[Injected],
        breaking: Iterable[Breaking] = (),
        labels: Mapping[str, str] | None = None,
        aftermath: float = 30.0,
    ) -> None:
        self.labels = labels or {}  # of incarnations
        self.aftermath = round(aftermath * SECOND)
        self.workers: dict[int, list[Injected]] = {}
        self.nodes: dict[str, list[Injected]] = {}
        self.store: list[Injected] = []
        for fault in injected:
            if fault.node is not None:
                self.nodes.setdefault(fault.node, []).append(fault)
            elif fault.pid is not None:
                self.workers.setdefault(fault.pid, []).append(fault)
            else:
                self.store.append(fault)
        for line in breaking:  # a death in a worker is everybody's who runs there
            kind = Kind.STOPPED if line.hangs else Kind.KILLED
            fault = Injected(kind, line.at, line.at + self.aftermath, line.worker)
            self.workers.setdefault(line.worker, []).append(fault)

    def may_have_broken_off(self, run: Run, before: Moment, *, slots: bool = False) -> bool:
        """May it have ended without its function having left? Slots are given up while the store is away."""
        if slots and any(fault.since <= before and fault.until >= run.began_at for fault in self.store):
            return True
        return self._worker(run, before) or self._node(run, before, LEAVING)

    def may_have_forgotten(self, run: Run, before: Moment) -> bool:
        """May the outcome of its function have got lost on the way to the store?"""
        return self._worker(run, before) or self._node(run, before, HELPLESS)

    def may_have_left_running(self, run: Run, before: Moment) -> bool:
        """May others have taken it for dead while it was not?"""
        return self._node(run, before, HELPLESS)

    def may_have_overslept(self, run: Run, before: Moment) -> bool:
        """May it have been held up with all that could have stopped it? Only that excuses a full slot."""
        return self._node(run, before, frozenset({Kind.FROZEN}))

    def may_have_hit(self, worker: int | None, incarnation: str) -> bool:
        """May a job have been charged in this worker of this node without having been seen to begin?"""
        if worker is None:
            return bool(self.workers) or self.may_have_felled(incarnation)
        return worker in self.workers or self.may_have_felled(incarnation)

    def may_have_felled(self, incarnation: str) -> bool:
        """Was something done to the node that the store knows by this id? A node of no label is any node."""
        label = self.labels.get(incarnation, incarnation)
        if label in self.nodes:
            return True
        return incarnation not in self.labels and bool(self.nodes)

    def may_have_silenced(self, incarnation: str) -> bool:
        """May this node have been killed between an answer of the store and the line about it?"""
        label = self.labels.get(incarnation, incarnation)
        known = (self.nodes.get(label, ()),) if incarnation in self.labels else self.nodes.values()
        return any(fault.kind is Kind.KILLED for faults in known for fault in faults)

    def label_of(self, incarnation: str) -> str | None:
        return self.labels.get(incarnation)

    def killed(self, worker: int) -> Iterable[Injected]:
        """The deaths of a worker."""
        return (fault for fault in self.workers.get(worker, ()) if fault.kind is Kind.KILLED)

    def _worker(self, run: Run, before: Moment) -> bool:
        return any(
            fault.since <= before and fault.until + SLACK >= run.began_at
            for fault in self.workers.get(run.worker, ())
        )

    def _node(self, run: Run, before: Moment, kinds: frozenset[Kind]) -> bool:
        return any(
            fault.kind in kinds and fault.since <= before and fault.until + self.aftermath >= run.began_at
            for fault in self.nodes.get(run.node, ())
        )

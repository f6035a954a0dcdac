"""The raw results of a run: kept as JSON lines in the build folder, and asked for medians."""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from peers import PEERS, Peer

Record = dict[str, Any]


class Figures:
    """Everything that was measured in one run, by peer and scenario."""

    def __init__(self, setting: dict[str, str], records: Iterable[Record] = ()) -> None:
        self.setting = setting
        self.records = list(records)

    def values(self, peer: Peer, scenario: str, part: str) -> list[float]:
        """One figure of every round."""
        return [
            record[part]
            for record in self.records
            if record["peer"] == peer.key and record["scenario"] == scenario and record.get(part) is not None
        ]

    def median(self, peer: Peer, scenario: str, part: str) -> float | None:
        values = self.values(peer, scenario, part)
        return statistics.median(values) if values else None

    def mine(self, store: str, scenario: str, part: str) -> float | None:
        """Millpond's own."""
        return self.median(own(store), scenario, part)

    def keyed(self, store: str) -> dict[int, list[Record]]:
        """The rounds of the keyed scenario on a store that could be measured, by number of nodes."""
        found: dict[int, list[Record]] = {}
        for record in self.records:
            if record["peer"] == own(store).key and record["scenario"] == "keyed" and "rate" in record:
                found.setdefault(record["nodes"], []).append(record)
        return dict(sorted(found.items()))

    def peers(self, store: str) -> list[Peer]:
        """The peers on a store that this run has anything about."""
        seen = {record["peer"] for record in self.records}
        return [
            peer for peer in PEERS if peer.store == store and peer.name != "millpond" and peer.key in seen
        ]

    def stores(self) -> list[str]:
        """The stores of this run."""
        return list(dict.fromkeys(record["peer"].partition("/")[2] for record in self.records))

    def errors(self) -> list[str]:
        """What could not be measured, in words."""
        return [
            f"{record['peer']}, {record['scenario']}{_of_nodes(record)}: {record['error']}"
            for record in self.records
            if "error" in record
        ]


def _of_nodes(record: Record) -> str:
    return f" with {record['nodes']} nodes" if "nodes" in record else ""


def own(store: str) -> Peer:
    """Millpond on a store."""
    return next(peer for peer in PEERS if peer.name == "millpond" and peer.store == store)


def append(path: Path, record: Record) -> None:
    """Keep one result; the first line is the setting."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def load(path: Path) -> Figures:
    """A run that was kept."""
    setting, *records = [json.loads(line) for line in path.read_text().splitlines()]
    return Figures(setting, records)

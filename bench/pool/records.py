"""The records of all runs, kept as JSON lines, and the questions the tables ask of them."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from values import Values, median


@dataclass(frozen=True, slots=True)
class Record:
    scenario: str
    peer: str
    round: int
    version: str
    values: Values
    note: str = ""  # why there are no values at all


@dataclass(slots=True)
class Results:
    """All records of one invocation, and the machine and settings they were made with."""

    setting: dict[str, str]
    records: list[Record] = field(default_factory=list)

    def of(self, peer: str, scenario: str) -> list[Record]:
        return [each for each in self.records if (each.peer, each.scenario) == (peer, scenario)]

    def ran(self, scenario: str) -> bool:
        return any(each.scenario == scenario for each in self.records)

    def by_round(self, peer: str, scenario: str, name: str) -> dict[int, float]:
        """The value in each round; a round that has none is missing."""
        rounds: dict[int, list[float]] = {}
        for record in self.of(peer, scenario):
            value = record.values.get(name)
            if isinstance(value, int | float):
                rounds.setdefault(record.round, []).append(value)
        return {number: median(values) for number, values in rounds.items()}

    def series(self, peer: str, scenario: str, name: str) -> list[float]:
        return list(self.by_round(peer, scenario, name).values())

    def trouble(self, peer: str, scenario: str, name: str) -> str:
        """Why a run of this gave no number; empty when all did, or when nothing was asked."""
        for record in self.of(peer, scenario):
            if record.note:
                return record.note
            value = record.values.get(name)
            if isinstance(value, str):
                return value
        return ""

    def version(self, peer: str) -> str:
        return next((each.version for each in self.records if each.peer == peer), "")


def append(path: Path, entry: Record | dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"setting": entry} if isinstance(entry, dict) else asdict(entry)
    with path.open("a") as out:
        out.write(json.dumps(line) + "\n")


def load(path: Path) -> Results:
    results = Results({})
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if "setting" in entry:
            results.setting = entry["setting"]
        else:
            results.records.append(Record(**entry))
    return results

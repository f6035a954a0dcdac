"""The version of a namespace in Redis, and the steps from one to the next: scripts that go page by page.

The key "schema" has the version and the oldest version of the code that may use it, as "3:2".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millpond.rules.store.schema import Change, Schema, Step
from millpond.store.upgrade import Upgrade

SCHEMA = 3  # the version that this code knows
COMPATIBLE_FROM = 2  # the oldest code that may work on it
PAGES = "a page of records at a time: other commands run in between"
PAGE = 200  # records that one script looks at
STEPS = {
    1: Step(1, 2, 2, (Change("regroup", "Jobs into buckets of about a minute.", PAGES),), stops=True),
    2: Step(
        2,
        3,
        2,
        (Change("forget_old_slots", "Slots that no job names any more, which old versions left.", PAGES),),
    ),
}
CONTRACTIONS: dict[int, Step] = {}  # there is nothing yet that only older code needs

Run = Callable[[str, object], Any]  # a script, without a look at the version


def read_version(found: bytes | None) -> Schema | None:
    """What the key says; None if there is none. What cannot be read is older than everything."""
    if found is None:
        return None
    version, _, compatible_from = found.partition(b":")
    if not (version.isdigit() and (compatible_from or version).isdigit()):
        return Schema(-1, -1)
    return Schema(int(version), int(compatible_from or version))


def written(schema: Schema) -> str:
    """The same for the key."""
    return f"{schema.version}:{schema.compatible_from}"


class RedisUpgrade(Upgrade):
    """The way of one namespace to the version that this code knows."""

    things = "the namespace"

    def __init__(self, url: str, run: Run) -> None:
        super().__init__(url, SCHEMA)
        self._run = run

    def found(self) -> Schema | None:
        """What the namespace says."""
        return read_version(self._run("version", ()))

    def steps(self) -> Mapping[int, Step]:
        """Every step."""
        return STEPS

    def contractions(self) -> Mapping[int, Step]:
        """What may be taken away."""
        return CONTRACTIONS

    def live(self) -> list[tuple[str, bytes]]:
        """The nodes that have a lease."""
        return [(node.decode(), info) for node, info in self._run("live_nodes", ())]

    def create(self) -> bool:
        """Make the namespace."""
        _, created = self._run("open", (written(Schema(SCHEMA, COMPATIBLE_FROM)),))
        return bool(created)

    # Two migrations at once do the same pages, each of which may be done twice; the version is written only
    # where the old one still stands (test_many_may_upgrade_at_once).
    def apply(self, step: Step) -> bool:
        """Every page of every script, then the version."""
        for change in step.changes:
            cursor = b"0"
            while (cursor := self._run(change.text, (cursor.decode(), PAGE))) != b"0":
                pass
        after = written(Schema(step.after, step.compatible_from))
        return bool(self._run("set_version", (str(step.before), after)))

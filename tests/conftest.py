"""Which tests stay together and which come first when several processes share them (`make test`).

Each test goes to whoever is free, except those that share something costly: they are given to one process,
which then makes it once. What takes longest comes first, so that nobody waits for it in the end.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

TOGETHER = (
    "tests/browser/",  # a node, a dashboard and a Chromium
    "tests/cpython/test_executor_suite.py",  # whoever runs one of these cases runs them all
    "tests/api/test_contract.py",
    "tests/api/test_server.py",
    "tests/examples/test_rush.py",
    "tests/examples/test_thumbnails.py",
    "tests/node_health/test_deploy.py",
)
FIRST = (*TOGETHER, "tests/proof_node/", "tests/proof_recurring/", "tests/proof_stores/", "tests/node")


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    """One test at a time to whoever is free; not marks, which xdist loses with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return next((place for place in TOGETHER if nodeid.startswith(place)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Sharing:
    """How tests are given to the processes of `pytest -n`."""
    return Sharing(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first."""
    items.sort(key=rank)


def rank(item: pytest.Item) -> int:
    """Its place in the order; among equals, as they were found."""
    return next((number for number, place in enumerate(FIRST) if item.nodeid.startswith(place)), len(FIRST))

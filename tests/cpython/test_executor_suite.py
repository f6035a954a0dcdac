"""CPython's executor tests against ``Pool``: one pytest case per test method and worker kind.

Quick by default; ``MILLPOND_CPYTHON=full`` runs every kind whole. With
``MILLPOND_CPYTHON_TARGET=stdlib`` the standard library's executors are the target, which checks
the adapter itself. Cases that cannot apply are in ``cases``; all others must pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .cases import TABLE, NotApplicable
from .selection import FAMILY_OF_KIND, KINDS, Case, select, short_name
from .source import Unavailable, inventory
from .suite import Suite, wanted_target, wants_everything


def selected_cases() -> list[Case]:
    try:
        found = inventory()
    except Unavailable:
        return []  # reported by test_cpythons_tests_are_available
    own = wanted_target() == "stdlib"
    kinds = [kind for kind in KINDS if not (own and kind == "async")]
    everything = wants_everything()
    return select(found.tests, kinds, full=everything, listed=own, borrowed=found.source.borrowed)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        cases = selected_cases()
        metafunc.parametrize("case", cases, ids=[f"{case.kind}-{case.name}" for case in cases])


@pytest.fixture(scope="session")
def suite(request: pytest.FixtureRequest) -> Iterator[Suite]:
    collected = (getattr(item, "callspec", None) for item in request.session.items)
    named = (spec.params.get("case") for spec in collected if spec)
    cases = [case for case in named if isinstance(case, Case)]  # other tests have cases of their own
    running = Suite(inventory().source, cases, wanted_target())
    try:
        yield running
    finally:
        running.close()


def test_cpythons_tests_are_available() -> None:
    try:
        tests = inventory().tests
    except Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(str(reason))
        pytest.skip(str(reason))
    assert {family for _, family in tests} >= set(FAMILY_OF_KIND.values())


def test_cpython_case_passes(case: Case, suite: Suite) -> None:
    verdict = suite.verdict(case)
    if verdict.outcome == "skipped":
        pytest.skip(verdict.detail)
    if verdict.outcome != "passed":
        pytest.fail(f"{case.id} on kind {case.kind}\n{verdict.detail}", pytrace=False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_test_processes_end_cleanly_and_leave_none_behind(kind: str, suite: Suite) -> None:
    assert suite.aftermath(kind) == []


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.case)
def test_a_listed_case_still_exists_and_has_a_replacement(entry: NotApplicable) -> None:
    from . import test_opposites

    for name in entry.instead:
        assert callable(getattr(test_opposites, name)), f"{name} replaces {entry.case}"
    try:
        found = inventory()
    except Unavailable as reason:
        pytest.skip(str(reason))
    if found.source.version >= entry.since:
        names = {short_name(test_id, family) for test_id, family in found.tests}
        assert entry.case in names, "a stale entry: no such test in this Python's suite"

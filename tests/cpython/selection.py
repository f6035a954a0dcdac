"""Which of CPython's tests run on which kind of worker: values in, values out.

Every process kind takes one start method's family of test classes; ``thread`` takes the thread
pool's; ``future`` takes the tests of the Future class and those that wait on futures.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .cases import NEEDS_NEWER_PYTHON, not_applicable

FAMILY_OF_KIND = {
    "process": "forkserver",  # the pool is given no mp_context; the tests still need one
    "thread": "thread",
    "future": "thread",
    "fork": "fork",
    "forkserver": "forkserver",
    "spawn": "spawn",
    "async": "forkserver",
}
KINDS = tuple(FAMILY_OF_KIND)
WHOLE_KINDS = ("process", "thread", "future")

FUTURE_CLASSES = ("FutureTests", "ThreadPoolWaitTests", "ThreadPoolAsCompletedTest")
RESOURCES_CLASS = "FailingInitializerResourcesTest"

SLOW_AND_KIND_BLIND = frozenset({"WaitTest", "AsCompletedTest", "ProcessPoolExecutorTest.test_map_timeout"})
"""Tests that wait for seconds in the parent and look at futures only: the quick run has them on
the whole kinds, where the same code serves them."""


@dataclass(frozen=True)
class Case:
    """One test method on one kind. ``name`` is the same in every Python version and family."""

    kind: str
    name: str
    id: str

    @property
    def owner(self) -> str:
        return self.id.rpartition(".")[0]


def select(
    tests: Iterable[tuple[str, str]],
    kinds: Iterable[str],
    *,
    full: bool,
    listed: bool = False,
    borrowed: bool = False,
) -> list[Case]:
    """The cases to run.

    ``listed`` also takes those that cannot apply to ``Pool``; ``borrowed`` says that the tests are
    those of a newer Python.
    """
    rows = [(test_id, family, short_name(test_id, family)) for test_id, family in tests]
    return [
        Case(kind, name, test_id)
        for kind in kinds
        for test_id, family, name in rows
        if _fits(kind, family, name)
        and not (borrowed and name in NEEDS_NEWER_PYTHON)
        and (listed or not_applicable(name, kind) is None)
        and (full or kind in WHOLE_KINDS or not _is_slow(name))
    ]


def short_name(test_id: str, family: str) -> str:
    """``Class.method`` without module and start method: the name used in the table of cases."""
    owner, method = test_id.split(".")[-2:]
    if family != "thread":
        owner = owner.removeprefix(f"ProcessPool{family.capitalize()}")
    return f"{owner}.{method}"


def _fits(kind: str, family: str, name: str) -> bool:
    owner, method = name.split(".")
    if kind == "future":
        return owner in FUTURE_CLASSES
    if owner == RESOURCES_CLASS:
        return kind == "process" or method == f"test_{kind}"
    return family == FAMILY_OF_KIND[kind]


def _is_slow(name: str) -> bool:
    return name in SLOW_AND_KIND_BLIND or name.partition(".")[0] in SLOW_AND_KIND_BLIND

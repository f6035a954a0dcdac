"""The main of a test process: list the CPython tests, or run some and report each as it ends.

Reports are JSON lines on a descriptor of their own, so whatever the tests print cannot garble them
and a hang or a crash still leaves every earlier verdict with the parent.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import os
import resource
import sys
import unittest
from typing import Any

from . import graft
from .target import from_environment


class Reporter(unittest.TestResult):
    """Turns what unittest tells into one line per event."""

    def __init__(self, descriptor: int, stack_after: float) -> None:
        super().__init__()
        self._out = os.fdopen(descriptor, "w", buffering=1)
        self._stack_after = stack_after
        self._outcome = "passed"
        self._detail = ""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._outcome, self._detail = "passed", ""
        _support().environment_altered = False
        faulthandler.dump_traceback_later(self._stack_after, file=2)
        self._say(event="start", case=test.id())

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        faulthandler.cancel_dump_traceback_later()
        if self._outcome == "passed" and _support().environment_altered:
            self._note("failed", "the test left threads or processes behind (see the output)")
        self._say(event="stop", case=test.id(), outcome=self._outcome, detail=self._detail)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self._note("failed", self.errors[-1][1])
        if not isinstance(test, unittest.TestCase):  # a module or class fixture
            self._say(event="broken", detail=self._detail)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._note("failed", self.failures[-1][1])

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note("failed", (self.failures + self.errors)[-1][1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._note("skipped", reason)

    def _note(self, outcome: str, detail: str) -> None:
        self._outcome = outcome
        self._detail = f"{self._detail}\n{detail}".strip()

    def _say(self, **event: str) -> None:
        self._out.write(json.dumps(event) + "\n")


def main() -> None:
    options = _options()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    modules = graft.test_modules()
    if options.list:
        print(json.dumps(_inventory(modules)))
        return
    graft.point_at(from_environment(), modules)
    named = {f"{cls.__module__}.{cls.__qualname__}": cls for cls in graft.test_classes(modules)}
    suite = unittest.TestSuite()
    for name in json.load(sys.stdin):
        owner, _, method = name.rpartition(".")
        suite.addTest(named[owner](method))
    suite.run(Reporter(options.report, options.stack_after))


def _inventory(modules: list[Any]) -> list[dict[str, str]]:
    loader = unittest.TestLoader()
    return [
        {"id": f"{cls.__module__}.{cls.__qualname__}.{method}", "family": graft.family(cls)}
        for cls in graft.test_classes(modules)
        for method in loader.getTestCaseNames(cls)
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--report", type=int)
    parser.add_argument("--stack-after", type=float)
    return parser.parse_args()


def _support() -> Any:
    return importlib.import_module("test.support")


if __name__ == "__main__":
    main()

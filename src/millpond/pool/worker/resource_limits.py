"""The module `resource`, and whether code of this process may have changed a limit of it.

To ask for four limits after each job takes 1.7 microseconds, a fifth of what a short job costs its worker. So
a worker asks only when it must: after a call of `setrlimit` or `prlimit` where `watch` was started before the
code of jobs was imported, elsewhere as soon as any code has imported `resource`. A change by other means
(ctypes) is not noticed. See tests/node/test_tidy.py.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

_was_here = "resource" in sys.modules
resource = importlib.import_module("resource")
if not _was_here:
    del sys.modules["resource"]


class LimitWatch:
    """Notices the calls that change a limit."""

    def __init__(self) -> None:
        self.is_on = False
        self.has_changed = False  # since the last `take`

    def take(self) -> bool:
        """Must the limits be looked at? Each change is told once."""
        if self.has_changed:
            self.has_changed = False
            return True
        return not self.is_on and "resource" in sys.modules

    def start(self) -> None:
        """From here on, in this process and its forks. Code that has the functions already is not noticed."""
        if self.is_on:
            return
        self.is_on = True
        sys.modules["resource"] = resource
        for name in ("setrlimit", "prlimit"):
            setattr(resource, name, self._noting(getattr(resource, name)))

    def _noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def noting(*args: Any) -> Any:
            self.has_changed = True
            return function(*args)

        return noting


watch = LimitWatch()

"""A ``test`` package first on the path: the interpreter's own one plus a grafted CPython test tree.

Every process of a run (parent, workers, scripts) imports it, so functions of the grafted tests can
be unpickled anywhere. What a newer test tree expects of an older ``test.support`` is filled in
here. It must never hide a module that the interpreter ships itself.
"""

import importlib
import os
import sys
import sysconfig
from typing import Any

_own = os.path.join(sysconfig.get_path("stdlib"), "test")
_grafted = os.environ.get("MILLPOND_CPYTHON_TESTS", "")
__path__ = [*__path__, *(path for path in [_own, *_grafted.split(os.pathsep)] if path)]

support: Any = importlib.import_module("test.support")  # found through the extended path


def _without_thread_sanitizer(name: str) -> None:
    """Accept ``thread=``, which 3.13 added; no build here has that sanitizer."""
    original = getattr(support, name)

    def accepting(*args: Any, thread: bool = False, **others: Any) -> Any:
        asked = args or any(others.values()) or not thread
        return original(*args, **others) if asked else False

    setattr(support, name, accepting)


if sys.version_info < (3, 13):
    support.Py_GIL_DISABLED = False
    support.requires_gil_enabled = lambda _message: lambda function: function
    _without_thread_sanitizer("check_sanitizer")
    support.skip_if_sanitizer = lambda *_args, **_others: lambda function: function

"""The module `resource`, kept out of `sys.modules` as long as no other code imports it.

Whether it is there tells a worker, at no cost, whether a job can have changed a limit of the process: four
calls of getrlimit after each job take some microseconds. A change by other means (ctypes) is not noticed.
"""

from __future__ import annotations

import importlib
import sys

_was_here = "resource" in sys.modules
resource = importlib.import_module("resource")
if not _was_here:
    del sys.modules["resource"]


def may_have_changed() -> bool:
    """Has any code of this process imported `resource`?"""
    return "resource" in sys.modules

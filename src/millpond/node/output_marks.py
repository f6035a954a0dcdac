"""Inside the worker: each printed line begins with a mark that says which job printed it.

The mark has a number that only this worker and its node know, so that text which is printed cannot pass for
one. Lines that do not come through Python's own stdout and stderr have no mark, and are told without a job.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import Any

from millpond.current import current_job

BEGIN, END = b"\x1e", b"\x1f"


def mark_output() -> None:
    """Have everything that is printed from here on begin with the job it belongs to, line by line."""
    mark = f"{BEGIN.decode()}{secrets.token_hex(8)}"
    os.write(1, mark.encode() + END)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
            stream.write = _marking(stream.write, mark)  # type: ignore[method-assign]
        except Exception:  # noqa: S112 - the app has put something of its own there: it is printed unmarked
            continue


def _marking(plain: Any, mark: str) -> Any:
    """A `write` that puts the mark at the beginning of each line."""
    at_start = True

    def write(text: Any) -> int:
        nonlocal at_start
        if not isinstance(text, str) or not text:
            return int(plain(text))
        head = f"{mark}{_job()}{END.decode()}"
        inside = text.count("\n") - text.endswith("\n")
        plain((head if at_start else "") + text.replace("\n", f"\n{head}", inside))
        at_start = text.endswith("\n")
        return len(text)

    return write


def _job() -> str:
    try:
        return current_job().id
    except LookupError:
        return ""

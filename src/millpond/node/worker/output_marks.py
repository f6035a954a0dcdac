"""Inside the worker: each printed line begins with a mark that says which job printed it.

The mark has a number that only this worker and its node know, so that text which is printed cannot pass for
one. Lines that do not come through Python's own stdout and stderr have no mark, and are told without a job.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import Any

from millpond.task_context import current_job

BEGIN, END = b"\x1e", b"\x1f"


def mark_output() -> None:
    """Have everything that is printed from here on begin with the job it belongs to, line by line."""
    mark = f"{BEGIN.decode()}{secrets.token_hex(8)}"
    os.write(1, mark.encode() + END)
    line = _Line()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
            stream.write = _marking(stream.write, mark, line)  # type: ignore[method-assign]
        except Exception:  # noqa: S112 - the app has put something of its own there: it is printed unmarked
            continue


class _Line:
    """The line that is being written, by whatever stream: both lead into one pipe."""

    writer: tuple[Any, str] | None = None  # the stream and the job that wrote last
    is_new = True  # whether that ended a line
    cut: tuple[Any, str] | None = None  # whose half line was ended by another's text


def _marking(plain: Any, mark: str, line: _Line) -> Any:
    """A `write` that puts the mark at the beginning of each line, and of what follows another's half line.

    Jobs of one worker print at the same time, and `print` writes the end of a line by itself: without this,
    one job's text would be told as another's (`test_what_jobs_of_one_worker_print_..._is_told_apart`).
    """

    def write(text: Any) -> int:
        if not isinstance(text, str) or not text:
            return int(plain(text))
        job = _job()
        me = (plain, job)
        (before, line.writer), (is_new, line.is_new) = (line.writer, me), (line.is_new, text.endswith("\n"))
        if before != me and not is_new:
            line.cut = before
        elif line.cut == me:
            line.cut = None
            if text == "\n":  # the late end of a line that another's text has ended
                return int(plain(text))
        head = f"{mark}{job}{END.decode()}"
        inside = text.count("\n") - text.endswith("\n")
        plain((head if is_new or before != me else "") + text.replace("\n", f"\n{head}", inside))
        return len(text)

    return write


def _job() -> str:
    try:
        return current_job().id
    except LookupError:
        return ""

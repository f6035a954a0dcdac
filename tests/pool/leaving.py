"""What tasks leave to be done when their worker leaves: records in queues, exit handlers, threads."""

from __future__ import annotations

import atexit
import logging
import logging.handlers
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

from tests.pool import tasks

RECORDS = 100


def log_to(queue: Any) -> None:
    """The initializer of the logging cookbook: each worker puts its records into one queue."""
    root = logging.getLogger()
    root.handlers[:] = [logging.handlers.QueueHandler(queue)]
    root.setLevel(logging.INFO)


def log(task: int) -> None:
    for number in range(RECORDS):
        logging.getLogger("work").info("record %d of task %d", number, task)


def note_at_exit(journal: Path) -> int:
    atexit.register(tasks.note, journal, "exit handler")
    return os.getpid()


def note_when_finalized(journal: Path) -> None:
    from multiprocessing.util import Finalize

    Finalize(None, tasks.note, (journal, "finalizer"), exitpriority=1)


def leave_a_thread(folder: Path, journal: Path) -> int:
    """A thread that is no daemon waits for a gate after the task has ended, then writes a line."""

    def end() -> None:
        tasks.hold(folder)
        tasks.note(journal, "thread")

    threading.Thread(target=end).start()
    return os.getpid()


def leave_a_thread_for_ever() -> None:
    def never_end() -> None:
        threading.Event().wait()

    threading.Thread(target=never_end).start()


async def leave_a_thread_in_a_loop(folder: Path, journal: Path) -> int:
    return leave_a_thread(folder, journal)


def who_am_i() -> tuple[str, tuple[int, ...], int, bool]:
    process, parent = multiprocessing.current_process(), multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    return process.name, process._identity, parent.pid, parent.is_alive()


def hold_and_tell(folder: Path) -> tuple[str, tuple[int, ...], int, bool]:
    tasks.hold(folder)
    return who_am_i()


def log_and_fail(queue: Any) -> None:
    log_to(queue)
    logging.getLogger("work").info("cannot begin")
    raise RuntimeError("cannot begin")


def hold_and_exit(folder: Path, code: int) -> None:
    tasks.hold(folder)
    os._exit(code)

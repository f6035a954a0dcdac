"""A disk that is full when SQLite commits: nothing has happened, and the store says so."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from millpond.errors import OutcomeUnknown, StoreUnavailable
from millpond.store.sqlite.schema import failed_commit
from millpond.store.sqlite.store import SQLiteStore
from tests.stores.acting import Node, new_job, put, put_many, tally

ARGUMENTS = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64)
Write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *ARGUMENTS, use_errno=True)


@pytest.fixture
def store(sqlite_path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(str(sqlite_path))
    made.migrate()
    yield made
    made.close()


@contextmanager
def no_space(_path: Path) -> Iterator[None]:
    """The system refuses every write to a log, as on a full disk."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.pwrite.restype, libc.pwrite.argtypes = ctypes.c_ssize_t, list(ARGUMENTS)

    @Write
    def refuse(file: int, data: int, length: int, offset: int) -> int:
        if os.readlink(f"/proc/self/fd/{file}").endswith("-wal"):
            ctypes.set_errno(errno.ENOSPC)
            return -1
        return int(libc.pwrite(file, data, length, offset))

    with system_calls(refuse, "pwrite", "pwrite64"):
        yield


@contextmanager
def size_limit(path: Path) -> Iterator[None]:
    """The log may not grow any more, as with a quota."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{path}-wal").stat().st_size + 100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def system_calls(function: Any, *names: str) -> Iterator[None]:
    """Let SQLite call this instead of the system."""
    system = apsw.VFS(f"for {names[0]}", "unix")
    pointer = ctypes.cast(function, ctypes.c_void_p).value or 0
    for name in names:
        system.xSetSystemCall(name, pointer)
    try:
        yield
    finally:
        for name in names:
            system.xSetSystemCall(name, 0)  # its own again
        system.unregister()


Trouble = Callable[[Path], AbstractContextManager[None]]


@pytest.mark.parametrize("trouble", [no_space, size_limit])
def test_a_disk_that_is_full_at_the_commit_means_that_nothing_happened(store, sqlite_path, trouble: Trouble):
    node = Node(store)
    put_many(store, 2)
    (running,) = node.claim(1)
    with trouble(sqlite_path):
        for call in (
            lambda: store.enqueue([new_job()]),
            lambda: node.settle(running),
            lambda: node.claim(1),
            node.renew,
        ):
            with pytest.raises(StoreUnavailable, match=r"full.*nothing was written"):
                call()
    assert tally(store) == {"queued": 1, "running": 1}
    node.settle(running)
    put(store, new_job())
    assert tally(store) == {"queued": 2, "completed": 1}


@pytest.mark.parametrize("code", [apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_SHMSIZE])
def test_a_commit_that_failed_after_its_last_write_may_have_happened(code):
    error = apsw.exception_for(code)
    assert isinstance(error, apsw.IOError)
    told = failed_commit(error, "sqlite:///jobs.db", rolled_back=True)
    assert isinstance(told, OutcomeUnknown)

"""A program that kills a migration before each thing it says to the store, and then migrates again.

`python -m tests.stores.killed URL STRIDE`, where {n} in the URL is another place for every death. No threads,
so that it may fork. Prints at which number nothing died any more.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from typing import Any

from millpond.store.open import open_store
from millpond.store.postgres.connection import PatientConnection
from millpond.store.redis.connection import Server
from tests.stores.acting import new_job
from tests.stores.schemas import catalog, make_older, older, sort_of


def main() -> None:
    url, stride = sys.argv[1], int(sys.argv[2])
    expected: Any = None
    for number in count(0, stride):
        place = url.replace("{n}", str(number))
        make_older(place)
        store = older(place)
        store.enqueue([new_job()])
        survived = number > 0 and dies_at(number, place)
        store.enqueue([new_job()])  # code of the version before goes on in what was left half-done
        store.close()
        again = open_store(place)
        again.migrate()
        assert again.migrate() == []
        assert sum(again.counts().queues[0].states.values()) == 2
        again.close()
        expected = expected or catalog(place)
        assert catalog(place) == expected, f"another schema after a death at {number}"
        if survived:
            print(number)
            return


def dies_at(number: int, url: str) -> bool:
    """Let a child migrate until its death; True if it came to the end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store: Any = open_store(url)
            set_trap(store, url, number)
            store.migrate()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    assert status == 0, f"the migration failed by itself before {number}"
    return True


def set_trap(store: Any, url: str, number: int) -> None:
    """Die before the n-th statement or script."""
    said = count(1)

    def speaking(*_: Any, **__: Any) -> bool:
        if next(said) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    if sort_of(url) == "sqlite":
        connect = store._connect

        def connected(**options: Any) -> Any:
            connection = connect(**options)
            connection.exec_trace = speaking
            return connection

        store._connect = connected
        return
    place, name = (PatientConnection, "execute") if sort_of(url) == "postgres" else (Server, "_run")
    speak = getattr(place, name)

    def trapped(self: Any, *arguments: Any, **options: Any) -> Any:
        speaking()
        return speak(self, *arguments, **options)

    setattr(place, name, trapped)


if __name__ == "__main__":
    main()

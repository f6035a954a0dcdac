"""A program that kills a child at every statement of a role, and looks at what it left behind.

`python -m tests.proof_stores.dying URL ROLE FOLDER STRIDE before|after`, where {n} in the URL is another
place for every death. It has no threads, so that it may fork. Prints at which statement nobody died any more.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path

from tests.proof_stores import scene, tripwire
from tests.proof_stores.scene import Notes


def main() -> None:
    url, role, folder, stride, when = sys.argv[1:]
    for number in count(1, int(stride)):
        place = url.replace("{n}", str(number))
        notes = Notes(Path(folder) / f"notes-{number}")
        survived = dies_at(number, role, place, notes, late=when == "after")
        store = scene.opened(place)
        scene.inherit(store, notes)
        scene.check(store, notes)
        store.close()
        if survived:
            print(number)
            return


def dies_at(number: int, role: str, url: str, notes: Notes, *, late: bool) -> bool:
    """Let a child play the role until its death before a statement; True if it came to the end."""
    before, play = scene.ROLES[role]
    store = scene.opened(url)
    store.migrate()
    before(store)
    store.close()
    child = os.fork()
    if child == 0:
        store = scene.opened(url)
        tripwire.Wire(store, number, lambda: os.kill(os.getpid(), signal.SIGKILL), late=late)
        _play_until_death(play, store, notes)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    assert status == 0, f"the {role} failed by itself before statement {number}"
    return True


def _play_until_death(play: scene.Role, store: object, notes: Notes) -> None:
    status = 1
    try:
        play(store, notes)
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()

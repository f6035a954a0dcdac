"""Become another program that dies with the process that started it, as another user if asked.

Run by its path: `python launch.py PARENT SIGNAL UID GID PROGRAM ARGUMENT...`. A user of -1 changes none.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, signal, user, group = (int(word) for word in sys.argv[1:5])
    if user >= 0:
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    # After the change of user, which forgets it.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the process that started this one is gone")
    os.execvp(sys.argv[5], sys.argv[5:])


if __name__ == "__main__":
    main()

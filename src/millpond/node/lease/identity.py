"""Who a node is: host, process and a random incarnation, never used twice.

Also tells whether a node of this machine is gone, without asking its lease: its process is not there.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from millpond.store.clock import BOOT_ID
from millpond.store.protocol import NodeRecord


class Identity:
    """The name of this node's present incarnation, and what it tells others about itself."""

    def __init__(self) -> None:
        self.host = socket.gethostname()
        self.facts: dict[str, Any] = {}
        self.born_again()

    def born_again(self) -> None:
        """Take a new name: the old one was rescued, and is refused."""
        self.id = f"{self.host}-{os.getpid()}-{secrets.token_hex(4)}"

    def info(self) -> bytes:
        """For people, and for nodes on the same machine."""
        return msgspec.json.encode({"pid": os.getpid(), **_here(os.getpid()), **self.facts})


def gone(nodes: tuple[NodeRecord, ...], own: str) -> list[str]:
    """The nodes whose process ran on this machine, as far as we can see it, and is not there any more."""
    found: list[str] = []
    others = [node for node in nodes if node.id != own]
    if not others:
        return found
    here = _here(os.getpid())
    for node in others:
        info = _read(node.info)
        pid = info.get("pid")
        # Another container may have our host name and reuse our numbers: only our own namespace counts
        same = info.get("boot") == here["boot"] and info.get("namespace") == here["namespace"]
        if same and isinstance(pid, int) and _is_gone(pid, info.get("begun")) and not _left(info):
            found.append(node.id)
    return found


def _is_gone(pid: int, begun: object) -> bool:
    """Certainly not there any more. A process of another user may be hidden from us (`hidepid`) and live."""
    now = _begun(pid)
    if now is not None or _text(Path(f"/proc/{pid}/stat")) is not None:
        return now != begun
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return begun is not None
    except (OSError, OverflowError):
        return False
    return False


def _left(info: dict[str, Any]) -> bool:
    """Are workers of a dead node still there? They die with their template, which is about to notice."""
    templates = info.get("templates", ())
    return isinstance(templates, list) and any(_is_template(pid) for pid in templates)


TEMPLATES = (
    "millpond.pool.worker.template",
    "millpond.pool.template",
)  # of this version, and of the ones before


def _is_template(pid: object) -> bool:
    command = _text(Path(f"/proc/{pid}/cmdline")) if isinstance(pid, int) else None
    return command is not None and any(name in command for name in TEMPLATES)


@cache
def _here(pid: int) -> Mapping[str, Any]:
    """Of our own process: it does not change while it lives, and every renewal tells it."""
    return {"boot": _text(BOOT_ID), "namespace": _namespace(), "begun": _begun(pid)}


def _begun(pid: int) -> str | None:
    """When a process began, in ticks since boot: a number used again is another process."""
    stat = _text(Path(f"/proc/{pid}/stat"))
    if stat is None:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else fields[19]


def _namespace() -> str | None:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _read(info: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(info)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}

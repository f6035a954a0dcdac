"""The audit log: one line in the store for every change that a person made, wherever he made it.

The HTTP API, the command line and `millpond top` write the same lines to the same log, and tell those who
look at the events. A line never carries job data; it never undoes the change when it cannot be stored.
"""

from __future__ import annotations

import getpass
import logging
import socket
from collections.abc import Mapping
from typing import Any

import msgspec

from millpond.errors import MillpondError
from millpond.shown_text import shown
from millpond.store.protocol import Store

logger = logging.getLogger("millpond.audit")
NAME = "audit"
KEEP = 10_000  # lines
EVENTS, KEPT_EVENTS = "events", 1_000
DONE = 200  # the status of what worked, as HTTP has it
LONGEST = 300  # characters of a target or a fact


def line(who: str, how: str, place: str, action: str, target: str, **facts: Any) -> dict[str, Any]:
    """Who did what to what, from where; facts are small values."""
    return {
        "who": who,
        "how": how,
        "from": place,
        "action": action,
        "target": shown(target, most=LONGEST),
        "status": DONE,
        "facts": small(facts),
    }


def small(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that may stand in a line."""
    return {
        name: value if isinstance(value, bool | int | float | None) else shown(str(value), most=LONGEST)
        for name, value in list(facts.items())[:20]
    }


def event(said: Mapping[str, Any]) -> bytes:
    """The same for those who look at the stream; where it came from is not their business."""
    about = f" {said['target']}" if said["target"] else ""
    return msgspec.json.encode(
        {
            "node": None,
            "kind": "Action",
            "level": "info",
            "text": f"{said['action']}{about}, by {said['who']}",
            "folded": 0,
            "facts": {"action": said["action"], "target": said["target"], "by": said["who"]},
        }
    )


def write(store: Store, how: str, action: str, target: str, **facts: Any) -> None:
    """Put down what somebody at this machine did. A store that cannot take it has done the change before."""
    said = line(person(), how, socket.gethostname(), action, target, **facts)
    try:
        store.log(NAME, [msgspec.json.encode(said)], limit=0, keep=KEEP)
        store.log(EVENTS, [event(said)], limit=0, keep=KEPT_EVENTS)
    except MillpondError as error:
        logger.warning("The audit line could not be stored: %s; it was %s %s", error, action, target)


def person() -> str:
    """Who works at this machine, by the name that its system knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"

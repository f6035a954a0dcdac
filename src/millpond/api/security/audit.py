"""The audit log: a line in the store for every change that somebody with the admin token asked for.

Written before the answer goes out, also when the change failed. A store that cannot take the line does not
undo the change; the server's own log has it then.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.types import Scope

from millpond.node.audit import EVENTS, KEEP, KEPT_EVENTS, LONGEST, NAME, event, small
from millpond.shown_text import shown

if TYPE_CHECKING:
    from millpond.api.context import Desk
    from millpond.api.security.tokens import Caller

logger = logging.getLogger("millpond.audit")
QUIET = (
    "job.enqueue",
    "session.open",
    "session.close",
)  # changes that nobody else needs to see as they happen


def note(scope: Any, target: str = "", **facts: Any) -> None:
    """Have the audit line say what a change was about."""
    scope["millpond.audit"] = {"target": target, "facts": facts}


def address_of(scope: Any) -> str:
    """Where a request came from, as the gate found it."""
    return str(scope.get("millpond.address") or peer_of(scope))


def peer_of(scope: Any) -> str:
    """The other end of the connection."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


async def write_down(desk: Desk, scope: Scope, caller: Caller, status: int) -> None:
    """One line. Failed logins are only logged: a stranger must not be able to fill the store."""
    said = scope.get("millpond.audit", {})
    caller = scope.get("millpond.caller", caller)
    route = scope.get("route")
    line = {
        "who": caller.scope,
        "how": caller.how,
        "from": address_of(scope),
        "action": getattr(route, "name", None) or f"{scope['method']} {scope['path']}"[:200],
        "target": shown(str(said.get("target", "")), most=LONGEST),
        "status": status,
        "facts": small(said.get("facts", {})),
    }
    logger.info("%(who)s at %(from)s: %(action)s %(target)s (%(status)d)", line)
    if caller.shown != "right":
        return
    desk.gathering.forget()
    entry = msgspec.json.encode(line)
    try:
        await desk.ask(desk.store.log, NAME, [entry], limit=0, keep=KEEP)
        if status < 400 and line["action"] not in QUIET:
            await desk.ask(desk.store.log, EVENTS, [event(line)], limit=0, keep=KEPT_EVENTS)
    except Exception as error:  # the change is done: the answer must say so
        logger.error("The audit line could not be stored: %s; it was %s", error, entry.decode())

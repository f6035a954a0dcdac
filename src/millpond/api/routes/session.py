"""Routes about oneself: log in with a token, see what one may do, log out.

The page never keeps the token: it is exchanged for a cookie that scripts cannot read and other sites cannot
send, and with which the event stream works, too.
"""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request

from millpond.api.context import Desk, Seat, caller_of
from millpond.api.job_documents import moment
from millpond.api.json_route import Answer, Route
from millpond.api.problems import Problem
from millpond.api.schemas import responses
from millpond.api.schemas.requests import Login, Nothing
from millpond.api.security.audit import address_of, note
from millpond.api.security.gate import cookie_name
from millpond.api.security.tokens import NOBODY, Caller

router = APIRouter(prefix="/api/v1", route_class=Route, tags=["session"])


@router.get("/session", name="session.show", responses=responses.answer(responses.Session))
async def show(desk: Seat, request: Request) -> Answer:
    """What one may do here."""
    return Answer(session_document(desk, caller_of(request.scope)))


@router.post("/session", name="session.open", responses=responses.answer(responses.Session))
async def log_in(desk: Seat, request: Request, said: Login) -> Answer:
    """Exchange a token for a session."""
    now, address = time.time(), address_of(request.scope)
    caller, cookie = desk.keyring.open_session(said.token, now)
    request.scope["millpond.caller"] = caller
    note(request.scope, caller.scope)
    if caller.shown != "right":
        desk.tries.refuse(address, now)
        raise Problem(
            "expired-token" if caller.shown == "expired" else "wrong-token", "this token lets nobody in"
        )
    answer = Answer(session_document(desk, caller))
    _set_cookie(desk, request, answer, cookie, int((caller.expires_at or now) - now))
    return answer


@router.delete("/session", name="session.close", responses=responses.answer(responses.Session))
async def log_out(desk: Seat, request: Request, _: Nothing) -> Answer:
    """End the session."""
    caller = caller_of(request.scope)
    if caller.shown == "right" and caller.session and caller.expires_at is not None:
        await desk.ends.end(caller.session, caller.expires_at)
    answer = Answer(session_document(desk, NOBODY))
    _set_cookie(desk, request, answer, "", 0)
    return answer


def _set_cookie(desk: Desk, request: Request, answer: Answer, value: str, age: int) -> None:
    answer.set_cookie(
        cookie_name(request.headers.get("host", "")),
        value,
        max_age=age,
        path=request.scope.get("root_path", "") or "/",
        httponly=True,
        samesite="strict",
        secure=desk.options.behind_tls,
    )


def session_document(desk: Desk, caller: Caller) -> dict[str, Any]:
    """Who one is, and what the server is."""
    options = desk.options
    ends = caller.expires_at if caller.scope != "none" else None
    return {
        "scope": caller.scope,
        "name": caller.scope,
        "how": caller.how if caller.scope != "none" else "none",
        "open_reads": options.open_reads,
        "expires_at": None if ends is None else moment(int(ends * 1e6)),
        "actions": options.knows_tasks,
        "app": options.app_name if options.open_reads or caller.scope != "none" else None,
        "version": desk.version if options.open_reads or caller.scope != "none" else "",
        "token_file": options.token_file if options.only_loopback else None,
        "beside": _beside(desk, caller),
    }


def _beside(desk: Desk, caller: Caller) -> dict[str, Any] | None:
    """The node that takes this server away when it ends."""
    options = desk.options
    if options.beside is None or not (options.open_reads or caller.scope != "none"):
        return None
    return dict(zip(("host", "pid"), options.beside, strict=True))

"""Errors as problem documents (RFC 9457): what happened, to what, and what to do next.

Every refusal of the API is made here, so that none shows a password, a traceback or a file of the server.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from millpond.config import hide_password
from millpond.errors import (
    ArgumentsRefused,
    Conflict,
    MillpondError,
    OptionError,
    OutcomeUnknown,
    PayloadRefused,
    SchemaOutdated,
    StoreBusy,
    StoreRefused,
    StoreUnavailable,
    UnknownJob,
    UnknownTask,
)
from millpond.shown_text import shown

KIND = "application/problem+json"
TYPE = "urn:millpond:problem:"


class Sort(NamedTuple):
    """One sort of problem."""

    status: int
    title: str
    fix: str


SORTS: dict[str, Sort] = {
    "bad-request": Sort(400, "The request cannot be understood", "See /api/v1/openapi.json"),
    "no-token": Sort(401, "A token is needed", "Send Authorization: Bearer TOKEN, or log in on the page"),
    "wrong-token": Sort(
        401, "The token is wrong", "`millpond dashboard --show-token` tells where it is kept"
    ),
    "expired-token": Sort(401, "The token has expired", "Make new ones: `millpond dashboard --new-tokens`"),
    "needs-admin": Sort(403, "The admin token is needed", "Use the admin token instead of the read token"),
    "foreign-origin": Sort(
        403, "Another page asked for a change", "Changes are made from the dashboard itself"
    ),
    "not-found": Sort(404, "There is nothing here", "See /api/v1/openapi.json for what there is"),
    "unknown-job": Sort(404, "There is no such job", "Look for it with GET /api/v1/jobs"),
    "unknown-task": Sort(404, "There is no such task", "See GET /api/v1/tasks"),
    "unknown-queue": Sort(404, "There is no such queue", "See GET /api/v1/queues"),
    "unknown-pool": Sort(404, "There is no such pool", "See GET /api/v1/pools"),
    "unknown-node": Sort(
        404, "There is no such node", "See GET /api/v1/nodes; a node that restarts has a new id"
    ),
    "unknown-worker": Sort(404, "There is no such worker", "See GET /api/v1/workers"),
    "unknown-recurring": Sort(404, "There is no such recurring task", "See GET /api/v1/recurring"),
    "method-not-allowed": Sort(405, "This cannot be done here", "See /api/v1/openapi.json"),
    "conflict": Sort(409, "It is not in a state for that", "Look at it again"),
    "no-app": Sort(409, "This server knows no app", "Start it with the app: `millpond dashboard jobs:app`"),
    "too-large": Sort(413, "The request is too large", "Send at most 1 MiB; store large data elsewhere"),
    "not-json": Sort(415, "Only JSON is taken", "Send Content-Type: application/json"),
    "wrong-host": Sort(
        421, "This server is not called that", "Use its address, or allow the name: dashboard_hosts"
    ),
    "invalid": Sort(422, "Something in the request is wrong", "Correct what `errors` lists"),
    "too-many": Sort(429, "Too many tries", "Wait for as long as Retry-After says"),
    "head-too-large": Sort(431, "The head of the request is too large", "Send fewer or shorter headers"),
    "internal": Sort(500, "The server failed", "Its log says why"),
    "store-busy": Sort(503, "The store is busy", "Nothing was changed: try again"),
    "store-away": Sort(503, "The store cannot be reached", "Nothing was changed: check that it runs"),
    "store-refused": Sort(503, "The store cannot be used as it is", "Do what `detail` says"),
    "outcome-unknown": Sort(
        503, "The store did not answer", "It may have been done: look before trying again"
    ),
    "overloaded": Sort(503, "The server is busy", "Try again in a moment"),
    "timed-out": Sort(504, "It took too long", "Ask for less; a change may still be carried out"),
}
WITHOUT_A_LIST = "Correct what `detail` says"
AGAIN = {"too-many": 60, "store-busy": 1, "store-away": 2, "outcome-unknown": 2, "overloaded": 2}


class Problem(Exception):
    """Raised anywhere in the API to answer with a problem."""

    def __init__(
        self,
        sort: str,
        detail: str,
        *,
        fix: str | None = None,
        errors: list[dict[str, str]] | None = None,
        allow: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.sort = sort
        self.detail = detail
        self.fix = fix
        self.errors = errors
        self.allow = allow  # methods that the path has

    def document(self) -> dict[str, Any]:
        """As it is sent."""
        sort = SORTS[self.sort]
        found: dict[str, Any] = {
            "type": TYPE + self.sort,
            "title": sort.title,
            "status": sort.status,
            "detail": shown(hide_password(self.detail)),
            "fix": self.fix or (WITHOUT_A_LIST if self.sort == "invalid" and not self.errors else sort.fix),
        }
        return found if self.errors is None else {**found, "errors": self.errors}

    def response(self) -> Response:
        """As an answer."""
        sort = SORTS[self.sort]
        headers = {"Cache-Control": "no-store"}
        if sort.status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="millpond"'
        if self.sort in AGAIN:
            headers["Retry-After"] = str(AGAIN[self.sort])
        if self.allow is not None:
            headers["Allow"] = self.allow
        if self.sort == "too-large":
            headers["Connection"] = "close"
        return Response(msgspec.json.encode(self.document()), sort.status, headers, KIND)


def problem_of(error: Exception) -> Problem | None:
    """What an error of Millpond means to a caller; None for one that nobody expected."""
    if isinstance(error, Problem):
        return error
    for kind, sort in _SORT_OF.items():
        if isinstance(error, kind):
            return Problem(sort, str(error))
    return Problem("invalid", str(error)) if isinstance(error, MillpondError | ValueError) else None


_SORT_OF: dict[type[Exception], str] = {
    UnknownJob: "unknown-job",
    UnknownTask: "unknown-task",
    ArgumentsRefused: "invalid",
    PayloadRefused: "invalid",
    OptionError: "invalid",
    Conflict: "conflict",
    OutcomeUnknown: "outcome-unknown",
    StoreBusy: "store-busy",
    StoreUnavailable: "store-away",
    SchemaOutdated: "store-refused",
    StoreRefused: "store-refused",
}

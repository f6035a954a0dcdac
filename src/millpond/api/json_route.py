"""How routes answer: JSON that is always valid, and errors that are always problem documents."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from millpond.api.problems import SORTS, Problem, problem_of
from millpond.shown_text import shown

logger = logging.getLogger("millpond.api")
BY_STATUS = {400: "bad-request", 404: "not-found", 405: "method-not-allowed"}
_encode = msgspec.json.Encoder().encode


def encoded(content: Any) -> bytes:
    """A document as JSON. Text that UTF-8 cannot say is escaped, a number that JSON has no word for is null.

    Takes its time with large documents: not on the event loop.
    """
    try:
        return _encode(content)
    except (UnicodeEncodeError, TypeError, OverflowError):
        return json.dumps(_without_infinities(content), ensure_ascii=True, default=str).encode()


def _without_infinities(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _without_infinities(item) for key, item in value.items()}
    return [_without_infinities(item) for item in value] if isinstance(value, list | tuple) else value


class Answer(Response):
    """A JSON document: a small one as it is, any other as the bytes that a thread has made of it."""

    media_type = "application/json"

    def __init__(self, content: Any = None, status_code: int = 200, **options: Any) -> None:
        super().__init__(content, status_code, **options)
        self.headers["Cache-Control"] = "no-store"

    def render(self, content: Any) -> bytes:
        """As bytes."""
        return content if isinstance(content, bytes) else encoded(content)


class Route(APIRoute):
    """A route whose every failure is a problem document, and of which nothing else leaves the server."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, guarded."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                return invalid(error).response()
            except HTTPException as error:
                return of_status(error).response()
            except Exception as error:
                problem = problem_of(error)
                if problem is None:
                    logger.exception("%s %s failed", request.method, request.url.path)
                    problem = Problem("internal", f"{type(error).__name__} in {self.name}")
                return problem.response()

        return guarded


def of_status(error: HTTPException, allow: str | None = None) -> Problem:
    """What a framework's refusal means; `allow` are the methods that the path has."""
    sort = BY_STATUS.get(error.status_code, "bad-request")
    allow = allow if sort == "method-not-allowed" else None
    return Problem(sort, f"{SORTS[sort].title}: {error.detail}", allow=allow)


def invalid(error: RequestValidationError) -> Problem:
    """Every mistake of a request, by its place in it. What was sent is not repeated."""
    errors = [
        {"where": ".".join(map(str, found["loc"]))[:200], "message": shown(str(found["msg"]), most=300)}
        for found in error.errors()[:20]
    ]
    first = errors[0] if errors else {"where": "request", "message": "is wrong"}
    return Problem("invalid", f"{first['where']}: {first['message']}", errors=errors)

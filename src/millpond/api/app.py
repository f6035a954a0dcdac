"""Puts the API together: routes, the gate before them, and the OpenAPI document.

`asgi(app)` is what a program mounts in its own ASGI app; `build` is the same with every option.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from millpond.api.context import Desk
from millpond.api.json_route import Answer, invalid, of_status
from millpond.api.methods import allowed
from millpond.api.options import ApiOptions
from millpond.api.routes import (
    dead,
    jobs,
    metrics,
    nodes,
    overview,
    pools,
    queues,
    recurring,
    session,
    static_files,
)
from millpond.api.schemas import responses
from millpond.api.security.gate import COOKIE, Gate, route_path
from millpond.api.security.tokens import token
from millpond.rules.http_access import Scope, need_of

if TYPE_CHECKING:
    from millpond.app import App

ROUTERS = (overview, jobs, queues, pools, nodes, dead, recurring, session, metrics, static_files)
OPENAPI = "/api/v1/openapi.json"
ROUTES: list[BaseRoute] = [route for part in ROUTERS for route in part.router.routes]
ABOUT = """Look at and steer a fleet of Millpond nodes. Instants are ISO 8601 in UTC, durations are seconds.
Reading needs a read token unless the server listens on loopback only; every change needs the admin token."""

SCHEMES = {
    "token": {"type": "http", "scheme": "bearer"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "What POST /api/v1/session sets; a port in the address is added to its name: "
        f"{COOKIE}-8640",
    },
}
SHOWN: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]  # one of them


def asgi(
    app: App,
    *,
    admin_token: str | None = None,
    read_token: str | None = None,
    hosts: Iterable[str] = (),
    open_reads: bool = False,
    open_metrics: bool = False,
    behind_tls: bool = False,
    trusted_proxies: Iterable[str] = (),
) -> Gate:
    """The HTTP API and dashboard of an app, to be mounted in an ASGI application.

    Without `admin_token` nothing can be changed; without `read_token` nothing can be read unless
    `open_reads` says so. `hosts` are the names by which your server is asked, beside localhost. Of
    `trusted_proxies`, addresses or networks, the word is taken about who asks (`X-Forwarded-For`).
    """
    given: tuple[tuple[Scope, str | None], ...] = (("admin", admin_token), ("read", read_token))
    known = [token(scope, text) for scope, text in given if text is not None]
    options = ApiOptions(
        tokens=lambda: known,
        host="*",
        hosts=frozenset(host.lower() for host in hosts),
        open_reads=open_reads,
        open_metrics=open_metrics,
        behind_tls=behind_tls,
        proxies=tuple(ip_network(name, strict=False) for name in trusted_proxies),
        app_name=app.name,
    )
    return build(app, options)


def build(app: App, options: ApiOptions) -> Gate:
    """The API behind its gate."""
    inner = FastAPI(
        title="Millpond",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    desk = Desk(app, options)
    inner.state.desk = desk
    inner.state.files = static_files.built()
    for part in ROUTERS:
        inner.include_router(part.router)
    inner.add_api_route(OPENAPI, _openapi, include_in_schema=False)
    inner.add_exception_handler(HTTPException, _refused)
    inner.add_exception_handler(RequestValidationError, _mistaken)
    return Gate(inner, desk, ROUTES)


def _operation_id(route: APIRoute) -> str:
    """A name that generated clients can use: `jobs.list` becomes `jobs_list`."""
    return route.name.replace(".", "_")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return of_status(error, allowed(ROUTES, route_path(request.scope))).response()


async def _mistaken(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return invalid(error).response()


async def _openapi(request: Request) -> Answer:
    """The OpenAPI document."""
    return Answer(document(request.app))


ROUTES.append(APIRoute(OPENAPI, _openapi))


def document(inner: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made on first use."""
    if inner.openapi_schema is None:
        desk: Desk = inner.state.desk
        made = get_openapi(title="Millpond", version=desk.version, description=ABOUT, routes=inner.routes)
        parts = made.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = responses.Problem.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        parts["schemas"].update(parts["schemas"]["Problem"].pop("$defs", {}))
        parts["securitySchemes"] = SCHEMES
        made["security"] = [*SHOWN, {}]
        for path, method, operation in _operations(made):
            if need_of(method, path) == "admin":
                operation["security"] = SHOWN
        inner.openapi_schema = made
    return inner.openapi_schema


def _operations(made: dict[str, Any]) -> Iterable[tuple[str, str, dict[str, Any]]]:
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation

"""Which methods a path has, for the `Allow` of an answer that refuses another one."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import BaseRoute, Route

from millpond.rules.http_access import CHANGES, READS


def allowed(routes: Iterable[BaseRoute], path: str) -> str:
    """The methods of a path; those of the server where nothing has that path."""
    found: set[str] = set()
    for route in routes:
        if isinstance(route, Route) and route.path_regex.match(path):
            found |= route.methods or set()
    found |= {"HEAD"} if "GET" in found else set()
    return ", ".join(sorted(found or READS | CHANGES))

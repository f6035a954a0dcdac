"""The HTTP API: jobs, queues, pools, nodes and recurring tasks over HTTP, with a live stream and a dashboard.

    app.mount("/jobs", millpond.api.asgi(jobs_app, admin_token=...))

Needs the `web` extra. Nothing here touches SQL: everything goes through the app and its store's verbs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millpond.api.app import asgi

__all__ = ["asgi"]


def __getattr__(name: str) -> Any:
    """Import on first use: a core install has no FastAPI, and is told what to do."""
    if name != "asgi":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from millpond.api.app import asgi
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("fastapi", "starlette", "pydantic", "uvicorn"):
            raise
        raise ModuleNotFoundError(
            "the HTTP API needs the web extra: pip install 'millpond[web]'", name=error.name
        ) from error
    return asgi

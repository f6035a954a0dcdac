"""The dashboard's files: read once when the server starts and served from memory, by their exact names.

No path of a request ever reaches the file system. Where the dashboard was not built, a page says how to.
"""

from __future__ import annotations

import gzip
import mimetypes
import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from millpond.api.json_route import Route
from millpond.api.problems import Problem

router = APIRouter(route_class=Route, include_in_schema=False)
LARGEST = 8 << 20  # bytes of one file
_ENCODING = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0{0,3})?\s*(?:,|$))", re.IGNORECASE)
_HASHED = re.compile(r"-[0-9A-Za-z]{8,}\.")
NOT_BUILT = b"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Millpond</title></head>
<body>
<h1>The dashboard is not built</h1>
<p>The HTTP API works: see <a href="api/v1/openapi.json">api/v1/openapi.json</a>.</p>
<p>This Millpond was installed without its page. Packages bring it along, unless they were built with
<code>MILLPOND_NO_WEB=1</code>: install one that was not, or install again from the source with Node.js 20 or
newer at hand. In a source tree where Millpond is installed as editable: <code>make web</code>. Then start
the server again.</p>
</body>
</html>
"""


class File(NamedTuple):
    """One file of the dashboard."""

    content: bytes
    kind: str
    tag: str
    packed: bytes | None = None  # the same, compressed, where that is smaller


def built() -> dict[str, File]:
    """Every built file by its name; none when the dashboard was not built."""
    folder = files("millpond").joinpath("web", "static")
    return dict(_inside(folder, "")) if folder.is_dir() else {}


def _inside(folder: Traversable, prefix: str) -> Iterator[tuple[str, File]]:
    for entry in folder.iterdir():
        if entry.is_dir() and not prefix:
            yield from _inside(entry, f"{entry.name}/")
        elif entry.is_file() and not entry.name.startswith("."):
            content = entry.read_bytes()
            if len(content) <= LARGEST:
                yield prefix + entry.name, _file(entry.name, content)


def _file(name: str, content: bytes) -> File:
    kind = {"js": "text/javascript", "svg": "image/svg+xml", "webmanifest": "application/manifest+json"}.get(
        name.rpartition(".")[2]
    )
    kind = kind or mimetypes.guess_type(name)[0] or "application/octet-stream"
    text = kind.startswith("text/") or kind.endswith(("+xml", "+json"))
    packed = gzip.compress(content, mtime=0) if text else content
    return File(
        content,
        f"{kind}; charset=utf-8" if text else kind,
        sha256(content).hexdigest()[:20],
        packed if len(packed) < len(content) else None,
    )


@router.get("/")
async def index(request: Request) -> Response:
    """The page."""
    found = request.app.state.files.get("index.html")
    if found is None:
        return Response(NOT_BUILT, 503, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")
    return _sent(request, "index.html", found)


@router.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    """The picture in the tab; an empty answer where there is none, so that no browser complains."""
    for name in ("favicon.ico", "favicon.svg"):
        if name in request.app.state.files:
            return _sent(request, name, request.app.state.files[name])
    return Response(status_code=204)


@router.get("/static/{name:path}")
async def static(request: Request, name: str) -> Response:
    """One built file."""
    found = request.app.state.files.get(name)
    if found is None:
        raise Problem("not-found", "the dashboard has no such file")
    return _sent(request, name, found)


def _sent(request: Request, name: str, file: File) -> Response:
    lasting = "public, max-age=31536000, immutable" if _HASHED.search(name) else "no-cache"
    coding = _ENCODING.search(request.headers.get("accept-encoding", ""))
    content, tag = file.content, f'"{file.tag}"'
    headers = {"Cache-Control": lasting, "Vary": "Accept-Encoding"}
    if file.packed is not None and coding is not None:
        content, tag = file.packed, f'"{file.tag}-gz"'
        headers["Content-Encoding"] = "gzip"
    headers["ETag"] = tag
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, 200, {**headers, "Content-Type": file.kind})

"""The web console under ``/ui/`` and the API reference at ``/docs``: static files that need no token.

The API, whose data they show, does.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from leatstream.errors import CatalogError

HOME = "/ui/"
REFERENCE = "/docs"
DIRECTORY = Path(__file__).resolve().parents[1] / "console"
_INDEX = "index.html"
_REFERENCE = "reference.html"
_ASSETS = "assets/"  # the build puts a hash of their content into their names
# The machine's own table of types may lack some, or be changed by its users.
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    # The component library and the editor set styles of elements; scripts stay strict.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)
_HEADERS = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def is_for_browsers(scope: Scope, headers: Headers) -> bool:
    """Whether a request is one that leads to the console: a browser's for ``/``, or any for ``/ui``."""
    if scope["method"] not in ("GET", "HEAD"):
        return False
    return scope["path"] == HOME.rstrip("/") or (scope["path"] == "/" and _wants_a_page(headers))


def install(app: FastAPI, directory: Path = DIRECTORY) -> list[Route]:
    """Serve the files of both by the routes that are returned; without them, say what makes them."""
    files = GZipMiddleware(_Files(directory))
    paths = (f"{HOME}{{path:path}}", REFERENCE)
    routes = [Route(path, files, methods=["GET"], include_in_schema=False) for path in paths]
    app.router.routes.extend(routes)
    return routes


class _Files:
    """Files that are known from the start, so that no path can lead elsewhere; other pages are the index."""

    def __init__(self, directory: Path) -> None:
        self._files = _found(directory)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a file, with the index for a page of the application, or with 404."""
        if _INDEX not in self._files:
            raise CatalogError(
                "not-found",
                "This installation lacks the files of the web console.",
                hint="Run `make console` in the source tree, then start the server again.",
            )
        path = _REFERENCE if scope["path"] == REFERENCE else scope["path"].removeprefix(HOME)
        if path not in self._files:
            # The index in place of a script would be a white page without a word.
            if path.startswith(_ASSETS) or not _wants_a_page(Headers(scope=scope)):
                raise HTTPException(404)
            path = _INDEX
        lasting = "public, max-age=31536000, immutable" if path.startswith(_ASSETS) else "no-cache"
        file = self._files[path]
        headers = {**_HEADERS, "Cache-Control": lasting}
        await FileResponse(file, headers=headers, media_type=_TYPES[file.suffix])(scope, receive, send)


@functools.cache
def _found(directory: Path) -> Mapping[str, Path]:
    """The files below a directory, by their paths in it; looked for once in a process."""
    found = (path for path in directory.rglob("*") if path.suffix in _TYPES and path.is_file())
    return {path.relative_to(directory).as_posix(): path for path in found}


def _wants_a_page(headers: Headers) -> bool:
    return "text/html" in headers.get("accept", "")

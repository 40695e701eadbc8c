"""Which server to talk to: flag, then environment, then the ``leat dev`` that runs in this directory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DATA_DIRECTORY = ".leatstream"
READY_FILE = "ready.json"


class NoServer(Exception):
    """No server was named and none was found."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the service is.

    Attributes:
        url: base URL without a trailing slash.
        token: bearer token, never printed; None sends no Authorization header.
        origin: where the URL came from, for messages.
    """

    url: str
    token: str | None
    origin: str

    def __repr__(self) -> str:
        return f"Connection(url={self.url!r}, origin={self.origin!r})"


def find_connection(
    url: str | None = None, environment: Mapping[str, str] | None = None, directory: Path | None = None
) -> Connection:
    """Work out the server.

    Args:
        url: what the flag says.
        environment: LEATSTREAM_URL and LEATSTREAM_TOKEN are read from it; the process's own when not given.
        directory: where to look for a running ``leat dev``, upwards; the current one when not given.

    Raises:
        NoServer: nothing names a server.
    """
    environment = os.environ if environment is None else environment
    ready = find_ready(directory or Path.cwd())
    named = url or environment.get("LEATSTREAM_URL")
    token = environment.get("LEATSTREAM_TOKEN") or None
    if named:
        base = named.rstrip("/")
        if token is None and ready is not None and ready[1]["url"].rstrip("/") == base:
            token = ready[1].get("token")  # only for the very server it was made for
        return Connection(base, token, "--url" if url else "LEATSTREAM_URL")
    if ready is not None:
        path, body = ready
        return Connection(body["url"].rstrip("/"), token or body.get("token"), str(path))
    raise NoServer("No server: set LEATSTREAM_URL and LEATSTREAM_TOKEN, or start one here with `leat dev`.")


def find_ready(directory: Path) -> tuple[Path, dict[str, str]] | None:
    """The ready file of a live ``leat dev`` in this directory or above, with its contents."""
    for folder in (directory, *directory.parents):
        path = folder / DATA_DIRECTORY / READY_FILE
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
            alive = _is_alive(int(body["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if alive and isinstance(body.get("url"), str):
            return path, body
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True

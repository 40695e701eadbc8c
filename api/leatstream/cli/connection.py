"""Which server to talk to: flag, then environment, then the ``leat dev`` that runs in this directory."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from leatstream.dev.ready_file import READY_FILE

DATA_DIRECTORY = ".leatstream"


class NoServer(Exception):
    """No server was named and none was found, or what was named cannot be used."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the service is.

    Attributes:
        url: base URL without a trailing slash.
        token: bearer token, never printed; None sends no Authorization header.
        origin: where the URL came from, for messages.
        renew: gives the token at each request, in place of ``token``, and another one than the refused one
            that it is given.
    """

    url: str
    token: str | None
    origin: str
    renew: Callable[[str], str] | None = None

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
        NoServer: nothing names a server, or not with a URL and a token that can be sent.
    """
    environment = os.environ if environment is None else environment
    directory = directory or Path.cwd()
    named = (url or environment.get("LEATSTREAM_URL") or "").strip()
    token = _token_of(environment)
    if named:
        base = named.rstrip("/")
        _check_url(base, "--url" if url else "LEATSTREAM_URL")
        if token is None:
            token = _token_for(base, directory)
        return Connection(base, token, "--url" if url else "LEATSTREAM_URL")
    ready = find_ready(directory)
    if ready is not None:
        path, body = ready
        found = body["url"].rstrip("/")
        if token is not None:
            # The author of the directory, such as a cloned repository, chose the address.
            raise NoServer(
                "LEATSTREAM_TOKEN is set, but LEATSTREAM_URL is not, and the token is not sent to the "
                f"address that {path} names. Set LEATSTREAM_URL too, or unset LEATSTREAM_TOKEN to use that "
                "server."
            )
        _check_url(found, str(path))
        return Connection(found, body.get("token"), str(path))
    raise NoServer("No server: set LEATSTREAM_URL and LEATSTREAM_TOKEN, or start one here with `leat dev`.")


def _token_of(environment: Mapping[str, str]) -> str | None:
    """The token without the end of line that files leave behind it; no part of it may be in a message."""
    token = environment.get("LEATSTREAM_TOKEN", "").strip()
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise NoServer(
            "LEATSTREAM_TOKEN is not a token: it has blanks, line ends or letters beyond ASCII in it. "
            "Copy the whole token, as it was shown when it was made, and nothing else."
        )
    return token or None


def _check_url(url: str, origin: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and _is_host(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:  # the port, or an address of IPv6
        raise NoServer(_no_url(url, origin)) from None
    if parts.username is not None:  # with a password, which is not to be shown
        raise NoServer(f"The URL of {origin} names a user: leave that out, and set LEATSTREAM_TOKEN.")
    if not usable:
        raise NoServer(_no_url(url, origin))


def _is_host(name: str | None) -> bool:
    """Whether it can be asked for at all; names beyond ASCII are sent in another form."""
    try:
        return bool(name) and str(name).encode("idna").decode().isprintable()
    except UnicodeError:
        return False


def _no_url(url: str, origin: str) -> str:
    like = "write it like http://127.0.0.1:8585 or https://leatstream.example.com"
    shown = "What stands there" if "@" in url else repr(url)  # a password may stand before it
    return f"{shown} ({origin}) is not the URL of a server: {like}."


def _token_for(url: str, directory: Path) -> str | None:
    """The token of the ``leat dev`` here, only for the very server it was made for."""
    try:
        ready = find_ready(directory)
    except NoServer:  # a file that is not one's own reveals nothing, and is not used
        return None
    return ready[1].get("token") if ready is not None and ready[1]["url"].rstrip("/") == url else None


def find_ready(directory: Path) -> tuple[Path, dict[str, str]] | None:
    """The ready file of a live ``leat dev`` in this directory or above, with its contents.

    Raises:
        NoServer: one that ``leat dev`` of this account cannot have written.
    """
    for folder in (directory, *directory.parents):
        path = folder / DATA_DIRECTORY / READY_FILE
        try:
            with path.open(encoding="utf-8") as stream:
                _check_owner(path, os.fstat(stream.fileno()))
                body = json.load(stream)
            alive = _is_alive(int(body["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if alive and isinstance(body.get("url"), str) and isinstance(body.get("token"), str | None):
            return path, body
    return None


def _check_owner(path: Path, found: os.stat_result) -> None:
    """NoServer for a file that may come from somebody else: with a repository, or from a shared directory."""
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        wrong = "it belongs to another user"
    elif mode & 0o077:
        wrong = f"its mode is {mode:04o}, and `leat dev` makes it with 0600"
    else:
        return
    raise NoServer(
        f"{path} is not used: {wrong}, so it may name a stranger's server. "
        "Set LEATSTREAM_URL and LEATSTREAM_TOKEN, or start a server here with `leat dev`."
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True

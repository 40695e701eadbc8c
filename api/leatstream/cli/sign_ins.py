"""The tokens of ``leat login``, by server, in a file that only its owner may read."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs

from leatstream.cli.connection import Connection, NoServer
from leatstream.cli.own_files import open_own
from leatstream.errors import AccessError

_EARLY = 30.0  # seconds before its end in which a token is renewed


def sign_ins_file() -> Path:
    """Where tokens are kept."""
    return Path(platformdirs.user_state_dir("leatstream", appauthor=False)) / "sign_ins.json"


def keep(url: str, entry: dict[str, Any] | None) -> None:
    """Keep the sign-in to a server, or forget it.

    Args:
        url: of the server.
        entry: what ``SignIn`` needs; None forgets it.
    """
    with _locked():
        _write(url, entry)


def find(url: str) -> dict[str, Any] | None:
    """The sign-in to a server; None if there is none.

    Raises:
        NoServer: the file cannot be used.
    """
    found = _read().get(url)
    return found if isinstance(found, dict) else None


def signed_in(connection: Connection) -> Connection:
    """The connection, with the token of ``leat login`` if it has no other one."""
    if connection.token is not None or find(connection.url) is None:
        return connection
    return replace(connection, renew=Renewal(connection.url))


class Renewal:
    """Gives the token of a sign-in, and renews it before it ends; threads may share it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._token, self._expires_at = "", 0.0

    def __call__(self, refused: str = "") -> str:
        """The token.

        Args:
            refused: the server does not accept it, whatever this machine's clock says of its end.

        Raises:
            AccessError: unauthenticated, the sign-in has ended.
            IdentityError: issuer-unreachable.
        """
        with self._lock:
            if self._token == refused or time.time() > self._expires_at - _EARLY:
                entry = self._current(refused)
                self._token, self._expires_at = entry["token"], entry["expires_at"]
            return self._token

    def _current(self, refused: str) -> dict[str, Any]:
        # A refresh token may serve once only, so processes take turns.
        with _locked():
            entry = find(self._url)
            if entry is None:
                raise self._ended()
            if entry["token"] == refused or time.time() > entry["expires_at"] - _EARLY:
                entry = self._renewed(entry)
                _write(self._url, entry)
            return entry

    def _renewed(self, entry: dict[str, Any]) -> dict[str, Any]:
        from leatstream.identity.provider import Provider

        if not entry.get("refresh_token"):
            raise self._ended()
        try:
            tokens = Provider(entry["sign_in"]).refreshed(entry["refresh_token"])
        except AccessError as error:
            raise self._ended() from error
        return entry_of(entry["sign_in"], tokens.bearer, tokens.expires_at, tokens.refresh)

    def _ended(self) -> AccessError:
        return AccessError(
            "unauthenticated", f"Your sign-in to {self._url} has ended.", hint="Run leat login again."
        )


def entry_of(
    sign_in: dict[str, Any], token: str, expires_at: float, refresh_token: str | None
) -> dict[str, Any]:
    """What is kept of a sign-in.

    Args:
        sign_in: answer of ``GET /v1/sign-in``.
        token: for the server.
        expires_at: when it ends, seconds since 1970.
        refresh_token: gets the next one.
    """
    return {
        "sign_in": sign_in,
        "token": token,
        "expires_at": expires_at,
        "refresh_token": refresh_token,
    }


@contextmanager
def _locked() -> Iterator[None]:
    """Hold the file against other processes; the kernel lets go of it with its holder."""
    path = sign_ins_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = open_own(path.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT)
    except OSError as error:
        raise _unusable(path, error) from error
    with os.fdopen(descriptor, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _read() -> dict[str, Any]:
    path = sign_ins_file()
    try:
        with os.fdopen(open_own(path, os.O_RDONLY), encoding="utf-8") as stream:
            found = json.load(stream)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from error
    return found if isinstance(found, dict) else {}


def _write(url: str, entry: dict[str, Any] | None) -> None:
    path, whole = sign_ins_file(), _read()
    whole.pop(url, None)
    if entry is not None:
        whole[url] = entry
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with os.fdopen(open_own(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            json.dump(whole, file)
        fresh.replace(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: Exception) -> NoServer:
    reason = (error.strerror if isinstance(error, OSError) else None) or "it is no JSON of leat login"
    return NoServer(
        f"{path}, where leat login keeps tokens, cannot be used: {reason}. Delete it, and sign in again."
    )

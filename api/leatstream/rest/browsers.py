"""What a browser sends, cookies and signs of the page that sent a request, and where it finds this server."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Scope

from leatstream.errors import AccessError
from leatstream.services.environment import Environment

# A page elsewhere cannot send it: browsers ask first, and this server permits no other origin.
MARK = "X-Leatstream-Console"
SESSION, SIGN_IN = "leat-session", "leat-sign-in"
_SAFE = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where browsers find this server.

    Attributes:
        url: scheme, host and port, as browsers write it in ``Origin``.
        secure: whether it has TLS.
        loopback: whether it is the browser's own machine.
    """

    url: str
    secure: bool
    loopback: bool

    @property
    def may_sign_in(self) -> bool:
        """Whether cookies are safe there."""
        return self.secure or self.loopback

    def name(self, cookie: str) -> str:
        """The full name of a cookie; browsers keep the cookies of all ports of a host together."""
        return f"__Host-{cookie}" if self.secure else f"{cookie}-{urlsplit(self.url).port or 80}"


def origin_of(env: Environment, scope: Scope) -> Origin:
    """The server's origin: as it is configured, else as the request says.

    The scheme of a proxy counts only where uvicorn trusts the proxy (``X-Forwarded-Proto``).
    """
    scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
    url = env.settings.public_url or f"{scheme}://{Headers(scope=scope).get('host', '')}".lower()
    url = url.removesuffix(":443" if url.startswith("https://") else ":80")  # browsers do not write these
    try:
        parts = urlsplit(url)
        plain = bool(parts.hostname) and parts.netloc.isascii() and "@" not in url and (parts.port or 1) > 0
        host = (parts.hostname or "") if plain else ""
    except ValueError:
        host = ""
    secure = bool(host) and url.startswith("https://")
    return Origin(url, secure, not secure and _is_loopback(host))


def session_of(env: Environment, scope: Scope) -> str | None:
    """The value of the session's cookie; None without one."""
    origin = origin_of(env, scope)
    return cookie_of(scope, origin.name(SESSION)) if origin.may_sign_in else None


def cookie_of(scope: Scope, name: str) -> str | None:
    """The value of a cookie; None without one."""
    # Not by http.cookies: there one cookie of another program on this host hides all of them.
    found = HTTPConnection(scope).cookies.get(name)
    return found if found is not None and found.isascii() else None


def require_own_page(env: Environment, scope: Scope) -> None:
    """Let a request with a session's cookie pass if a page of this server has sent it.

    Args:
        env: the environment.
        scope: of the request.

    Raises:
        AccessError: permission-denied.
    """
    headers = Headers(scope=scope)
    site, origin, marked = headers.get("sec-fetch-site"), headers.get("origin"), MARK in headers
    foreign = site not in (None, "same-origin") or origin not in (None, origin_of(env, scope).url)
    if scope["type"] == "websocket":
        unmarked = origin is None  # pages cannot send the header with it
    else:
        unmarked = not marked and (scope["method"] not in _SAFE or (site is None and origin is None))
    if foreign or unmarked:
        raise AccessError(
            "permission-denied",
            "The session of a browser counts only for requests of the console's own pages.",
            hint=f"Send a token in the header Authorization. A page of this server sends {MARK}: 1.",
        )


def set_cookie(answer: Response, origin: Origin, cookie: str, value: str, seconds: float) -> None:
    """Give the browser a cookie that no script can read.

    Args:
        answer: that carries it.
        origin: of the server.
        cookie: ``SESSION``, or ``SIGN_IN``, which must come back with a redirect from elsewhere.
        value: empty deletes it.
        seconds: how long it is kept.
    """
    answer.set_cookie(
        origin.name(cookie),
        value,
        max_age=int(seconds) if value else 0,
        path="/",
        secure=origin.secure,
        httponly=True,
        samesite="strict" if cookie == SESSION else "lax",
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

"""Reads JSON documents of identity providers, within bounds of time and size."""

from __future__ import annotations

import json
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from leatstream.identity.settings import is_loopback

if TYPE_CHECKING:
    import httpx2

SECONDS = 5.0  # for all documents of one look-up
_MAX_BYTES = 512 * 1024


class Unfetchable(Exception):
    """A document cannot be had; the text says why, for people."""


def fetch_object(url: str, deadline: float, ca_file: Path | None) -> dict[str, Any]:
    """The JSON object at a URL; redirects are not followed.

    Args:
        url: of the document.
        deadline: by ``time.monotonic``.
        ca_file: authority to trust; None = the machine's.

    Raises:
        Unfetchable: there is no such answer in time.
    """
    import httpx2

    left = deadline - time.monotonic()
    if left <= 0:
        raise Unfetchable(f"{url} did not answer in time")
    try:
        client = httpx2.Client(timeout=left, follow_redirects=False, **reach(url, ca_file))
        with client, client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
            if answer.status_code != 200:
                raise Unfetchable(f"{url} answered with status {answer.status_code}")
            text = read_bounded(answer, url, deadline)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise Unfetchable(f"{url} cannot be read: {str(error) or type(error).__name__}") from error
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unfetchable(f"{url} is not a JSON object")
    return found


def discovery_document(issuer: str, deadline: float, ca_file: Path | None) -> dict[str, Any]:
    """The discovery document of an issuer.

    Args:
        issuer: its URL, which the document must name.
        deadline: by ``time.monotonic``.
        ca_file: authority to trust; None = the machine's.

    Raises:
        Unfetchable: there is no such document in time.
    """
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = fetch_object(url, deadline, ca_file)
    if document.get("issuer") != issuer:
        raise Unfetchable(f"{url} names another issuer")
    return document


def reach(url: str, ca_file: Path | None = None) -> dict[str, Any]:
    """Options of a client for a URL.

    Args:
        url: with http only if it is of this machine.
        ca_file: authority to trust; None = the machine's.
    """
    parts = urlsplit(url)
    if parts.scheme == "http" and is_loopback(parts.hostname):
        # There is no certificate to verify, and to read the authorities takes 0.1 s. No proxy is asked.
        return {"verify": False, "trust_env": False}
    return {"verify": ssl.create_default_context(cafile=str(ca_file)) if ca_file is not None else True}


def read_bounded(answer: httpx2.Response, url: str, deadline: float) -> bytes:
    """The body of an answer, within bounds of time and size.

    Args:
        answer: whose body has not been read.
        url: that was asked, for the message.
        deadline: by ``time.monotonic``.

    Raises:
        Unfetchable: it is too large, or was not read in time.
    """
    text = b""
    for piece in answer.iter_bytes():
        text += piece
        if len(text) > _MAX_BYTES:
            raise Unfetchable(f"{url} is larger than {_MAX_BYTES // 1024} KiB")
        if time.monotonic() > deadline:
            raise Unfetchable(f"{url} was not read in time")
    return text

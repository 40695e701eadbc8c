"""The public keys of one issuer, read over the network and kept for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from leatstream.errors import IdentityError
from leatstream.identity.fetching import SECONDS, Unfetchable, discovery_document, fetch_object
from leatstream.identity.settings import Issuer, is_safe_url

FRESH = 600.0  # seconds; then they are read again
STALE = 3600.0  # they serve so long if the issuer is unreachable
AGAIN = 60.0  # between two looks for a key that is missing
_AFTER_FAILURE = 10.0
_LEAST_RSA_BITS = 2048
_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}


@dataclass(frozen=True, slots=True)
class _Known:
    keys: tuple[Key, ...] = ()
    read_at: float = float("-inf")


class IssuerKeys:
    """Keys by id. Requests that find theirs wait for nobody."""

    def __init__(self, issuer: Issuer, now: Callable[[], float] = time.monotonic) -> None:
        self._issuer, self._now = issuer, now
        self._known = _Known()
        self._lock = threading.Lock()
        self._next_look = float("-inf")
        self._failure: str | None = None

    def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """The key that signed a token; None if the issuer has none of this id.

        Args:
            key_id: the header ``kid``; None = the issuer's only key for the algorithm.
            algorithm: the header ``alg``.

        Raises:
            IdentityError: issuer-unreachable.
        """
        found = self._choose(key_id, algorithm)
        if found is not None and self._age() < FRESH:
            return found
        # Somebody else may be reading them already; only those without a key wait for it.
        if not self._lock.acquire(blocking=found is None):
            return found
        try:
            if self._now() >= self._next_look and (
                self._choose(key_id, algorithm) is None or self._age() >= FRESH
            ):
                self._look()
        finally:
            self._lock.release()
        found = self._choose(key_id, algorithm)
        if found is None and self._failure is not None:
            raise IdentityError(
                "issuer-unreachable",
                f"The keys of issuer {self._issuer.issuer} cannot be read: {self._failure}.",
                hint="Try again. If it stays so, check the issuer and the network between it and the server.",
            )
        return found

    def _age(self) -> float:
        return self._now() - self._known.read_at

    def _choose(self, key_id: str | None, algorithm: str) -> Key | None:
        if self._age() >= STALE:
            return None
        fit = [key for key in self._known.keys if key.key_type == _KINDS[algorithm[:2]]]
        fit = [key for key in fit if key.alg in (None, algorithm)]
        if key_id is None:
            return fit[0] if len(fit) == 1 else None
        return next((key for key in fit if key.kid == key_id), None)

    def _look(self) -> None:
        try:
            self._known = _Known(self._read(), self._now())
            self._failure = None
        except Unfetchable as failure:
            self._failure = str(failure)
        usable = self._age() < STALE
        self._next_look = self._now() + (AGAIN if usable else _AFTER_FAILURE)

    def _read(self) -> tuple[Key, ...]:
        deadline, trust = time.monotonic() + SECONDS, self._issuer.ca_file
        url = self._issuer.jwks_url or self._discovered(deadline)
        listed = fetch_object(url, deadline, trust).get("keys")
        keys = tuple(key for one in (listed if isinstance(listed, list) else ()) if (key := _key(one)))
        if not keys:
            raise Unfetchable(f"{url} lists no key that can verify a signature")
        return keys

    def _discovered(self, deadline: float) -> str:
        issuer = self._issuer.issuer
        found = discovery_document(issuer, deadline, self._issuer.ca_file).get("jwks_uri")
        if not isinstance(found, str) or not is_safe_url(found.partition("?")[0]):
            raise Unfetchable(f"the discovery document of {issuer} names no jwks_uri with https")
        return found


def _key(listed: Any) -> Key | None:
    """A key for signatures; None for others, of which an issuer may list some."""
    if not isinstance(listed, dict) or listed.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    if listed.get("use", "sig") != "sig":
        return None
    try:
        key = JWKRegistry.import_key(listed)
        if isinstance(key, RSAKey) and key.public_key.key_size < _LEAST_RSA_BITS:
            return None
        return key if isinstance(key, RSAKey | ECKey | OKPKey) else None
    except (JoseError, ValueError, TypeError, KeyError):
        return None

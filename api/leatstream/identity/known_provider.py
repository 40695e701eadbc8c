"""The identity provider of people as the server knows it: its discovery document is kept for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from leatstream.errors import IdentityError, no_provider
from leatstream.identity.settings import Issuer
from leatstream.ports import SignIn

if TYPE_CHECKING:
    from leatstream.identity.provider import Provider

FRESH = 600.0  # seconds; then its document is read again
AFTER_FAILURE = 5.0  # anybody can begin a sign-in, so an unreachable provider is not asked at each one


class KnownProvider:
    """The one issuer that has a ``client_id``."""

    def __init__(self, issuers: Sequence[Issuer], now: Callable[[], float] = time.monotonic) -> None:
        self._issuer = next((one for one in issuers if one.client_id is not None), None)
        self._now = now
        self._known: tuple[Provider | IdentityError, float] | None = None

    @property
    def sign_in(self) -> SignIn | None:
        """Where people sign in; None if there is no such issuer."""
        one = self._issuer
        if one is None or one.client_id is None:
            return None
        return SignIn(one.issuer, one.client_id, one.audience, one.scopes)

    @property
    def command_line(self) -> SignIn | None:
        """Where ``leat login`` signs in, with a public client: a person's machine keeps no secret of it."""
        found, one = self.sign_in, self._issuer
        if found is None or one is None or (one.has_secret and one.cli_client_id is None):
            return None
        return replace(found, client_id=one.cli_client_id or found.client_id)

    def get(self) -> Provider:
        """The provider.

        Raises:
            CatalogError: not-found, there is no such issuer.
            IdentityError: issuer-unreachable.
        """
        known = self._known
        if known is None or self._now() > known[1]:
            known = self._known = self._read()
        if isinstance(known[0], IdentityError):
            raise IdentityError(known[0].code, known[0].detail, hint="Try again in some seconds.")
        return known[0]

    def _read(self) -> tuple[Provider | IdentityError, float]:
        from leatstream.identity.client_secret import ClientSecret
        from leatstream.identity.provider import Provider  # with its HTTP client, which others need not load

        found, issuer = self.sign_in, self._issuer
        if found is None or issuer is None:
            raise no_provider()
        try:
            client = ClientSecret(issuer.client_secret) if issuer.has_secret else None
            sign_in = {**asdict(found), "parameters": issuer.authorization_parameters}
            return Provider(sign_in, issuer.ca_file, client), self._now() + FRESH
        except IdentityError as error:
            return error, self._now() + AFTER_FAILURE

"""How a client with a secret proves itself at an identity provider's endpoints, by RFC 6749."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

from leatstream.errors import IdentityError, sentence

CORRECT_THE_SECRET = "The administrator can correct the client secret in LEATSTREAM_OIDC."  # noqa: S105 - a hint
_METHODS = "token_endpoint_auth_methods_supported"
_BASIC, _POST = "client_secret_basic", "client_secret_post"


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """The secret of the console's client.

    Attributes:
        read: gives the secret of this moment; ValueError if there is none.
    """

    read: Callable[[], str] = field(repr=False)

    def prove(
        self, issuer: str, client_id: str, document: Mapping[str, Any], form: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The form and headers of a request that the client proves itself in.

        Args:
            issuer: for messages.
            client_id: of the client.
            document: discovery document of the provider, which says how it wants the secret.
            form: of the request.

        Raises:
            IdentityError: issuer-unreachable, there is no secret, or the provider takes none.
        """
        try:
            secret = self.read()
        except ValueError as error:
            detail = sentence(str(error))
            raise IdentityError("issuer-unreachable", detail, hint=CORRECT_THE_SECRET) from None
        methods = document.get(_METHODS)
        # Discovery 1.0: a provider that names none takes the first.
        known = methods if isinstance(methods, list) else [_BASIC]
        if _BASIC in known:
            pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
            return dict(form), {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        if _POST in known:
            return {**form, "client_id": client_id, "client_secret": secret}, {}
        raise IdentityError(
            "issuer-unreachable",
            f"Issuer {issuer} takes client secrets neither as {_BASIC} nor as {_POST}.",
            hint="Register a public client, and set its client_id without a secret in LEATSTREAM_OIDC.",
        )

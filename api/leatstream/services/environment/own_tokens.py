"""A server that accepts its own tokens only."""

from __future__ import annotations

from leatstream.errors import AccessError, no_provider
from leatstream.ports import Identity, PeoplesProvider, SignIn


class OwnTokens:
    """No identity provider is configured (``ports.Identities``)."""

    def identify(self, token: str) -> Identity:
        """Refuse every JWT."""
        raise AccessError(
            "unauthenticated",
            "This server accepts no tokens of other issuers.",
            hint="Use a token that starts with leat_, or configure the issuer in LEATSTREAM_OIDC.",
        )

    def for_people(self) -> SignIn | None:
        """There is none."""
        return None

    def for_command_line(self) -> SignIn | None:
        """There is none."""
        return None

    def provider(self) -> PeoplesProvider:
        """There is none."""
        raise no_provider()

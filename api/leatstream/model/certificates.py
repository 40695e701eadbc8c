"""PEM texts of certificates: whether one can be read, and what trusts its authorities."""

from __future__ import annotations

import ssl


def trust_of(pem: str | None) -> ssl.SSLContext | bool:
    """What an HTTP client verifies a server by: these authorities, or with None the system's.

    Raises:
        ssl.SSLError: there is no certificate in the text, or one that cannot be read.
    """
    return True if pem is None else ssl.create_default_context(cadata=_plain(pem))


def is_certificate(pem: str) -> bool:
    """Whether a text is PEM of certificates that can be read."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=_plain(pem))
    except (ssl.SSLError, ValueError):
        return False
    return bool(context.get_ca_certs())


def _plain(pem: str) -> str:
    # Bundles have comments in any language between their certificates; ssl refuses to see a letter of them.
    return pem.encode("ascii", "replace").decode()

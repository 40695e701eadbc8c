"""Checks of values that the settings of several kinds share, for ``field_validator``."""

from __future__ import annotations

import ipaddress
import re

from pydantic import SecretStr
from pydantic_core import PydanticCustomError

HOST_PATTERN = r"^[A-Za-z0-9._:\[\]-]+$"
"""What a host looks like in REST's JSON schema; ``host_checked`` is exact."""
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+-----END CERTIFICATE-----\s*\Z", re.S)


def host_checked(value: str) -> str:
    """One host name or address, an address of IPv6 without its brackets; or the validation error."""
    bare = value.strip("[]")
    if len(value) > 255 or not (_HOST.match(bare) or _is_address(bare)):
        raise PydanticCustomError("host", "write one host name or address, without a scheme or a port")
    return bare


def certificate_checked(value: str | None) -> str | None:
    """PEM text of certificates, or the validation error that says what to write."""
    if value is not None and not _PEM.search(value.strip()):
        raise PydanticCustomError("pem", "write the certificate itself as PEM text, not a file name")
    return value


def password_checked(value: SecretStr | None) -> SecretStr | None:
    """A password that a database's client can send, or the validation error."""
    text = None if value is None else value.get_secret_value()
    if text is not None and (not text or "\x00" in text):
        raise PydanticCustomError("secret", "a password is not empty and has no NUL")
    return value


def host_and_port(host: str, port: int) -> str:
    """``host:port``, with brackets around an address of IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

"""What the providers have in common: bounds, members of JSON texts, the words of their errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leatstream.errors import SecretStoreError, sentence

MOST_BYTES = 100_000  # as of a secret that is given by value
SECONDS = 3.0  # for one call; a driver waits ten for all its values


def member(text: str, key: str | None, where: str) -> str:
    """The text, or a member of the JSON object that it is.

    Args:
        text: as the secret store has it.
        key: of the member; None = the whole text.
        where: the text is, for people.

    Raises:
        SecretStoreError: secret-missing; no part of the text is quoted.
    """
    if key is None:
        return filled(text, where)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise missing(f"{where} is not a JSON object, so it has no key {key!r}")
    return chosen(found, key, where)


def chosen(values: dict[str, Any], key: str, where: str) -> str:
    """The value of a key; numbers and booleans as JSON writes them.

    Args:
        values: of the secret.
        key: that is wanted.
        where: the secret is, for people.

    Raises:
        SecretStoreError: secret-missing.
    """
    if key not in values or values[key] is None:
        raise missing(f"{where} has no key {key!r}")
    value = values[key]
    return filled(value if isinstance(value, str) else json.dumps(value), f"Key {key!r} of {where}")


def filled(text: str, where: str) -> str:
    """The text; SecretStoreError secret-missing if it is empty, too long or has half a character."""
    if not text:
        raise missing(f"{where} is empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise missing(f"{where} is not a text in UTF-8") from None
    if size > MOST_BYTES:
        raise missing(f"{where} is larger than {MOST_BYTES // 1000} kB")
    return text


def decoded(data: bytes, where: str) -> str:
    """Bytes as text; SecretStoreError secret-missing if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise missing(f"{where} is not a text in UTF-8") from None


def credential(path: Path, whose: str) -> str:
    """The text of a file with a credential of the server's own.

    Args:
        path: from the setting.
        whose: for people, such as ``Vault``.

    Raises:
        SecretStoreError: secret-store-refused.
    """
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise refused(f"The credential for {whose} in {path} cannot be read: {_why(error)}") from None
    if not found.isprintable() or not found.isascii() or not found:
        raise refused(f"The credential for {whose} in {path} is not one line of ASCII text")
    return found


def missing(detail: str) -> SecretStoreError:
    """The error of a value that is not there."""
    return SecretStoreError(
        "secret-missing", sentence(detail), hint="Create the value, or correct the reference."
    )


def refused(detail: str, hint: str | None = None) -> SecretStoreError:
    """The error of a secret store that does not let the server in."""
    more = hint or "Give the server's identity the right to read this secret."
    return SecretStoreError("secret-store-refused", sentence(detail), hint=more)


def unreachable(detail: str) -> SecretStoreError:
    """The error of a secret store that does not answer."""
    hint = "Check the address and the network; queries that need the value try again."
    return SecretStoreError("secret-store-unreachable", sentence(detail), hint=hint)


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__

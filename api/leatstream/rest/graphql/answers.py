"""Answers as bytes. Values of rows are JSON text of others, which is sent as it came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from graphql import GraphQLError


def encode(data: Any, errors: Sequence[GraphQLError] | None) -> bytes:
    """An answer with its data, and its errors if there are any."""
    body: dict[str, Any] = {"data": data}
    if errors:
        body["errors"] = [error.formatted for error in errors]
    return encode_message(body)


def encode_message(body: Any) -> bytes:
    """Any message as JSON."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot hold
        return json.dumps(body, default=_plain).encode()


def _plain(value: Any) -> Any:
    return json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else str(value)

"""Terraform values as Python values, and back.

A value is None, bool, int, float, str, list, dict or ``UNKNOWN``. On the wire it is msgpack in which an
unknown value is extension type 0 (12 when Terraform adds what it knows about the unknown value), every
attribute of an object is present, and a number may come as integer, float or decimal string.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgpack

Path = tuple[str | int, ...]
_REFINED_UNKNOWN = 12


class Key(str):
    """A step into a map, as opposed to an attribute's name."""

    __slots__ = ()


class Unknown:
    """A value that Terraform learns only during apply. There is one instance, ``UNKNOWN``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("an unknown value is neither true nor false; test it with `is UNKNOWN`")

    def __deepcopy__(self, memo: dict[int, Any]) -> Unknown:
        return self


UNKNOWN: Final = Unknown()


def decode(data: bytes) -> Any:
    """Read one msgpack value; empty bytes are null.

    Raises:
        ValueError: the bytes are not one msgpack value.
    """
    if not data:
        return None
    return msgpack.unpackb(data, ext_hook=_extension, strict_map_key=False, raw=False)


def _extension(code: int, data: bytes) -> Any:
    if code in (0, _REFINED_UNKNOWN):
        return UNKNOWN
    raise ValueError(
        f"Terraform sent a value of msgpack extension type {code}, which protocol 6 does not define"
    )


def encode(value: Any) -> bytes:
    """Write one value as msgpack. Objects must be complete already (``schema.complete``)."""
    return bytes(msgpack.packb(value, default=_default, use_bin_type=True))


def _default(value: Any) -> Any:
    if isinstance(value, Unknown):
        return msgpack.ExtType(0, b"\x00")
    raise TypeError(f"{type(value).__name__} is not a Terraform value")


def number(value: Any) -> int | float:
    """Read a number as Terraform or JSON may write it; whole numbers become int, so that 6 and 6.0 are equal.

    Raises:
        ValueError: the value is not a number.
    """
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not a number")
    if isinstance(value, int):
        return value
    try:
        exact = Decimal(str(value))
        return int(exact) if exact == exact.to_integral_value() else float(exact)
    except (InvalidOperation, OverflowError) as problem:
        raise ValueError(f"{value!r} is not a number") from problem


def has_unknown(value: Any) -> bool:
    """Tell whether any part of a value is unknown."""
    if value is UNKNOWN:
        return True
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return False

"""Columns of Arrow as a table takes them: nothing is rounded, cut or wrapped on its way.

ClickHouse itself would keep the nearest day of a column's range, and the last digits of a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from leatstream.connectors.clickhouse.types import bare, base_of, digits_of

if TYPE_CHECKING:
    import pyarrow as pa

_DAY = 86_400
# First and last day since 1970, and second: what the types hold.
_DAYS = {"Date": (0, 65_535), "Date32": (-25_567, 120_529)}
_SECONDS = {"DateTime": (0, 2**32 - 1), "DateTime64": (-25_567 * _DAY, 120_530 * _DAY - 1)}
# Nanoseconds of 64 bits end before the year 2263.
_LAST_NANO = (2**63 - 1) // 10**9 - 1
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_WHOLE = re.compile(r"(U?)Int(8|16|32|64)\Z")
_RANGE = "it is out of the range of {}"


class ValueFaultError(ValueError):
    """A value that a column cannot hold; nothing of it says which value.

    Attributes:
        why: what is wrong with it.
        column: whose value it is, where that is known.
    """

    def __init__(self, why: str, column: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.column = column


@dataclass(frozen=True, slots=True)
class Taker:
    """A column of a table that values are written to.

    Attributes:
        native: its type, without ``Nullable``.
        not_null: whether it is not ``Nullable``.
    """

    name: str
    native: str
    not_null: bool

    def taken(self, values: pa.Array, unset: pa.Array | None = None) -> pa.Array:
        """The values in the column's own type.

        Args:
            values: of one batch.
            unset: true for rows whose values have no meaning, because they take back the row of a key.

        Raises:
            ValueFaultError: the column cannot hold one of them.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.not_null and values.null_count:
            nulls = values.is_null()
            if unset is not None:
                nulls = pc.and_not(nulls, unset)
            if pc.any(nulls).as_py():
                raise ValueFaultError("it is NULL, and the column is not Nullable")
        _check(values, self.native)
        try:
            fitted = values.cast(arrow_type(self.native))
        except pa.ArrowInvalid:
            raise ValueFaultError(_RANGE.format(self.native)) from None
        return _filled(fitted, self.native) if self.not_null and fitted.null_count else fitted


def _filled(values: pa.Array, native: str) -> pa.Array:
    """Values without NULL, for rows that are not looked at."""
    import pyarrow as pa

    name, _ = base_of(native)
    empty: Any = [] if name in ("Array", "Map") else None
    if empty is None:
        some = values.drop_null()
        # Any value that the column can hold; an Enum has no common one.
        empty = some[0].as_py() if len(some) else _empty(native, values.type)
    return pa.array([empty if one is None else one for one in values.to_pylist()], values.type)


def _empty(native: str, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if native.startswith("Enum"):
        return enum_names(native)[0]
    if native == "UUID":
        return "00000000-0000-0000-0000-000000000000"
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return "" if pa.types.is_string(kind) else b""
    if pa.types.is_date(kind):
        return date(1970, 1, 1)
    if pa.types.is_timestamp(kind):
        return datetime(1970, 1, 1)
    return False if pa.types.is_boolean(kind) else 0


def arrow_type(native: str) -> pa.DataType:
    """The type of Arrow that stands for a column's: ClickHouse converts it without a loss."""
    import pyarrow as pa

    name, parts = base_of(native)
    if name in ("Bool", "Float32", "Float64"):
        return {"Bool": pa.bool_(), "Float32": pa.float32(), "Float64": pa.float64()}[name]
    if name == "Decimal":
        precision, scale = int(parts[0]), int(parts[1])
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if whole := _WHOLE.match(name):
        return pa.type_for_alias(f"{'u' if whole[1] else ''}int{whole[2]}")
    if name in ("Int128", "Int256"):
        return pa.int64()
    if name in _DAYS:
        return pa.date32()
    if name in _SECONDS:
        return pa.timestamp(("s", "ms", "us", "ns")[-(-digits_of(native) // 3)])
    if name == "Array":
        return pa.list_(arrow_type(parts[0]))
    if name == "Map":
        return pa.map_(pa.string(), arrow_type(parts[1]))
    # Bytes too: ClickHouse's texts are bytes.
    return pa.binary() if name == "String" else pa.string()


def enum_names(native: str) -> list[str]:
    """The names of an ``Enum8`` or ``Enum16``."""
    found = (re.match(r"'((?:[^'\\]|\\.)*)'", part) for part in base_of(native)[1])
    return [re.sub(r"\\(.)", r"\1", one[1]) for one in found if one]


def _check(values: pa.Array, native: str) -> None:
    """See that each value is in the range of a column's type, where a cast would not.

    Raises:
        ValueFaultError: one is not.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    name, parts = base_of(native)
    if name in _DAYS:
        _between(values.cast(pa.date32()).cast(pa.int32()), *_DAYS[name], native)
    elif name in _SECONDS:
        _check_stamps(values, native)
    elif name == "UUID":
        if pc.any(pc.invert(pc.match_substring_regex(values, _UUID))).as_py():
            raise ValueFaultError("it is no UUID")
    elif name in ("Enum8", "Enum16"):
        known = pa.array([*enum_names(native), None], pa.string())
        if not pc.all(pc.is_in(values, known)).as_py():
            raise ValueFaultError("it is none of the column's Enum")
    elif name in ("Array", "Map") and not pa.types.is_string(values.type):
        inner, nullable = bare(parts[-1])
        items = values.flatten() if name == "Array" else pa.concat_arrays([values.items])
        if not nullable and items.null_count:
            raise ValueFaultError("it holds a NULL, and the column's elements are not Nullable")
        _check(items, inner)


def _check_stamps(values: pa.Array, native: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    name, _ = base_of(native)
    digits = digits_of(native)
    micros = values.cast(pa.timestamp("us")).cast(pa.int64())
    first, last = _SECONDS[name]
    last = min(last, _LAST_NANO) if digits > 6 else last
    _between(micros, first * 10**6, last * 10**6 + 999_999, native)
    step = 10 ** max(0, 6 - digits)
    if step > 1:
        whole = pc.multiply(pc.divide(micros, step), step)
        if not pc.all(pc.equal(whole, micros)).as_py():
            raise ValueFaultError(f"it has more digits of a second than {native}")


def _between(values: pa.Array, first: int, last: int, native: str) -> None:
    import pyarrow.compute as pc

    found = pc.min_max(values).as_py()
    if found["min"] is not None and not first <= found["min"] <= found["max"] <= last:
        raise ValueFaultError(_RANGE.format(native))

"""A table's rows as JSON, in the form that relations read (docs/sql/types.md)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from leatstream.connectors.clickhouse.names import quoted
from leatstream.connectors.clickhouse.types import base_of
from leatstream.connectors.clickhouse.values import ValueFaultError
from leatstream.model.types import DataType

Shape = Sequence[tuple[str, DataType, str]]
"""Name, the relation's type and the table's of each column."""
JSON_SETTINGS = {
    "output_format_json_quote_64bit_integers": 0,
    "output_format_json_quote_decimals": 1,
    "output_format_decimal_trailing_zeros": 0,
    "output_format_json_quote_denormals": 1,
    "output_format_json_validate_utf8": 0,
    "output_format_json_escape_forward_slashes": 0,
}
_BYTES = ("BYTES", "VARBINARY")
_NESTED = ("ARRAY", "MAP", "STRUCT")
_DENORMAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "-nan": "NaN"}


def selected(columns: Shape) -> str:
    """What a SELECT asks for: for each column an expression that ClickHouse writes as our JSON."""
    return ", ".join(_expression(quoted(name), kind, native) for name, kind, native in columns)


def _expression(name: str, kind: DataType, native: str) -> str:
    if kind.kind in _BYTES:
        return f"hex({name})"
    if kind.kind == "TIMESTAMP_LTZ":
        return f"concat(toString({name}, 'UTC'), 'Z')"
    if kind.kind in ("TIMESTAMP", "DATE"):
        return f"toString({name})"
    if kind.kind == "DOUBLE" and base_of(native)[0] == "Decimal":
        return f"toFloat64({name})"
    if kind.kind == "VARCHAR" and base_of(native)[0] not in ("Array", "Map", "Tuple"):
        return name if base_of(native)[0] == "String" else f"toString({name})"
    return name


def row_reader(columns: Shape) -> Callable[[bytes], dict[str, Any]]:
    """Makes of a line of JSONCompactEachRow the members of a row.

    The function raises ValueFaultError where a text is not UTF-8.
    """
    names = [name for name, _, _ in columns]
    texts = [i for i, (_, kind, native) in enumerate(columns) if _is_json(kind, native)]
    binaries = [i for i, (_, kind, _) in enumerate(columns) if kind.kind in _BYTES]
    floats = [i for i, (_, kind, _) in enumerate(columns) if kind.kind in ("FLOAT", "DOUBLE")]
    lists = [i for i, (_, kind, native) in enumerate(columns) if _is_list(kind, native)]

    def read(line: bytes) -> dict[str, Any]:
        try:
            values = json.loads(line)
        except UnicodeDecodeError:
            raise ValueFaultError("a text is not UTF-8, and only BYTES can hold it") from None
        for i in binaries:
            values[i] = None if values[i] is None else base64.b64encode(bytes.fromhex(values[i])).decode()
        for i in texts:
            values[i] = None if values[i] is None else _parsed(values[i])
        for i in lists:
            values[i] = json.dumps(values[i], ensure_ascii=False)
        for i in floats:
            if isinstance(values[i], str):
                values[i] = _DENORMAL.get(values[i], values[i])
        return dict(zip(names, values, strict=True))

    return read


def _is_json(kind: DataType, native: str) -> bool:
    """Whether a column holds the JSON text of an array, map or struct."""
    return kind.kind in _NESTED and base_of(native)[0] == "String"


def _is_list(kind: DataType, native: str) -> bool:
    """Whether a text is asked of a column that has parts."""
    return kind.kind == "VARCHAR" and base_of(native)[0] in ("Array", "Map", "Tuple")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # No array or object: the reader of the row finds a text there, and refuses it.
        return text

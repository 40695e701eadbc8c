"""Fields of CSV files as values of JSON, by the types of their columns.

What is no value of a column's type stays a text, which the decoder then refuses: the rules are in one place.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted

from leatstream.connectors.s3.layout import Layout
from leatstream.connectors.s3.options import FRACTIONS
from leatstream.formats.avro_files import NoRow
from leatstream.model.types import DataType

RowWriter = Callable[[Sequence[bytes | None]], bytes]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"})
_NESTED = frozenset({"ARRAY", "MAP", "STRUCT"})


class _Misfit(ValueError):
    """A field that no column has; its text says why."""


def row_writer(names: Sequence[str], layout: Layout, path: Mapping[str, str]) -> RowWriter:
    """What makes a row's fields, as pyarrow was given them, a JSON object, or a NoRow.

    An empty field is NULL, an empty text in quotes is a text.

    Args:
        names: of the fields.
        layout: the columns' types.
        path: columns that the file's place gives: what the file says of them counts, NULL too.
    """
    columns = [
        (f"{quoted(name)}:", _field_writer(layout.columns.get(name), layout.decimal_comma), name in path)
        for name in names
    ]

    def written(fields: Sequence[bytes | None]) -> bytes:
        found: list[str] = []
        for (head, write, null), given in zip(columns, fields, strict=True):
            if given is not None:
                try:
                    found.append(head + write(given))
                except (UnicodeDecodeError, _Misfit) as error:
                    why = error if isinstance(error, _Misfit) else "a value is not UTF-8"
                    told = f"column {json.loads(head[:-1])}: {why}"
                    return NoRow.of(told, _line(fields, layout.delimiter))
            elif null:
                found.append(f"{head}null")
        return ("{" + ",".join(found) + "}").encode()

    return written


def _line(fields: Sequence[bytes | None], delimiter: str) -> bytes:
    """A row of a file as it stood there, but for quotes that it did not need."""
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="").writerow(
        [(one or b"").decode() for one in fields]
    )
    return out.getvalue().encode("latin-1", "replace")


def _field_writer(kind: DataType | None, comma: bool) -> Callable[[bytes], str]:
    if kind is not None and kind.kind in FRACTIONS and comma:
        return lambda value: json_text(_with_point(_original(value)), kind)
    if kind is not None and kind.kind not in (*_NUMBERS, *_NESTED, "DECIMAL", "BOOLEAN"):
        return lambda value: quoted(_original(value))
    return lambda value: json_text(_original(value), kind)


def _original(value: bytes) -> str:
    """The text of a field, of which pyarrow was given the bytes as if they were Latin-1."""
    return value.decode() if value.isascii() else value.decode().encode("latin-1").decode()


def _with_point(text: str) -> str:
    if "." in text:
        raise _Misfit("a fraction has a point and no decimal comma")
    return text.replace(",", ".")


def json_text(text: str, kind: DataType | None) -> str:
    """The text of a field as JSON has a value of this type; what is none of it is a text, which does not fit.

    Where no type is declared, what looks like a number or a truth value is shown as one.
    """
    bare, word = text.strip(), kind.kind if kind is not None else ""
    number = word in _NUMBERS or word in ("DECIMAL", "")
    if number and _NUMBER.match(bare):
        return bare
    if word == "DECIMAL" and _DECIMAL.match(bare):
        return quoted(bare)
    if word in ("BOOLEAN", "") and bare.lower() in ("true", "false"):
        return bare.lower()
    return bare if word in _NESTED and _is_json(bare) else quoted(text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

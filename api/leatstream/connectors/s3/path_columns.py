"""Columns that a file's place gives: directories ``column=value``, as Hive, Spark and Athena write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from leatstream.connectors.s3.csv_fields import json_text
from leatstream.formats.avro_files import UnreadableFile
from leatstream.model.types import DataType

NOWHERE = "__HIVE_DEFAULT_PARTITION__"  # the directory of NULL
_EMPTY = re.compile(rb"\{\s*\}")


def path_members(path: str, columns: Mapping[str, DataType]) -> dict[str, str]:
    """The declared columns that the directories give, with their values as JSON has them.

    Args:
        path: of a file, below its entity's directory.
        columns: declared.

    Raises:
        UnreadableFile: one is given twice, or is no text in UTF-8.
    """
    found: dict[str, str] = {}
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        try:
            name, value = unquote(name, errors="strict"), unquote(value, errors="strict")
        except UnicodeDecodeError:
            raise UnreadableFile("the name of one of its directories is not UTF-8") from None
        if not equals or name not in columns:
            continue
        if name in found:
            raise UnreadableFile(f"two of its directories give column {name} a value")
        found[name] = "null" if value == NOWHERE else json_text(value, columns[name])
    return found


def with_members(values: Iterator[bytes], members: Mapping[str, str]) -> Iterator[bytes]:
    """The objects with these members, if they do not have them: of a member given twice the last counts."""
    if not members:
        return values
    front = ",".join(f"{json.dumps(name)}:{value}" for name, value in members.items()).encode()
    return (_with_front(value, front) for value in values)


def _with_front(value: bytes, front: bytes) -> bytes:
    if not value.startswith(b"{"):
        return value
    return b"{" + front + (b"" if _EMPTY.match(value) else b",") + value[1:]

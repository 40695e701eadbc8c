"""Columns as users write them, turned into the provider's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from leatstream_cdktf.l1 import StreamColumn

#: ``{"viewtime": "BIGINT NOT NULL"}``, or a list of ``{"name": …, "type": …, …}`` or ``(name, type)``.
Columns: TypeAlias = Mapping[str, str] | Sequence[StreamColumn | tuple[str, str]]

_NOT_NULL = re.compile(r"\s+NOT\s+NULL\s*\Z", re.IGNORECASE)
_KEYS = frozenset(StreamColumn.__annotations__)


def column_list(columns: Columns) -> list[StreamColumn]:
    """Columns in the provider's form, in the order given.

    Raises:
        ValueError: there are none, a name comes twice, or one has no name or type. All faults are reported at
            once.
    """
    items: Sequence[Any] = list(columns.items()) if isinstance(columns, Mapping) else list(columns)
    if not items:
        raise ValueError('columns is empty; give at least one, such as columns={"userid": "VARCHAR"}')
    result: list[StreamColumn] = []
    faults: list[str] = []
    for index, item in enumerate(items):
        try:
            result.append(_column(item))
        except ValueError as fault:
            faults.append(f"columns[{index}]: {fault}")
    names = [column["name"] for column in result]
    faults += [f"column {name!r} is given {names.count(name)} times" for name in dict.fromkeys(names)
               if names.count(name) > 1]  # fmt: skip
    if faults:
        raise ValueError("; ".join(faults))
    return result


def _column(item: Any) -> StreamColumn:
    if isinstance(item, Mapping):
        strangers = sorted(set(item) - _KEYS)
        if strangers:
            raise ValueError(
                f"unknown key {', '.join(map(repr, strangers))}; a column takes {', '.join(sorted(_KEYS))}"
            )
        column = dict(item)
    elif isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2:
        column = {"name": item[0], "type": item[1]}
    else:
        raise ValueError(f'{item!r} is not a column; write {{"name": "userid", "type": "VARCHAR"}}')
    for key in ("name", "type"):
        if not isinstance(column.get(key), str) or not column[key].strip():
            raise ValueError(f"{key} is {column.get(key)!r}; it must be text")
    if _NOT_NULL.search(column["type"]):
        column["type"] = _NOT_NULL.sub("", column["type"])
        column["not_null"] = True
    return cast(StreamColumn, column)

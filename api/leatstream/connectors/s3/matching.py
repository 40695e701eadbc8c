"""Whether a file has the declared columns: one that has none of them gives no rows, and says why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from leatstream.connectors.s3.layout import Layout
from leatstream.formats.avro_files import UnreadableFile
from leatstream.model.names import quote

_NAME = re.compile(r"[^\W\d][\w .$-]{0,39}\Z")
_MOST_SHOWN = 5
_DELIMITERS = {";": ";", "\t": "\\t", "|": "|", ",": ","}


def check_columns(found: Sequence[str], columns: Iterable[str], path: Mapping[str, str]) -> None:
    """Compare the names of a file's columns with the declared ones.

    Args:
        found: of the file.
        columns: declared; none = nothing is known.
        path: the columns that the file's place gives, which need not stand in it.

    Raises:
        UnreadableFile: the file has none of them, one twice, or one that differs in case or blanks.
    """
    wanted = list(columns)
    twice = [name for name in wanted if found.count(name) > 1]
    if twice:
        raise UnreadableFile(f"it has the column {twice[0]} twice")
    wanted = [name for name in wanted if name not in path]
    missing = [name for name in wanted if name not in found]
    alike = {_bare(name): name for name in found if name not in wanted}
    for name in missing:
        if _bare(name) in alike:
            there = alike[_bare(name)]
            raise UnreadableFile(
                f"it has {quote(there)} where the declared column is {name}; names are compared exactly, so "
                f"declare the column as {quote(there)}"
            )
    if wanted and len(missing) == len(wanted):
        raise UnreadableFile(f"it has none of the declared columns ({_shown(wanted)}), but {_found(found)}")


def check_header(first: Sequence[str], layout: Layout, path: Mapping[str, str]) -> None:
    """The same of the first line of a CSV file, with what people get wrong there."""
    try:
        check_columns(first, layout.columns, path)
    except UnreadableFile as error:
        raise UnreadableFile(f"by its first line {error}{_hint(first, layout)}") from None


def _hint(first: Sequence[str], layout: Layout) -> str:
    if any("\x00" in name for name in first):
        return "; it seems to be UTF-16, and what is read is UTF-8"
    if len(first) == 1:
        for sign, written in _DELIMITERS.items():
            if sign != layout.delimiter and sign in first[0]:
                return (
                    f"; it is one field with {written!r} in it: 's3.csv.delimiter'='{written}' may be meant"
                )
    if any(name in first for name in layout.columns):
        return ""
    return "; a file without a line of names is read with 's3.csv.header'='FALSE'"


def _bare(name: str) -> str:
    return name.strip().casefold()


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more


def _found(names: Sequence[str]) -> str:
    """What stands there, if it is names: without a header it would be somebody's data."""
    count = f"{len(names)} other column{'' if len(names) == 1 else 's'}"
    return f"{count} ({_shown(names)})" if names and all(map(_NAME.match, names)) else count

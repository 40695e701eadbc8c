"""Rows as JSON texts into a table of the session's own, some thousands with one statement.

A row is an array of texts, one for each column, so that no number passes through a JSON number. Snowflake
makes the values from them. That is done before the transaction that writes them: it holds its locks for a
shorter time, and a value that cannot be read is found before anything is locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.connectors.snowflake.entity import STAGED
from leatstream.connectors.snowflake.session import changed, run
from leatstream.connectors.snowflake.types import JSON, base_of, column_type
from leatstream.connectors.upper_names import quoted
from leatstream.connectors.writers import Written
from leatstream.errors import StoreError
from leatstream.model.types import parse_type

if TYPE_CHECKING:
    from snowflake.connector import SnowflakeConnection

NUMBER, DELETED = '"__LEAT_NUMBER"', '"__LEAT_DELETED"'
PIECE = 1024 * 1024
"""Bytes of JSON in one statement; a value that Snowflake parses has at most 16 MB."""
LARGEST = 16_000_000


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """A column as rows bring it.

    Attributes:
        kind: the relation's type, as a text.
        native: of the table's column.
    """

    name: str
    kind: str
    native: str

    @property
    def type(self) -> str:
        """Its type in the session's own table."""
        base, _ = base_of(self.native)
        if base == "VARCHAR":
            # Its length is left to the table: a cast would cut what is too long.
            return "VARCHAR"
        return "VARIANT" if base in JSON else column_type(parse_type(self.kind))

    def value(self, place: int) -> str:
        """The value from the row's array."""
        return value_of(f"f.value[{place}]::VARCHAR", self.type)

    @property
    def written(self) -> str:
        """The value as the table takes it."""
        base, _ = base_of(self.native)
        return f"{quoted(self.name)}::{base}" if base in ("ARRAY", "OBJECT") else quoted(self.name)


def value_of(text: str, wanted: str) -> str:
    """An expression of a type over a text."""
    if wanted == "VARCHAR":
        return text
    if wanted == "VARIANT":
        return f"PARSE_JSON({text})"
    return f"TO_BINARY({text}, 'HEX')" if wanted == "BINARY" else f"{text}::{wanted}"


def stage(
    connection: SnowflakeConnection, columns: Sequence[StagedColumn], rows: Iterable[str], entity: str
) -> Written:
    """Make the session's own table afresh, and put rows into it.

    Args:
        connection: with the schema that the table is made in.
        columns: of the rows.
        rows: JSON arrays of texts: ``t`` or ``f`` for a row that deletes or not, then the columns.
        entity: the table that they are for, for messages.

    Raises:
        snowflake.connector.errors.Error: what Snowflake says.
        StoreError: a row is too large.
    """
    head = [f"{NUMBER} NUMBER(19,0)", f"{DELETED} BOOLEAN"]
    declared = [*head, *(f"{quoted(column.name)} {column.type}" for column in columns)]
    run(connection, f"CREATE OR REPLACE TEMPORARY TABLE {quoted(STAGED)} ({', '.join(declared)})")
    values = ["? + f.index", "f.value[0]::VARCHAR = 't'", *(c.value(i + 1) for i, c in enumerate(columns))]
    text = (
        f"INSERT INTO {quoted(STAGED)} SELECT {', '.join(values)}"  # noqa: S608 - our own names
        " FROM TABLE(FLATTEN(INPUT => PARSE_JSON(?))) f"
    )
    written = Written()
    for piece in pieces(rows, entity):
        document = f"[{','.join(piece)}]"
        count = changed(connection, text, (written.rows, document))
        if count != len(piece):
            raise StoreError(
                "store-rejected",
                f"Of {len(piece)} rows for table {entity} Snowflake took {count}.",
                hint="Nothing of the batch was written. Report this, with the versions of both.",
            )
        written += Written(len(piece), len(document.encode()))
    return written


def pieces(rows: Iterable[str], entity: str) -> Iterator[list[str]]:
    """Rows in pieces of about a megabyte; a larger row is a piece of its own."""
    piece: list[str] = []
    size = 0
    for row in rows:
        length = len(row.encode())
        if length > LARGEST:
            raise StoreError(
                "store-rejected",
                f"A row for table {entity} has {length} bytes as JSON, and Snowflake takes 16 MB.",
                hint="Leave its large columns out, or shorten them.",
            )
        if piece and size + length > PIECE:
            yield piece
            piece, size = [], 0
        piece.append(row)
        size += length + 1
    if piece:
        yield piece

"""A batch as a Parquet file, and the statements that bring it into a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leatstream.connectors.databricks.names import quoted
from leatstream.formats.arrow_types import arrow_type
from leatstream.model.types import parse_type

if TYPE_CHECKING:
    import pyarrow as pa

DELETED, NUMBER = "leat_deleted", "leat_number"


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


def write_file(file: Path, columns: Sequence[StagedColumn], batches: Iterator[pa.RecordBatch]) -> int:
    """Write rows as columns ``c0``, ``c1``, …, with their numbers; how many there are.

    Args:
        file: to be made.
        columns: of the rows.
        batches: the rows, in their order: the columns, and whether the row of its key is deleted.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = [(f"c{i}", arrow_type(parse_type(column.kind))) for i, column in enumerate(columns)]
    given = pa.schema([*own, (DELETED, pa.bool_())])
    count = 0
    with pq.ParquetWriter(file, given.append(pa.field(NUMBER, pa.int64())), compression="zstd") as writer:
        for batch in batches:
            rows = pa.Table.from_batches([batch]).rename_columns(given.names).cast(given)
            numbers = pa.array(range(count, count + rows.num_rows), pa.int64())
            writer.write_table(rows.append_column(NUMBER, numbers))
            count += rows.num_rows
    return count


def copy_statement(table: str, folder: str, name: str, columns: Sequence[StagedColumn]) -> str:
    """The statement that appends a file's rows, unless the table has loaded a file of this name before.

    Args:
        table: as statements write it.
        folder: of the file.
        name: of the file.
        columns: of the rows.
    """
    return (
        f"COPY INTO {table} FROM (SELECT {_values(columns)} FROM '{folder}')"  # noqa: S608 - our own names
        f" FILEFORMAT = PARQUET FILES = ('{name}')"
    )


def merge_statement(table: str, file: str, columns: Sequence[StagedColumn], keys: Sequence[str]) -> str:
    """The statement that merges a file's rows: the last one of each key.

    Args:
        table: as statements write it.
        file: its path.
        columns: of the rows.
        keys: names of those that rows are matched by.
    """
    places = {column.name: f"c{i}" for i, column in enumerate(columns)}
    of_key = ", ".join(places[key] for key in keys)
    names = [quoted(column.name) for column in columns]
    same = " AND ".join(f"t.{quoted(key)} = s.{quoted(key)}" for key in keys)
    rest = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in places if name not in keys)
    source = (
        f"SELECT {_values(columns)}, {DELETED} FROM parquet.`{file}`"  # noqa: S608 - our own names
        f" QUALIFY row_number() OVER (PARTITION BY {of_key} ORDER BY {NUMBER} DESC) = 1"
    )
    parts = [
        f"MERGE INTO {table} t USING ({source}) s ON {same}",
        f"WHEN MATCHED AND s.{DELETED} THEN DELETE",
        f"WHEN MATCHED THEN UPDATE SET {rest}" if rest else "",
        f"WHEN NOT MATCHED AND NOT s.{DELETED} THEN INSERT ({', '.join(names)})",
        f"VALUES ({', '.join(f's.{name}' for name in names)})",
    ]
    return " ".join(filter(None, parts))


def _values(columns: Sequence[StagedColumn]) -> str:
    return ", ".join(
        f"CAST(c{i} AS {column.native}) AS {quoted(column.name)}" for i, column in enumerate(columns)
    )

"""Rows of Parquet files as JSON objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import IO

from leatstream.connectors.s3.arrow_texts import Misfit, texts
from leatstream.connectors.s3.matching import check_columns
from leatstream.formats.avro_files import NoRow, UnreadableFile
from leatstream.model.types import DataType

_ROWS = 5_000


def parquet_values(
    file: IO[bytes], columns: Mapping[str, DataType], path: Mapping[str, str]
) -> Iterator[bytes]:
    """The rows of a file as JSON objects, in the forms that ``formats.json`` reads.

    Args:
        file: opened for reading; errors that are not about its content pass through.
        columns: declared; none = every column.
        path: the columns that the file's place gives, which need not stand in it.

    Raises:
        UnreadableFile: it is damaged, or its columns are not of the declared ones.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        # Spark's older times reach beyond what nanoseconds can count.
        opened = parquet.ParquetFile(pa.PythonFile(file, mode="r"), coerce_int96_timestamp_unit="us")
        present = opened.schema_arrow.names
        check_columns(present, columns, path)
        names = [name for name in columns if name in present] if columns else present
        if not names:
            yield from (b"{}" for _ in range(opened.metadata.num_rows))
            return
        for batch in opened.iter_batches(batch_size=_ROWS, columns=names if columns else None):
            found = [batch.schema.get_field_index(name) for name in names] if columns else range(len(names))
            kinds = [columns.get(name) for name in names]
            arrays = [batch.column(i) for i in found]
            yield from _objects(names, [_texts(*one) for one in zip(names, arrays, kinds, strict=True)])
    except UnreadableFile:
        raise
    except (pa.ArrowException, EOFError, ValueError) as error:
        raise UnreadableFile(f"it is no Parquet, or damaged ({type(error).__name__})") from None


def _texts(name: str, values: object, kind: DataType | None) -> list[str | None]:
    """The column as JSON texts."""
    try:
        return texts(values, kind)
    except UnreadableFile as error:
        raise UnreadableFile(f"column {name}: {error}") from None
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise UnreadableFile(f"column {name} cannot be read ({type(error).__name__})") from None


def _objects(names: Sequence[str], columns: Sequence[list[str | None]]) -> Iterator[bytes]:
    heads = [f"{quoted(name)}:" for name in names]
    for row in zip(*columns, strict=True):
        wrong = next((i for i, text in enumerate(row) if isinstance(text, Misfit)), None)
        if wrong is not None:
            yield NoRow(f"column {names[wrong]}: {row[wrong]}".encode())
        else:
            members = (head + (text or "null") for head, text in zip(heads, row, strict=True))
            yield ("{" + ",".join(members) + "}").encode()

"""Records that a schema describes, as Spark columns: read and written in Python workers, by the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from leatstream.connectors.store_marks import marked
from leatstream.errors import StoreError
from leatstream.formats import json
from leatstream.formats.arrow_types import arrow_type, plain_array
from leatstream.formats.described import Decoder, Description, Encoder, open_decoder
from leatstream.formats.plain_values import Unencodable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

_BAD = "a value does not fit its column"


def decoder(description: Description, needed: Sequence[str], place: json.Place = json.VALUE) -> json.Decoder:
    """How values, or keys, are read: as ``formats.json.decoder`` says it for JSON.

    Args:
        description: of the records.
        needed: names of the columns that are NOT NULL.
        place: which part of the record they are.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import arrow_udf

    pairs = zip(description.names, description.data_types(), strict=True)
    fields = [f"{_tick(name)}: {kind.spark()}" for name, kind in pairs]
    ddl = f"STRUCT<{', '.join([*fields, f'{json.CORRUPT}: STRING'])}>"
    read: Callable[[Column], Column] = arrow_udf(_reading(description), ddl)  # type: ignore[call-overload]
    parsed = F.col(place.parsed)
    reason = parsed.getField(json.CORRUPT)
    bad = parsed.isNull() | reason.isNotNull()
    for name in needed:
        bad = bad | parsed.getField(name).isNull()
    columns = tuple(parsed.getField(name).alias(name) for name in description.names)
    return json.Decoder(read(F.col(place.text).cast("binary")), columns, bad, reason)


def encode(description: Description, schema: int, values: Sequence[Column]) -> Column:
    """The BINARY value made of these columns' values."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import arrow_udf

    write: Callable[[Column], Column] = arrow_udf(_writing(description, schema), "BINARY")  # type: ignore[call-overload]
    names = [f"c{i}" for i in range(len(values))]
    return write(F.struct(*(v.alias(n) for v, n in zip(values, names, strict=True))))


def _reading(description: Description) -> Callable[[Any], Any]:
    def read(values: Any) -> Any:
        return decode_batch(description, values)

    return _hinted(read, "values")


def _writing(description: Description, schema: int) -> Callable[[Any], Any]:
    def write(rows: Any) -> Any:
        return encode_batch(description, schema, rows)

    return _hinted(write, "rows")


def _hinted(function: Callable[[Any], Any], argument: str) -> Callable[[Any], Any]:
    """With types that Spark can see: written out they would be names of a library not imported yet."""
    import pyarrow as pa

    function.__annotations__ = {argument: pa.Array, "return": pa.Array}
    return function


@lru_cache(maxsize=64)
def _decoder(description: Description) -> Decoder:
    """One for the worker's life, so that a schema is fetched once."""
    return open_decoder(description)


def decode_batch(description: Description, values: pa.Array) -> pa.Array:
    """Records as structs of the columns, with why one cannot be read in ``__leat_corrupt``.

    Raises:
        RuntimeError: marked for ``failures``: the registry cannot be asked.
    """
    import pyarrow as pa

    try:
        columns, reasons = _decoder(description).columns(values.to_pylist())
    except StoreError as error:
        raise RuntimeError(marked("source", error)) from None
    types = [arrow_type(kind) for kind in description.data_types()]
    arrays = [_array(column, kind, reasons) for column, kind in zip(columns, types, strict=True)]
    arrays.append(pa.array(reasons, pa.string()))
    fields = [pa.field(n, t) for n, t in zip(description.names, types, strict=True)]
    fields.append(pa.field(json.CORRUPT, pa.string()))
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _array(values: list[Any], kind: pa.DataType, reasons: list[str | None]) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        kept = []
        for index, value in enumerate(values):
            try:
                pa.scalar(value, kind)
                kept.append(value)
            except (pa.ArrowException, OverflowError, ValueError, TypeError):
                kept.append(None)
                reasons[index] = _BAD
        return pa.array(kept, kind)


def encode_batch(description: Description, schema: int, rows: pa.Array) -> pa.Array:
    """Rows, structs of the columns by position, as records.

    Raises:
        RuntimeError: marked for ``failures``: a row has no form in the format.
    """
    import pyarrow as pa

    encoder = Encoder(description, schema)
    types = description.data_types()
    columns = [plain_array(rows.field(i), kind).to_pylist() for i, kind in enumerate(types)]
    try:
        records = [encoder.record(row) for row in zip(*columns, strict=True)]
    except Unencodable as error:
        raise RuntimeError(error.marked()) from None
    return pa.array(records, pa.binary())


def _tick(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

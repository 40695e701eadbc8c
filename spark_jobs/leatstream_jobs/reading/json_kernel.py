"""JSON records read in Python workers, a batch at a time: a shortcut for most records, never another rule.

Spark's expressions (``formats.json``) cost several times what msgspec takes for the same record. So a worker
reads the records whose values all fit their columns beyond doubt. Every other record passes through as it is,
and the expressions decide about it: what is undecodable, and why, is their business alone.

For micro-batches only: real-time mode refuses ``mapInArrow``.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

from leatstream.formats.arrow_types import arrow_type
from leatstream.formats.plain_values import DAY, DEEPEST, FIRST_DAY, TIME, Undecodable, day_of, fitting
from leatstream.model.objects import ROWMETA
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import Isolation, JobSpec, Mode, SourceSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_LOG = logging.getLogger("leatstream_jobs")
# Whether this driver has memory for the workers; a server sets this.
VARIABLE = "LEATSTREAM_JSON_WORKERS"
_FIELD = "__leat_k"
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_TEXTS = ("VARCHAR", "TIME", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_READ = ("BOOLEAN", *_BITS, "DOUBLE", "DECIMAL", *_TEXTS)
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?")
_TIME = re.compile(TIME)
# Of moments only those that need no arithmetic: to the microsecond, without an offset.
_MOMENT = re.compile(rf"{DAY}[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{{1,6}})?(Z?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the workers are sent; plain data.

    Attributes:
        names, types, needed: of the columns: each one's type as SQL writes it, and whether it is NOT NULL.
        used: whether the query reads it; the others are only checked.
        position: whether the query reads the records' position in their store.
        entity: what they come from.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    needed: tuple[bool, ...]
    used: tuple[bool, ...]
    position: bool
    entity: str = ""

    def applied(self, records: DataFrame) -> DataFrame:
        """The records, and columns with what was read; ``value`` is NULL where it was."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructField, StructType, _parse_datatype_string

        place = dict(records.select(f"{ROWMETA}.*").dtypes)
        whole = {name: F.col(ROWMETA).getField(name) for name in place}
        records = records.withColumn("value", F.col("value").cast("binary"))
        if "topic" in place and not self.position:
            # Only complaints tell it then. A topic's name need not go to the workers and back each time.
            sent = ("partition", "offset")
            records = records.withColumn(ROWMETA, F.struct(*(whole[name].alias(name) for name in sent)))
            whole |= {n: F.lit(None).cast(kind) for n, kind in place.items() if n not in sent}
            whole["topic"] = F.lit(self.entity)
        fields = [StructField(field.name, field.dataType) for field in records.schema.fields]
        for index, kind in enumerate(map(parse_type, self.types)):
            if self.used[index]:
                fields.append(StructField(f"{_FIELD}{index}", _parse_datatype_string(kind.spark())))
        read = records.mapInArrow(partial(read_batches, self), StructType(fields))
        # What was never NULL must not become so: state that was made without workers could not be read again.
        never = [f for f in records.schema.fields if not f.nullable and f.name in ("key", "timestamp")]
        replaced = {f.name: F.coalesce(f.name, F.lit("1970-01-01").cast(f.dataType)) for f in never}
        replaced[ROWMETA] = F.struct(*(value.alias(name) for name, value in whole.items()))
        return read.withColumns(replaced)

    def columns(self) -> dict[str, str]:
        """Names of the columns with what was read, by the declared column."""
        return {name: f"{_FIELD}{index}" for index, name in enumerate(self.names) if self.used[index]}


def kernels(spec: JobSpec) -> dict[str, Kernel]:
    """The kernels of a job whose SQL Spark alone runs, by the source's view; of no others."""
    wanted = spec.json_reader == "workers" or (spec.json_reader == "auto" and os.environ.get(VARIABLE) == "1")
    if not wanted or spec.mode is not Mode.MICRO_BATCH or spec.driver is not Isolation.DEDICATED:
        return {}
    found = {}
    for source in spec.sources:
        kernel = kernel_of(source, spec.sql)
        how = "Spark's expressions" if kernel is None else "Python workers"
        _LOG.info("%s reads the records of %s in %s", spec.query_name, source.relation, how)
        if kernel is not None:
            found[source.view] = kernel
    return found


def kernel_of(source: SourceSpec, sql: str) -> Kernel | None:
    """The kernel for a source; None where the expressions have to read it alone.

    Args:
        source: of the job.
        sql: all that reads the source's view.
    """
    special = source.primary_key or source.key_only or source.fetches_headers or source.feed
    kinds = {parse_type(column.type).kind for column in source.columns}
    # msgspec does not take names that JSON has to escape.
    odd = any(re.search(r'[\\"\x00-\x1f]', column.name) for column in source.columns)
    if special or odd or source.value_format != "json" or not kinds or not kinds <= set(_READ):
        return None
    # A name that the text does not hold cannot be read by it; a star reads all.
    every = "*" in sql.replace("count(*)", "").replace("COUNT(*)", "")
    return Kernel(
        tuple(column.name for column in source.columns),
        tuple(column.type for column in source.columns),
        tuple(column.not_null for column in source.columns),
        tuple(
            every or "`" in column.name or column.name in sql or column.name == source.timestamp
            for column in source.columns
        ),
        every or ROWMETA in sql,
        source.entity,
    )


def read_batches(kernel: Kernel, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a worker does."""
    reader = Reader(kernel)
    return (reader.batch(batch) for batch in batches)


class Reader:
    """Reads batches of records, in a worker."""

    def __init__(self, kernel: Kernel) -> None:
        import msgspec

        self._kernel = kernel
        self._kinds = [parse_type(text) for text in kernel.types]
        self._types = [arrow_type(kind) for kind in self._kinds]
        self._takers = [attrgetter(f"f{i}") for i in range(len(self._kinds))]
        self._converters = [_converter(k, needed=n) for k, n in zip(self._kinds, kernel.needed, strict=True)]
        fields = [
            (f"f{i}", *_field(kind, needed=needed))
            for i, (kind, needed) in enumerate(zip(self._kinds, kernel.needed, strict=True))
        ]
        names = {f"f{i}": name for i, name in enumerate(kernel.names)}
        # Columns that must be there have no default, and come last otherwise.
        form: Any = msgspec.defstruct("Row", fields, rename=names, kw_only=True, gc=False)
        self._empty = form(**dict.fromkeys(names))
        self._decode = msgspec.json.Decoder(form).decode
        self._errors = (msgspec.DecodeError, ValueError, RecursionError)

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with what was read of it, as ``Kernel.applied`` has it."""
        import pyarrow as pa

        values = batch.column("value").to_pylist()
        rows, left = self._rows(batch.column("value"), values)
        found: list[list[Any]] = []
        for index, take in enumerate(self._takers):
            column = list(map(take, rows))
            convert = self._converters[index]
            found.append(column if convert is None else convert(column, values, left))
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays["value"] = _kept(arrays["value"], left)
        if not self._kernel.position and ROWMETA in arrays:
            arrays[ROWMETA] = _kept(arrays[ROWMETA], left)
        for index, kind in enumerate(self._types):
            if self._kernel.used[index]:
                arrays[f"{_FIELD}{index}"] = pa.array(found[index], kind)
        return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))

    def _rows(self, array: pa.Array, values: list[bytes]) -> tuple[list[Any], set[int]]:
        """The records read, and which are left to the expressions."""
        import pyarrow as pa

        # The expressions refuse a record with more levels; one of so many has a bracket at both ends of each.
        left = {i for i, value in enumerate(values) if len(value) > 2 * DEEPEST and _may_be_deep(value)}
        try:
            array.cast(pa.string())  # what msgspec passes over need not be UTF-8
            return list(map(self._decode, values)), left
        except (pa.ArrowInvalid, *self._errors):
            rows = []
        for index, value in enumerate(values):
            try:
                value.decode()
                rows.append(self._decode(value))
            except self._errors:
                rows.append(self._empty)
                left.add(index)
        return rows, left


def _may_be_deep(value: bytes) -> bool:
    return value.count(b"[") + value.count(b"{") > DEEPEST


def _kept(array: pa.Array, left: set[int]) -> pa.Array:
    """The array's values at these places, NULL at all others."""
    import pyarrow as pa

    if not left:
        return pa.nulls(len(array), array.type)
    return array.take(pa.array([i if i in left else None for i in range(len(array))], pa.int32()))


def _field(kind: DataType, *, needed: bool) -> tuple[Any, ...]:
    """Type and default of a struct's field: the values that msgspec takes, and no doubtful one among them."""
    import msgspec

    if kind.kind == "DECIMAL":
        return (msgspec.Raw,) if needed else (msgspec.Raw, msgspec.Raw(b"null"))
    taken: Any = {"BOOLEAN": bool, "DOUBLE": float}.get(kind.kind, str)
    if kind.kind in _BITS:
        bound = 1 << _BITS[kind.kind]
        taken = Annotated[int, msgspec.Meta(ge=-bound, le=bound - 1)]
    return (taken,) if needed else (taken | None, None)


# What makes values of what msgspec has read, given the records too; it adds the places it leaves alone.
_Convert = Callable[[list[Any], Sequence[bytes], set[int]], list[Any]]


def _converter(kind: DataType, *, needed: bool) -> _Convert | None:
    if kind.kind == "DOUBLE":
        return _doubles
    one: dict[str, Callable[[Any], Any]] = {
        "DECIMAL": partial(_decimal, kind, needed),
        "DATE": _date,
        "TIME": _time,
        "TIMESTAMP": partial(_moment, False),
        "TIMESTAMP_LTZ": partial(_moment, True),
    }
    return partial(_each, one[kind.kind]) if kind.kind in one else None


def _each(convert: Callable[[Any], Any], column: list[Any], _: Sequence[bytes], left: set[int]) -> list[Any]:
    found = []
    for index, value in enumerate(column):
        try:
            found.append(None if value is None else convert(value))
        except ValueError:
            found.append(None)
            left.add(index)
    return found


def _doubles(column: list[Any], values: Sequence[bytes], left: set[int]) -> list[Any]:
    if 0.0 in column:  # msgspec reads -0 as a whole number, which has no sign
        left.update(i for i, number in enumerate(column) if number == 0 and b"-0" in values[i])
    return column


def _decimal(kind: DataType, needed: bool, raw: Any) -> Decimal | None:
    text = bytes(raw)
    if text == b"null" and not needed:
        return None
    scale = (*kind.parameters, 0)[1] if kind.parameters else 0
    plain = _NUMBER.fullmatch(text)
    if (
        plain is None or len(plain[1] or ".") > scale + 1
    ):  # Arrow does not take more zeros than there is room for
        raise Undecodable("no plain number")
    return fitting(Decimal(text.decode()), kind)


@lru_cache(maxsize=10_000)
def _date(text: str) -> date:
    return date.fromordinal(day_of(text) - FIRST_DAY + 1)


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise ValueError(text)
    return text


def _moment(zoned: bool, text: str) -> datetime:
    found = _MOMENT.fullmatch(text)
    if found is None or (found[1] and not zoned):
        raise ValueError(text)
    return datetime.fromisoformat(text.removesuffix("Z"))

"""JSON record values and the declared column types, as Spark expressions only: real-time mode runs them.

Reading. A value is decodable when it is one JSON object, each declared field has its column's type, and no
NOT NULL column is absent or null. Absent and null are the same: NULL. Undeclared fields are passed over; of a
field given twice the last counts; names are compared exactly. VARCHAR takes any JSON value (numbers, objects
as their JSON text). Numbers must be JSON numbers (a quoted "5" is no BIGINT; DOUBLE also takes "NaN" and
"Infinity", and a DECIMAL may be quoted). A number that does not fit its type exactly makes the record
undecodable, at any depth; only FLOAT and DOUBLE take the nearest value they have. TIMESTAMP and
TIMESTAMP_LTZ take both the SQL and the ISO 8601 form; without a zone, UTC. BYTES and VARBINARY are base64.

Writing. Every column is written, NULL as null. TIMESTAMP is ``yyyy-MM-dd HH:mm:ss[.f]``, TIMESTAMP_LTZ the
same in UTC with ``Z``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.errors import JobError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import ColumnSpec

if TYPE_CHECKING:
    from pyspark.sql import Column

TEXT = "__leat_text"
PARSED = "__leat_json"
CORRUPT = "__leat_corrupt"
_TIME = r"\A([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?\z"
_READ_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "allowSingleQuotes": "false"}
_WRITE_OPTIONS = {"ignoreNullFields": "false"}


@dataclass(frozen=True, slots=True)
class Place:
    """Columns that hold a part of the record while it is read: as text, its bytes as they are, and parsed."""

    text: str
    parsed: str


VALUE = Place(TEXT, PARSED)
KEY = Place("__leat_key_text", "__leat_key")


@dataclass(frozen=True, slots=True)
class Decoder:
    """How one relation's values, or keys, are read.

    Attributes:
        parsed: to be selected as the place's ``parsed`` from a frame that has the record's part as ``text``.
        fields: the declared columns in order, named, over ``parsed``.
        undecodable: over ``text`` and ``parsed``; true or false, never NULL.
        reason: why it is undecodable, where the format can tell.
    """

    parsed: Column
    fields: tuple[Column, ...]
    undecodable: Column
    reason: Column | None = None


def decoder(columns: Sequence[ColumnSpec], place: Place = VALUE) -> Decoder:
    """Make the expressions that read values, or keys, with these columns.

    Raises:
        JobError: job-rejected, for a type that JSON cannot carry.
    """
    from pyspark.sql import functions as F

    types = [parse_type(column.type) for column in columns]
    for column, kind in zip(columns, types, strict=True):
        check_type(column.name, kind)
    ddl = ", ".join(f"{_tick(c.name)} {_read_type(t)}" for c, t in zip(columns, types, strict=True))
    ddl += f", {_tick(CORRUPT)} STRING"
    text, parsed = F.col(place.text), F.col(place.parsed)
    # Jackson stops after the first object; what follows it would pass unseen.
    ends_well = text.endswith("}") | F.rtrim(text, F.lit(" \t\r\n")).endswith("}")
    bad = parsed.isNull() | parsed.getField(CORRUPT).isNotNull() | ~ends_well | ~F.is_valid_utf8(text)
    fields: list[Column] = []
    for column, kind in zip(columns, types, strict=True):
        raw = parsed.getField(column.name)
        value, misfit = _converted(raw, kind)
        if misfit is not None:
            bad = bad | misfit
        if column.not_null:
            bad = bad | raw.isNull()
        fields.append(value.alias(column.name))
    return Decoder(F.from_json(text, ddl, _READ_OPTIONS), tuple(fields), bad)


def encode(columns: Sequence[ColumnSpec], values: Sequence[Column]) -> Column:
    """The BINARY value made of these columns' values.

    Args:
        columns: names and types of the sink, in order.
        values: one expression per column, already of the column's type.

    Raises:
        JobError: job-rejected, for a type that JSON cannot carry.
    """
    from pyspark.sql import functions as F

    written: list[Column] = []
    for column, value in zip(columns, values, strict=True):
        kind = parse_type(column.type)
        check_type(column.name, kind)
        written.append(_written(value, kind).alias(column.name))
    return F.to_json(F.struct(*written), _WRITE_OPTIONS).cast("binary")


def nested(name: str, kind: DataType, value: Column) -> Column:
    """The JSON text of one ARRAY, MAP or STRUCT; NULL stays NULL.

    Raises:
        JobError: job-rejected, for a type that JSON cannot carry.
    """
    from pyspark.sql import functions as F

    check_type(name, kind)
    return F.to_json(_written(value, kind), _WRITE_OPTIONS)


def check_type(name: str, kind: DataType) -> None:
    """Refuse a type that JSON has no form for.

    Raises:
        JobError: job-rejected, naming the column.
    """
    if kind.kind == "MAP" and kind.arguments[0].kind != "VARCHAR":
        raise JobError(
            "job-rejected", f"Column {name}: a map in JSON has VARCHAR keys, not {kind.arguments[0]}."
        )
    for part in kind.arguments:
        check_type(name, part)


def _read_type(kind: DataType) -> str:
    """The type the parser is asked for; where it is too lenient, a rawer one that is checked after."""
    if kind.kind in ("TINYINT", "TIMESTAMP_LTZ"):
        # The parser takes 128..255 for a byte and wraps, and a bare number for seconds, where most producers
        # mean milliseconds.
        return "SMALLINT" if kind.kind == "TINYINT" else "STRING"
    if kind.kind == "DECIMAL":
        # The parser rounds: with as many digits behind the point as there is room for, that shows.
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return f"DECIMAL(38, {38 - (precision - scale)})"
    inner = [_read_type(part) for part in kind.arguments]
    if kind.kind == "STRUCT":
        pairs = zip(kind.fields, inner, strict=True)
        return "STRUCT<" + ", ".join(f"{_tick(name)}: {part}" for name, part in pairs) + ">"
    return f"{kind.kind}<{', '.join(inner)}>" if inner else kind.spark()


def _converted(raw: Column, kind: DataType) -> tuple[Column, Column | None]:
    """The column's value, and the condition under which it does not fit its type (never NULL)."""
    from pyspark.sql import functions as F

    if kind.kind in ("TINYINT", "TIMESTAMP_LTZ"):
        value = raw.try_cast(kind.spark())
        return value, raw.isNotNull() & value.isNull()
    if kind.kind == "DECIMAL":
        value = raw.try_cast(kind.spark())
        return value, raw.isNotNull() & ~F.coalesce(value == raw, F.lit(False))
    if kind.kind == "TIME":
        return raw, F.coalesce(~raw.rlike(_TIME), F.lit(False))
    return _converted_inside(raw, kind) if any(map(_is_checked, kind.arguments)) else (raw, None)


def _converted_inside(raw: Column, kind: DataType) -> tuple[Column, Column]:
    """The same of an ARRAY, MAP or STRUCT that holds something to be checked."""
    from pyspark.sql import functions as F

    false = F.lit(False)
    if kind.kind == "STRUCT":
        bad, parts = false, []
        for name, part in zip(kind.fields, kind.arguments, strict=True):
            value, misfit = _converted(raw.getField(name), part)
            parts.append(value.alias(name))
            bad = bad if misfit is None else bad | misfit
        return F.when(raw.isNotNull(), F.struct(*parts)), bad
    part = kind.arguments[-1]

    def fitted(item: Column) -> Column:
        return _converted(item, part)[0]

    def unfit(item: Column) -> Column:
        misfit = _converted(item, part)[1]
        return false if misfit is None else misfit

    if kind.kind == "ARRAY":
        return F.transform(raw, fitted), F.coalesce(F.exists(raw, unfit), false)
    values = F.transform_values(raw, lambda _key, item: fitted(item))
    return values, F.coalesce(F.exists(F.map_values(raw), unfit), false)


def _is_checked(kind: DataType) -> bool:
    return kind.kind in ("TINYINT", "TIMESTAMP_LTZ", "DECIMAL", "TIME") or any(
        map(_is_checked, kind.arguments)
    )


def _written(value: Column, kind: DataType) -> Column:
    from pyspark.sql import functions as F

    if kind.kind == "TIMESTAMP":
        return value.cast("string")
    if kind.kind == "TIMESTAMP_LTZ":
        return F.concat(value.cast("string"), F.lit("Z"))
    if not _has_time(kind):
        return value
    if kind.kind == "ARRAY":
        return F.transform(value, _inner(kind.arguments[0]))
    if kind.kind == "MAP":
        inner = _inner(kind.arguments[1])
        return F.transform_values(value, lambda _key, item: inner(item))
    parts = [
        _written(value.getField(name), part).alias(name)
        for name, part in zip(kind.fields, kind.arguments, strict=True)
    ]
    return F.when(value.isNotNull(), F.struct(*parts))


def _inner(kind: DataType) -> Callable[[Column], Column]:
    return lambda item: _written(item, kind)


def _has_time(kind: DataType) -> bool:
    return kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ") or any(map(_has_time, kind.arguments))


def _tick(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

"""JSON record values and the declared column types, as Spark expressions only: real-time mode runs them.

Reading. A value is decodable when it is one JSON object and nothing else, each declared field has its
column's type, and no NOT NULL column is absent or null. Absent and null are the same: NULL. Undeclared fields
are passed over; of a field given twice the last counts; names are compared exactly. What each type takes is
the table of docs/sql/types.md. Spark's parser reads the records, and is asked only for what it reads exactly:
texts, whole numbers, FLOAT and DOUBLE. What the texts mean is for ``text_values``. Where a number or an
object was given as text, which the parser rewrites, ``json_slices`` cuts the value out of the record. Spark
plans each batch again, so these expressions stay small: one for a record's slices, little for a column.

Writing. Every column is written, NULL as null. TIMESTAMP is ``yyyy-MM-dd HH:mm:ss[.f]``, TIMESTAMP_LTZ the
same in UTC with ``Z``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.errors import JobError
from leatstream.formats import json_slices, text_values
from leatstream.formats.plain_values import DEEPEST, TIME
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import ColumnSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TEXT = "__leat_text"
PARSED = "__leat_json"
CORRUPT = "__leat_corrupt"
# The member behind the record that shows where the parser stopped; no record can know it.
_END = "end_" + secrets.token_hex(8)
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "maxNestingDepth": str(DEEPEST + 1),
}
_WRITE_OPTIONS = {"ignoreNullFields": "false"}


@dataclass(frozen=True, slots=True)
class Place:
    """Columns that hold a part of the record while it is read: as text, raw, slices of it, and parsed."""

    text: str
    parsed: str
    raw: str
    slices: str


VALUE = Place(TEXT, PARSED, "__leat_raw", "__leat_slices")
KEY = Place("__leat_key_text", "__leat_key", "__leat_key_raw", "__leat_key_slices")


@dataclass(frozen=True, slots=True)
class Decoder:
    """How one relation's values, or keys, are read.

    Attributes:
        parsed: to be selected as the place's ``parsed`` from a frame that has the record's part as ``text``,
            and ``raw`` and ``slices`` if there are some.
        fields: the declared columns in order, named, over ``parsed``.
        undecodable: over ``text`` and ``parsed``; true or false, never NULL.
        reason: why it is undecodable, where the format can tell.
        raw: to be selected before, as the place's ``raw``: ``parsed`` then uses it many times.
        slices: to be selected between the two, as the place's ``slices``.
    """

    parsed: Column
    fields: tuple[Column, ...]
    undecodable: Column
    reason: Column | None = None
    raw: Column | None = None
    slices: Column | None = None

    def steps(self, place: Place) -> list[dict[str, Column]]:
        """The columns to add, one set after the other; each uses those before."""
        steps = ((place.raw, self.raw), (place.slices, self.slices), (place.parsed, self.parsed))
        return [{name: column} for name, column in steps if column is not None]

    def over(self, frame: DataFrame, place: Place = VALUE) -> DataFrame:
        """The frame, which has the record's part as ``text``, with that part parsed."""
        for step in self.steps(place):
            frame = frame.withColumns(step)
        return frame


def decoder(columns: Sequence[ColumnSpec], place: Place = VALUE) -> Decoder:
    """Make the expressions that read values, or keys, with these columns.

    Raises:
        JobError: job-rejected, for a type that JSON cannot carry.
    """
    from pyspark.sql import functions as F

    types = [parse_type(column.type) for column in columns]
    for column, kind in zip(columns, types, strict=True):
        check_type(column.name, kind)
    whole = DataType("STRUCT", arguments=tuple(types), fields=tuple(column.name for column in columns))
    parsed = F.col(place.parsed)
    fields = tuple(parsed.getField(column.name).alias(column.name) for column in columns)
    bad = parsed.getField(CORRUPT)
    for column in columns:
        if column.not_null:
            bad = bad | parsed.getField(column.name).isNull()
    slices = _slices(place, whole)
    return Decoder(
        F.expr(_parsed(place, whole)),
        fields,
        bad,
        raw=F.expr(_raw(place, whole)),
        slices=F.expr(slices) if slices else None,
    )


_LAST = f"{_END} BOOLEAN, {CORRUPT} STRING"


def _ddl(schema: str) -> str:
    return json_slices.text_literal(schema)


def _map_of(options: dict[str, str]) -> str:
    return "map(" + ", ".join(f"'{key}', '{value}'" for key, value in options.items()) + ")"


def _plain(place: Place) -> str:
    """The text without the mark that some writers put before it."""
    return f"if(startswith({place.text}, '\ufeff'), substring({place.text}, 2), {place.text})"


def _closed(place: Place) -> str:
    """An object around the text. Of a text that ends early, or goes on, the parser does not reach its end."""
    return f"""concat('{{"r":', {_plain(place)}, ',"{_END}":true}}')"""


def _raw(place: Place, whole: DataType) -> str:
    """STRUCT of what Spark's parser reads: the record as ``r``, and whether the text ended behind it."""
    schema = _ddl(f"r {_read_type(whole)}, {_LAST}")
    strict = f"from_json({_closed(place)}, {schema}, {_map_of(_OPTIONS)})"
    if not _has(whole, ("FLOAT", "DOUBLE")):
        return strict
    # The parser takes the texts "NaN" and "Infinity" only where it takes the bare words, too, which are no
    # JSON, and some other spellings.
    words = f"""(contains({place.text}, '"NaN"') OR contains({place.text}, 'Infinity"'))"""
    bare = f"regexp_replace({place.text}, r'{json_slices.STRING}', '') RLIKE '[NI]'"
    others = rf"""{place.text} RLIKE r'"(?:[+](?:INF|Infinity)|-?INF)"'"""
    lenient = {**_OPTIONS, "allowNonNumericNumbers": "true"}
    worded = f"from_json({_closed(place)}, {schema}, {_map_of(lenient)})"
    return f"CASE WHEN {words} AND NOT {bare} AND NOT {others} THEN {worded} ELSE {strict} END"


def _lost(place: Place) -> str:
    raw = place.raw
    return (
        f"({raw} IS NULL OR {raw}.{CORRUPT} IS NOT NULL OR {raw}.{_END} IS NULL"
        f" OR NOT is_valid_utf8({place.text}))"
    )


def _pairs(place: Place, whole: DataType) -> list[tuple[str, DataType, str, _Part]]:
    """Of each column its name, type, what the parser gave, and how that is read."""
    found = []
    for name, kind in zip(whole.fields, whole.arguments, strict=True):
        raw = f"{place.raw}.r.{text_values.tick(name)}"
        found.append((name, kind, raw, _read(raw, kind, place.text)))
    return found


def _slices(place: Place, whole: DataType) -> str:
    """STRUCT of a record's values as they stand, NULL where the parser rewrote none; "" if it never does.

    ``k`` and ``v`` are names and values, ``c0`` and so on the cells of columns that are lists or objects.
    """
    pairs = _pairs(place, whole)
    doubts = " OR ".join(part.doubt for *_, part in pairs if part.doubt)
    if not doubts:
        return ""
    cells = "".join(
        f", 'c{index}', {json_slices.cell(json_slices.member('m0', name), kind, 1)}"
        for index, (name, kind, _, part) in enumerate(pairs)
        if kind.arguments and part.doubt
    )
    made = text_values.bound(json_slices.members("r"), "m0", f"named_struct('k', m0.k, 'v', m0.v{cells})")
    cut = json_slices.with_patterns(text_values.bound(_plain(place), "r", made))
    return f"CASE WHEN NOT {_lost(place)} AND ({doubts}) THEN {cut} END"


def _parsed(place: Place, whole: DataType) -> str:
    """STRUCT of the columns, and ``CORRUPT``: whether the text is no such record."""
    values, unfit = [], [_lost(place), f"{place.raw}.r IS NULL"]
    for index, (name, kind, raw, part) in enumerate(_pairs(place, whole)):
        value, bad = (
            (part.value, part.unfit) if not part.doubt else _exact(place, index, name, kind, raw, part)
        )
        values.append(f"{json_slices.text_literal(name)}, {value}")
        unfit += [bad] if bad else []
    return f"named_struct({', '.join(values)}, '{CORRUPT}', coalesce({' OR '.join(unfit)}, false))"


def _exact(place: Place, index: int, name: str, kind: DataType, raw: str, part: _Part) -> tuple[str, str]:
    """A column's value, and whether there is none of its type, from its slice where there are slices."""
    slices = place.slices
    if kind.arguments:
        cell = f"{slices}.c{index}"
        bad = f"if({slices} IS NULL, {part.unfit or 'false'}, {cell}.bad)"
        return f"if({slices} IS NULL, {part.value}, {cell}.v)", bad
    cut = json_slices.member(slices, name)
    quoted = f"startswith({cut}, '\"')"
    text = f"CASE WHEN {slices} IS NULL OR {raw} IS NULL OR {quoted} THEN {raw} ELSE {cut} END"
    if kind.kind == "VARCHAR":
        half = f"contains({raw}, '?') AND {quoted} AND {json_slices.has_half(cut)}"
        return text, f"({slices} IS NOT NULL AND {half})"
    if kind.kind == "DECIMAL":
        # The parser gives whole numbers as they stand.
        fraction = text_values.bound(text, "t", text_values.decimal("t", kind))
        whole = text_values.matches(raw, "-?[0-9]+")
        value = f"CASE WHEN {whole} THEN try_cast({raw} AS {kind.spark()}) ELSE {fraction} END"
        return value, f"({raw} IS NOT NULL AND {value} IS NULL)"
    return part.value, f"({part.unfit} OR {slices} IS NOT NULL AND {raw} IS NOT NULL AND NOT {quoted})"


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


_OF_TEXT = ("VARCHAR", "DECIMAL", "BYTES", "VARBINARY", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")


def _read_type(kind: DataType) -> str:
    """The type the parser is asked for: what it is lenient with, it gives as text."""
    if kind.kind == "TINYINT":
        return "SMALLINT"  # it takes 128 to 255 for a byte, and wraps
    if kind.kind in _OF_TEXT:
        return "STRING"
    inner = [_read_type(part) for part in kind.arguments]
    if kind.kind == "STRUCT":
        pairs = zip(kind.fields, inner, strict=True)
        return "STRUCT<" + ", ".join(f"{text_values.tick(name)}: {part}" for name, part in pairs) + ">"
    return f"{kind.kind}<{', '.join(inner)}>" if inner else kind.spark()


@dataclass(frozen=True, slots=True)
class _Part:
    """SQL of a value that the parser gave, of whether it does not fit, and of whether its slice counts.

    ``doubt``: the parser may have rewritten the value. Both conditions may be NULL for false.
    """

    value: str
    unfit: str = ""
    doubt: str = ""


# A number with a fraction, an object, a list, or a quoted infinity: so the parser gives as text what is none.
_REWRITTEN = r"""["\[{]|-?[0-9]+[.][0-9]+(?:E-?[0-9]+)?\z"""


def _read(raw: str, kind: DataType, text: str, depth: int = 0) -> _Part:
    """What a value is that the parser gave for a column of that type."""
    if kind.kind == "VARCHAR":
        begins = f"{raw} < ':' OR startswith({raw}, '[') OR startswith({raw}, '{{')"
        rewritten = rf"{raw} RLIKE r'\A(?:{_REWRITTEN})' OR {raw} = '0' AND contains({text}, '-0')"
        # Half a character, which only an escape can give, has become a question mark.
        half = rf"contains({raw}, '?') AND contains({text}, r'\u')"
        return _Part(raw, doubt=f"(({begins}) AND ({rewritten}) OR {half})")
    if kind.kind == "TINYINT":
        value = f"try_cast({raw} AS TINYINT)"
        return _Part(value, f"({raw} IS NOT NULL AND {value} IS NULL)")
    if kind.kind == "DECIMAL":
        whole = text_values.matches(raw, "-?[0-9]+")
        value = f"CASE WHEN {whole} THEN try_cast({raw} AS {kind.spark()}) END"
        return _Part(value, f"({raw} IS NOT NULL AND {value} IS NULL)", f"({raw} < ':' AND NOT {whole})")
    if kind.kind == "TIME":
        return _Part(raw, f"NOT {text_values.matches(raw, TIME)}")
    if kind.kind in ("BYTES", "VARBINARY"):
        value = text_values.base64_bytes(raw)
        # A bare number of four digits looks like base64, and so does true.
        return _Part(
            value, f"({raw} IS NOT NULL AND {value} IS NULL)", text_values.matches(raw, "[0-9]+|true")
        )
    if kind.kind in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        value = text_values.day(raw) if kind.kind == "DATE" else text_values.moment(raw, kind.kind)
        return _Part(value, f"({raw} IS NOT NULL AND {value} IS NULL)")
    return _read_inside(raw, kind, text, depth) if kind.arguments else _Part(raw)


def _read_inside(raw: str, kind: DataType, text: str, depth: int) -> _Part:
    """The same of an ARRAY, MAP or STRUCT."""
    if kind.kind == "STRUCT":
        pairs = list(zip(kind.fields, kind.arguments, strict=True))
        parts = [_read(f"{raw}.{text_values.tick(name)}", part, text, depth) for name, part in pairs]
        named = ", ".join(
            f"{json_slices.text_literal(name)}, {part.value}"
            for (name, _), part in zip(pairs, parts, strict=True)
        )
        value = f"if({raw} IS NULL, NULL, named_struct({named}))"
        unfit, doubt = (
            " OR ".join(filter(None, which))
            for which in zip(*((p.unfit, p.doubt) for p in parts), strict=True)
        )
        return _Part(value, f"({unfit})" if unfit else "", f"({doubt})" if doubt else "")
    item = f"i{depth}"
    part = _read(item, kind.arguments[-1], text, depth + 1)
    values = raw if kind.kind == "ARRAY" else f"map_values({raw})"
    value = raw
    if part.value != item:
        key = "" if kind.kind == "ARRAY" else f"k{depth}, "
        value = (
            f"transform{'_values' * bool(key)}({raw}, {f'({key}{item})' if key else item} -> {part.value})"
        )
    unfit, doubt = (
        f"exists({values}, {item} -> {which})" if which else "" for which in (part.unfit, part.doubt)
    )
    if kind.kind == "MAP":
        keys = f"map_keys({raw})"
        twice = f"size({keys}) <> size(array_distinct({keys})) OR exists({keys}, k -> contains(k, '?'))"
        doubt = f"({' OR '.join(filter(None, (doubt, twice)))})"
    return _Part(value, unfit, doubt)


def _has(kind: DataType, kinds: tuple[str, ...]) -> bool:
    return kind.kind in kinds or any(_has(part, kinds) for part in kind.arguments)


def _written(value: Column, kind: DataType) -> Column:
    from pyspark.sql import functions as F

    if kind.kind == "TIMESTAMP":
        return value.cast("string")
    if kind.kind == "TIMESTAMP_LTZ":
        return F.concat(value.cast("string"), F.lit("Z"))
    if not _has(kind, ("TIMESTAMP", "TIMESTAMP_LTZ")):
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

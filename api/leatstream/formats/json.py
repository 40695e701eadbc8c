"""JSON record values and the declared column types, as Spark expressions only: real-time mode runs them.

Reading. A value is decodable when it is one JSON object and nothing else, each declared field has its
column's type, and no NOT NULL column is absent or null. Absent and null are the same: NULL. Undeclared fields
are passed over; of a field given twice the last counts; names are compared exactly. What each type takes is
the table of docs/sql/types.md. Spark's parser reads the records, and is asked only for what it reads exactly:
texts, whole numbers, FLOAT and DOUBLE. What the texts mean is for ``text_values``. Where a number or an
object was given as text, which the parser rewrites, ``json_slices`` cuts the value out of the record. Spark
plans each batch again, so these expressions stay small: one for a record's slices, little for a column.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.formats import json_slices, text_values
from leatstream.formats.json_values import Part, has, read, read_type
from leatstream.formats.json_writing import check_type
from leatstream.formats.plain_values import DEEPEST
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
    """An object around the text. The parser does not reach its end if the text ends early or continues."""
    return f"""concat('{{"r":', {_plain(place)}, ',"{_END}":true}}')"""


def _raw(place: Place, whole: DataType) -> str:
    """STRUCT of what Spark's parser reads: the record as ``r``, and whether the text ended behind it."""
    schema = _ddl(f"r {read_type(whole)}, {_LAST}")
    strict = f"from_json({_closed(place)}, {schema}, {_map_of(_OPTIONS)})"
    if not has(whole, ("FLOAT", "DOUBLE")):
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


def _pairs(place: Place, whole: DataType) -> list[tuple[str, DataType, str, Part]]:
    """Of each column its name, type, what the parser gave, and how that is read."""
    found = []
    for name, kind in zip(whole.fields, whole.arguments, strict=True):
        raw = f"{place.raw}.r.{text_values.tick(name)}"
        found.append((name, kind, raw, read(raw, kind, place.text)))
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


def _exact(place: Place, index: int, name: str, kind: DataType, raw: str, part: Part) -> tuple[str, str]:
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
        exact = text_values.bound(text, "t", text_values.decimal("t", kind))
        value = f"if({slices} IS NULL, {part.value}, {exact})"
        return value, f"({raw} IS NOT NULL AND {value} IS NULL)"
    return part.value, f"({part.unfit} OR {slices} IS NOT NULL AND {raw} IS NOT NULL AND NOT {quoted})"

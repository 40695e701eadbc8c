"""CAST, and the silent conversions that comparing and computing need."""

from __future__ import annotations

from leatstream.model.types import DataType
from leatstream.model.view_values import INTEGERS
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.values import Parameters, Value, convert, postgresql_type, typed

_INTO = {
    "integer": {"integer", "decimal", "float", "text", "boolean"},
    "decimal": {"integer", "decimal", "float", "text"},
    "float": {"integer", "decimal", "float", "text"},
    "text": {"integer", "decimal", "text", "boolean", "date", "moment"},
    "boolean": {"boolean", "text", "integer"},
    "date": {"date", "moment", "text"},
    "moment": {"date", "moment", "text"},
    "bytes": {"bytes"},
}


# What is rounded to infinity, and to zero: half a step from the largest and the smallest.
_BEYOND_FLOAT = "3.4028235677973366e38::double precision"
_BELOW_FLOAT = "7.006492321624085e-46::double precision"


def can_cast(given: DataType, wanted: DataType) -> bool:
    """Whether CAST is built for these types."""
    return kinds.family(given) in _INTO.get(kinds.family(wanted), set())


def plain_name(kind: DataType) -> str:
    """The name that the SQLite functions know a type by."""
    family = kinds.family(kind)
    if family in ("text", "float"):
        return {"text": "VARCHAR", "float": "DOUBLE"}[family]
    return kind.kind


def cast(value: Value, wanted: DataType, parameters: Parameters) -> Value:
    """``CAST(value AS wanted)``; the caller has asked ``can_cast``.

    Args:
        value: compiled.
        wanted: the type.
        parameters: of the statement, with its database.
    """
    given = value.kind
    if given is None:
        return Value("NULL", wanted)
    precision, scale = kinds.decimal_parts(wanted) if wanted.kind == "DECIMAL" else (0, 0)
    if parameters.database == "sqlite":
        if wanted.kind != "DECIMAL" and given.kind == "DECIMAL":
            scale = kinds.decimal_parts(given)[1]
        if _same(given, wanted):
            return Value(value.sql, wanted)
        name = wanted.kind if wanted == kinds.FLOAT else plain_name(wanted)
        names = f"'{plain_name(given)}', '{name}'"
        return Value(f"leat_cast({value.sql}, {names}, {precision}, {scale})", wanted)
    one, other = kinds.family(given), kinds.family(wanted)
    sql = f"({value.sql})"
    if one == "float" and other in ("integer", "decimal"):
        # By way of its text, as PostgreSQL would take 15 digits of it and no more.
        sql = f"{sql}::text::numeric"
    if other == "integer" and one in ("decimal", "float"):
        sql = f"trunc({sql})"
    elif other == "integer" and one == "boolean":
        sql = f"{sql}::integer"
    elif other == "integer" and one == "text":
        # As it stands: neither Spark nor PostgreSQL reads 1.5 or 1e3 as an integer.
        sql = f"{sql}::bigint"
    elif one == "integer" and other == "boolean":
        return Value(f"({sql} <> 0)", wanted)
    elif wanted == kinds.FLOAT:
        if given == kinds.FLOAT:
            return value
        if one in ("integer", "decimal"):
            return Value(f"{sql}::real::double precision", wanted)
        return single(Value(f"{sql}::double precision", kinds.DOUBLE), parameters)
    elif one == "moment" and other == "text":
        shown = "YYYY-MM-DD HH24:MI:SS.US"
        sql = f"rtrim(rtrim(to_char({sql}, '{shown}'), '0'), '.')"
    if wanted.kind == "TINYINT":
        # PostgreSQL has no such type: a value beyond it is an error of numeric's.
        return Value(f"(CASE WHEN {sql} BETWEEN -128 AND 127 THEN {sql} ELSE 32768 END)::smallint", wanted)
    return Value(typed(sql, wanted), wanted)


def _same(given: DataType, wanted: DataType) -> bool:
    one, other = kinds.family(given), kinds.family(wanted)
    if one == other == "integer":
        return INTEGERS.index(given.kind) <= INTEGERS.index(wanted.kind)
    return one == other and one != "decimal" and (wanted != kinds.FLOAT or given == wanted)


def single(value: Value, parameters: Parameters) -> Value:
    """A DOUBLE as the nearest FLOAT: infinite or zero where that has no such number."""
    sql = f"({value.sql})"
    if parameters.database == "sqlite":
        return Value(f"leat_cast({sql}, 'DOUBLE', 'FLOAT', 0, 0)", kinds.FLOAT)
    # PostgreSQL itself fails for these two.
    made = (
        f"(CASE WHEN abs({sql}) >= {_BEYOND_FLOAT} THEN {sql} * 'Infinity'::double precision"
        f" WHEN abs({sql}) <= {_BELOW_FLOAT} THEN {sql} * 0 ELSE {sql}::real END)::double precision"
    )
    return Value(made, kinds.FLOAT)


def adapt(value: Value, wanted: DataType, parameters: Parameters) -> Value:
    """A value as one of a type that it can become without loss, for comparing and mixing.

    Args:
        value: compiled.
        wanted: the type.
        parameters: of the statement; takes a literal's new value.

    Raises:
        ValueError: a literal that is no value of the type.
    """
    given = value.kind
    if given is None or given == wanted:
        return Value(value.sql, wanted)
    if value.constant is not None and kinds.family(given) != kinds.family(wanted):
        made = convert(value.constant, wanted)
        return Value(parameters.put(made, _wide(made, wanted)), wanted, made)
    one, other = kinds.family(given), kinds.family(wanted)
    if one == other:
        if one == "moment" and parameters.database == "postgresql" and given.kind != wanted.kind:
            # In UTC, as the connection is.
            return Value(f"({value.sql})::{postgresql_type(wanted)}", wanted)
        return Value(value.sql, wanted)
    if parameters.database == "postgresql":
        name = "numeric" if other == "decimal" else postgresql_type(wanted)
        return Value(f"({value.sql})::{name}", wanted)
    if other == "decimal":
        return Value(f"leat_cast({value.sql}, '{plain_name(given)}', 'DECIMAL', 38, 0)", wanted)
    return cast(value, wanted, parameters)


def _wide(value: object, wanted: DataType) -> DataType:
    """A DECIMAL literal keeps its own digits: compared with a column it need not fit the column's type."""
    if wanted.kind != "DECIMAL":
        return wanted
    digits = getattr(value, "as_tuple")()  # noqa: B009 - a Decimal
    scale = max(-int(digits.exponent), 0)
    return DataType(
        "DECIMAL", (min(max(len(digits.digits), scale, 1) + max(int(digits.exponent), 0), 38), min(scale, 38))
    )

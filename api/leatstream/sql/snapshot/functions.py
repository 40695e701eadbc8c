"""Which functions a SELECT over views may call: an allow list, with the form of each in both databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leatstream.model.types import DataType
from leatstream.model.view_values import MOST_CHARACTERS, TOO_LONG
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.values import Value

Kinds = Sequence[DataType]
# What is a letter's other case is asked of ICU, which knows them all; compared and sorted is by code point.
_CASED = '{word}({{0}} COLLATE "und-x-icu") COLLATE "C"'


@dataclass(frozen=True, slots=True)
class Function:
    """A function.

    Attributes:
        takes: families of the arguments; those after ``least`` may be left out. ``number`` is any number.
        least: how many arguments are needed.
        gives: type of the result.
        sqlite, postgresql: form of the call with ``{0}``, ``{1}``, … for arguments and ``{kind}`` for the
            first's type; a callable for what depends on the arguments.
    """

    takes: tuple[str, ...]
    least: int
    gives: Callable[[Kinds], DataType]
    sqlite: str | Callable[[Sequence[Value]], str]
    postgresql: str | Callable[[Sequence[Value]], str]


def _always(kind: DataType) -> Callable[[Kinds], DataType]:
    return lambda _: kind


def _first(given: Kinds) -> DataType:
    return given[0]


def _whole(given: Kinds) -> DataType:
    if given[0].kind != "DECIMAL":
        return kinds.BIGINT
    precision, scale = kinds.decimal_parts(given[0])
    return kinds.decimal(precision - scale + 1, 0)


def _text(sqlite: str, postgresql: str, *takes: str, least: int | None = None) -> Function:
    takes = takes or ("text",)
    return Function(takes, len(takes) if least is None else least, _always(kinds.VARCHAR), sqlite, postgresql)


def _real(word: str, postgresql: str) -> Function:
    return Function(("float",), 1, _always(kinds.DOUBLE), f"leat_math('{word}', {{0}})", postgresql)


def _field(unit: str) -> Function:
    name = {"dow": "dow", "doy": "doy"}.get(unit, unit)
    wanted = f"floor(extract({name} FROM {{0}}))::integer"
    return Function(
        ("moment",),
        1,
        _always(kinds.INTEGER),
        f"leat_field({{0}}, '{unit}')",
        f"({wanted} + 1)" if unit == "dow" else wanted,
    )


def _round_postgresql(arguments: Sequence[Value]) -> str:
    value = arguments[0]
    digits = arguments[1].sql if len(arguments) > 1 else "0"
    kind = value.kind
    if kind is None or kind.kind == "DECIMAL":
        scale = kinds.decimal_parts(kind)[1] if kind is not None else 0
        return f"round(round(({value.sql})::numeric, ({digits})::integer), {scale})"
    back = "double precision" if kinds.family(kind) == "float" else "bigint"
    whole = "numeric" if back == "bigint" else "text::numeric"
    return f"round(({value.sql})::{whole}, ({digits})::integer)::{back}"


# A text that is no integer carries the fault to PostgreSQL's store.
_LENGTH_OF_PAD = (
    f"(CASE WHEN {{1}} > {MOST_CHARACTERS} THEN '{TOO_LONG}' || ({{1}})::text"
    " ELSE ({1})::text END)::integer"
)
_LENGTH = Function(("text",), 1, _always(kinds.INTEGER), "leat_length({0})", "char_length({0})")
_SUBSTRING = Function(
    ("text", "integer", "integer"),
    2,
    _always(kinds.VARCHAR),
    lambda a: f"leat_substring({a[0].sql}, {a[1].sql}, {a[2].sql if len(a) > 2 else 2147483647})",
    lambda a: (
        f"substr({a[0].sql}, CASE WHEN {a[1].sql} > 0 THEN ({a[1].sql})::integer WHEN {a[1].sql} = 0 THEN 1"
        f" ELSE (char_length({a[0].sql}) + {a[1].sql} + 1)::integer END"
        + (f", greatest({a[2].sql}, 0)::integer)" if len(a) > 2 else ", 2000000000)")
    ),
)
_ABS = Function(("number",), 1, _first, "leat_abs({0}, '{kind}')", "abs({0})")
_CEIL = Function(("number",), 1, _whole, "leat_whole('ceil', {0}, '{kind}')", "ceil({0})::{gives}")
_UPPER = _text("leat_upper({0})", _CASED.format(word="upper"))
_LOWER = _text("leat_lower({0})", _CASED.format(word="lower"))
_POWER = Function(("float", "float"), 2, _always(kinds.DOUBLE), "leat_power({0}, {1})", "power({0}, {1})")
_DAYS = Function(("date", "date"), 2, _always(kinds.INTEGER), "({0} - {1})", "({0} - {1})")
_FIND = Function(("text", "text"), 2, _always(kinds.INTEGER), "leat_find({0}, {1})", "strpos({0}, {1})")
_LOCATE = Function(("text", "text"), 2, _always(kinds.INTEGER), "leat_find({1}, {0})", "strpos({1}, {0})")


def _test(form: str, postgresql: str) -> Function:
    return Function(("text", "text"), 2, _always(kinds.BOOLEAN), form, postgresql)


FUNCTIONS: dict[str, Function] = {
    "abs": _ABS,
    "ceil": _CEIL,
    "ceiling": _CEIL,
    "floor": Function(("number",), 1, _whole, "leat_whole('floor', {0}, '{kind}')", "floor({0})::{gives}"),
    "round": Function(
        ("number", "integer"),
        1,
        _first,
        lambda a: f"leat_round({a[0].sql}, {a[1].sql if len(a) > 1 else 0}, '{_name(a[0])}')",
        _round_postgresql,
    ),
    "sign": Function(
        ("number",), 1, _always(kinds.DOUBLE), "leat_sign({0}, '{kind}')", "sign({0})::double precision"
    ),
    "sqrt": _real("sqrt", "CASE WHEN {0} < 0 THEN 'NaN'::double precision ELSE sqrt({0}) END"),
    "exp": _real("exp", "exp({0})"),
    "ln": _real("ln", "CASE WHEN {0} > 0 THEN ln({0}) END"),
    "power": _POWER,
    "pow": _POWER,
    "upper": _UPPER,
    "ucase": _UPPER,
    "lower": _LOWER,
    "lcase": _LOWER,
    "length": _LENGTH,
    "len": _LENGTH,
    "char_length": _LENGTH,
    "character_length": _LENGTH,
    "reverse": _text("leat_reverse({0})", "reverse({0})"),
    "trim": _text("leat_trim({0}, 'b')", "btrim({0}, ' ')"),
    "ltrim": _text("leat_trim({0}, 'l')", "ltrim({0}, ' ')"),
    "rtrim": _text("leat_trim({0}, 'r')", "rtrim({0}, ' ')"),
    "substring": _SUBSTRING,
    "substr": _SUBSTRING,
    "left": Function(
        ("text", "integer"),
        2,
        _always(kinds.VARCHAR),
        "leat_substring({0}, 1, {1})",
        "left({0}, greatest({1}, 0)::integer)",
    ),
    "right": Function(
        ("text", "integer"),
        2,
        _always(kinds.VARCHAR),
        "leat_substring({0}, - min({1}, leat_length({0})), CASE WHEN {1} > 0 THEN {1} ELSE 0 END)",
        "right({0}, greatest({1}, 0)::integer)",
    ),
    "lpad": _text(
        "leat_pad({0}, {1}, {2}, 'l')", f"lpad({{0}}, {_LENGTH_OF_PAD}, {{2}})", "text", "integer", "text"
    ),
    "rpad": _text(
        "leat_pad({0}, {1}, {2}, 'r')", f"rpad({{0}}, {_LENGTH_OF_PAD}, {{2}})", "text", "integer", "text"
    ),
    "replace": _text("leat_replace({0}, {1}, {2})", "replace({0}, {1}, {2})", "text", "text", "text"),
    "startswith": _test("(leat_find({0}, {1}) = 1)", "starts_with({0}, {1})"),
    "contains": _test("(leat_find({0}, {1}) > 0)", "(strpos({0}, {1}) > 0)"),
    "instr": _FIND,
    "locate": _LOCATE,
    "position": _LOCATE,
    "year": _field("year"),
    "quarter": _field("quarter"),
    "month": _field("month"),
    "week": _field("week"),
    "day": _field("day"),
    "dayofmonth": _field("day"),
    "dayofyear": _field("doy"),
    "dayofweek": _field("dow"),
    "hour": _field("hour"),
    "minute": _field("minute"),
    "second": _field("second"),
    "datediff": _DAYS,
    "date_diff": _DAYS,
    "date_add": Function(
        ("date", "integer"), 2, _always(kinds.DATE), "({0} + {1})", "({0} + ({1})::integer)"
    ),
    "date_sub": Function(
        ("date", "integer"), 2, _always(kinds.DATE), "({0} - {1})", "({0} - ({1})::integer)"
    ),
    "unix_millis": Function(
        ("moment",),
        1,
        _always(kinds.BIGINT),
        "(leat_integer('DIV', {0} - (({0} % 1000) + 1000) % 1000, 1000, 'BIGINT'))",
        "floor(extract(epoch FROM {0}) * 1000)::bigint",
    ),
    "unix_seconds": Function(
        ("moment",),
        1,
        _always(kinds.BIGINT),
        "(leat_integer('DIV', {0} - (({0} % 1000000) + 1000000) % 1000000, 1000000, 'BIGINT'))",
        "floor(extract(epoch FROM {0}))::bigint",
    ),
}
FIELDS = {"doy": "dayofyear", "dow": "dayofweek"}
TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
# Written by rules of ``expressions``.
RULED = frozenset(
    [
        "coalesce",
        "nvl",
        "ifnull",
        "nullif",
        "if",
        "nvl2",
        "isnull",
        "isnotnull",
        "greatest",
        "least",
        "concat",
        "mod",
        "current_timestamp",
        "now",
        "current_date",
        "extract",
        "date_trunc",
    ]
)
KNOWN = FUNCTIONS.keys() | RULED
AGGREGATES = frozenset(
    [
        "count",
        "sum",
        "avg",
        "mean",
        "min",
        "max",
        "count_if",
        "bool_and",
        "bool_or",
        "every",
        "any",
        "some",
        "approx_count_distinct",
    ]
)


def _name(value: Value) -> str:
    kind = value.kind
    if kind is None:
        return "BIGINT"
    return "DOUBLE" if kinds.family(kind) == "float" else kind.kind

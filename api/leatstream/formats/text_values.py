"""Texts that stand for a day, a moment or a decimal number, as Spark SQL; in Python: ``plain_values``.

Spark's own casts take more than what is meant: a day of a number, a time of day as a moment of today, digits
beyond the scale rounded. Here a text either is the value exactly, or it is none: the SQL gives NULL.
"""

from __future__ import annotations

from leatstream.formats.plain_values import BASE64, DAY, DECIMAL, MOMENT, TIME
from leatstream.model.types import DataType

_FIRST, _LAST = "TIMESTAMP'0001-01-01 00:00:00Z'", "TIMESTAMP'9999-12-31 23:59:59.999999Z'"


def literal(text: str) -> str:
    """A text without apostrophes as a literal that means nothing by a backslash."""
    return f"r'{text}'"


def tick(name: str) -> str:
    """A column's or field's name."""
    return "`" + name.replace("`", "``") + "`"


def matches(value: str, pattern: str) -> str:
    """Whether the whole text matches a pattern."""
    return rf"{value} RLIKE r'\A(?:{pattern})\z'"


def day(text: str) -> str:
    """DATE of ``YYYY-MM-DD``, NULL of any other text."""
    return f"CASE WHEN {matches(text, DAY)} THEN try_cast({text} AS DATE) END"


def time_of_day(text: str) -> str:
    """TIME, which is kept as text, of ``hh:mm:ss[.f]``."""
    return f"CASE WHEN {matches(text, TIME)} THEN {text} END"


def moment(text: str, kind: str = "TIMESTAMP_LTZ") -> str:
    """TIMESTAMP_LTZ, or TIMESTAMP in UTC, of date and time of day; without a zone they are UTC."""
    # Spark's cast wants seconds before a zone.
    short = f"concat(left({text}, 16), ':00', substring({text}, 17))"
    full = f"if(substring({text}, 17, 1) IN ('', ':'), {text}, {short})"
    cast = f"try_cast({full} AS TIMESTAMP)"
    fits = f"{matches(text, MOMENT)} AND {cast} BETWEEN {_FIRST} AND {_LAST}"
    return (
        f"CASE WHEN {fits} THEN {cast if kind == 'TIMESTAMP_LTZ' else f'CAST({cast} AS TIMESTAMP_NTZ)'} END"
    )


def base64_bytes(text: str) -> str:
    """BINARY of base64 with its padding and without blanks."""
    return f"CASE WHEN {matches(text, BASE64)} THEN unbase64({text}) END"


def decimal(text: str, kind: DataType) -> str:
    """DECIMAL of a number's digits, NULL where it does not fit exactly; ``text`` is written several times."""
    precision, scale = _size(kind)
    spelled = f"try_cast({_spelled_out(text, precision, scale)} AS DECIMAL({precision}, {scale}))"
    return f"CASE {_when_plain(text, kind)} WHEN {matches(text, DECIMAL)} THEN {spelled} END"


def plain_decimal(text: str, kind: DataType) -> str:
    """The same of digits with or without a point, and NULL of a number with an exponent."""
    return f"CASE {_when_plain(text, kind)} END"


def _when_plain(text: str, kind: DataType) -> str:
    precision, scale = _size(kind)
    plain = rf"-?[0-9]+(?:\.(?=[0-9])[0-9]{{0,{scale}}}0*+)?"
    return f"WHEN {matches(text, plain)} THEN try_cast({text} AS DECIMAL({precision}, {scale}))"


def _size(kind: DataType) -> tuple[int, int]:
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
    return precision, scale


def bound(value: str, name: str, body: str) -> str:
    """SQL's missing ``let``: the body with a name for the value, which is computed once."""
    return f"get(transform(array({value}), {name} -> {body}), 0)"


def _spelled_out(text: str, precision: int, scale: int) -> str:
    """A number without its exponent, as text; NULL where it has more digits than there is room for."""
    mantissa = f"regexp_replace({text}, '[eE].*', '')"
    exponent = rf"regexp_extract({text}, r'[eE]\+?(-?[0-9]{{1,9}})\z', 1)"
    digits = r"ltrim('0', regexp_replace(n.m, '[-.]', ''))"
    behind = "length(regexp_extract(n.m, '[.](.*)', 1))"
    # Of a value d * 10^p without zeros at the end of d.
    width = "greatest(length(n.d), 1 - n.p)"
    point = f"concat(left(n.w, {width} + n.p), '.', right(n.w, -n.p))"
    point = bound(f"named_struct('d', n.d, 'p', n.p, 'w', lpad(n.d, {width}, '0'))", "n", point)
    unsigned = f"CASE WHEN n.p >= 0 THEN concat(n.d, repeat('0', n.p)) ELSE {point} END"
    body = (
        f"CASE WHEN n.d = '' THEN '0' WHEN n.p < -{scale} THEN NULL "
        f"WHEN length(n.d) + n.p > {precision - scale} THEN NULL "
        f"ELSE concat(if(n.m LIKE '-%', '-', ''), {unsigned}) END"
    )
    power = (
        "named_struct('m', n.m, 'd', rtrim('0', n.d), "
        f"'p', try_cast(n.e AS INT) - {behind} + length(n.d) - length(rtrim('0', n.d)))"
    )
    with_power = bound(power, "n", f"CASE WHEN n.d <> '' AND n.p IS NULL THEN NULL ELSE {body} END")
    with_digits = bound(f"named_struct('m', n.m, 'e', n.e, 'd', {digits})", "n", with_power)
    exponent = f"if({text} RLIKE '[eE]', {exponent}, '0')"
    return bound(f"named_struct('m', {mantissa}, 'e', {exponent})", "n", with_digits)

"""What Spark's JSON parser gives for a column of a type, and what is wrong with it, as Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass

from leatstream.formats import json_slices, text_values
from leatstream.formats.plain_values import TIME
from leatstream.model.types import DataType

_OF_TEXT = ("VARCHAR", "DECIMAL", "BYTES", "VARBINARY", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")


def read_type(kind: DataType) -> str:
    """The type the parser is asked for: what it is lenient with, it gives as text."""
    if kind.kind == "TINYINT":
        return "SMALLINT"  # it takes 128 to 255 for a byte, and wraps
    if kind.kind in _OF_TEXT:
        return "STRING"
    inner = [read_type(part) for part in kind.arguments]
    if kind.kind == "STRUCT":
        pairs = zip(kind.fields, inner, strict=True)
        return "STRUCT<" + ", ".join(f"{text_values.tick(name)}: {part}" for name, part in pairs) + ">"
    return f"{kind.kind}<{', '.join(inner)}>" if inner else kind.spark()


@dataclass(frozen=True, slots=True)
class Part:
    """SQL of a value that the parser gave, of whether it does not fit, and of whether its slice counts.

    ``doubt``: the parser may have rewritten the value. Both conditions may be NULL for false.
    """

    value: str
    unfit: str = ""
    doubt: str = ""


# A number with a fraction, an object, a list, or a quoted infinity: so the parser gives as text what is none.
_REWRITTEN = r"""["\[{]|-?[0-9]+[.][0-9]+(?:E-?[0-9]+)?\z"""
# The parser reads a number with a fraction as a double. One of 15 digits survives that, whatever they are.
# So a short number is the one in the record, unless the record has a longer one, or one with an exponent,
# that could have become it.
_KEPT = r"-?(?=[0-9.]{3,16}\z)[0-9]+[.][0-9]+"
_LONG = r"(?<![0-9.])(?=[0-9]*[.])[0-9.]{16}|[\s:\[,]-?[0-9.]+[eE]"


def read(raw: str, kind: DataType, text: str, depth: int = 0) -> Part:
    """What a value is that the parser gave for a column of that type."""
    if kind.kind == "VARCHAR":
        begins = f"{raw} < ':' OR startswith({raw}, '[') OR startswith({raw}, '{{')"
        rewritten = rf"{raw} RLIKE r'\A(?:{_REWRITTEN})' OR {raw} = '0' AND contains({text}, '-0')"
        # Half a character, which only an escape can give, has become a question mark.
        half = rf"contains({raw}, '?') AND contains({text}, r'\u')"
        return Part(raw, doubt=f"(({begins}) AND ({rewritten}) OR {half})")
    if kind.kind == "TINYINT":
        value = f"try_cast({raw} AS TINYINT)"
        return Part(value, f"({raw} IS NOT NULL AND {value} IS NULL)")
    if kind.kind == "DECIMAL":
        value = text_values.plain_decimal(raw, kind)
        kept = f"{text_values.matches(raw, _KEPT)} AND NOT {text} RLIKE r'{_LONG}'"
        doubt = f"({raw} < ':' AND NOT {text_values.matches(raw, '-?[0-9]+')} AND NOT ({kept}))"
        return Part(value, f"({raw} IS NOT NULL AND {value} IS NULL)", doubt)
    if kind.kind == "TIME":
        return Part(raw, f"NOT {text_values.matches(raw, TIME)}")
    if kind.kind in ("BYTES", "VARBINARY"):
        value = text_values.base64_bytes(raw)
        # A bare number of four digits looks like base64, and so does true.
        return Part(
            value, f"({raw} IS NOT NULL AND {value} IS NULL)", text_values.matches(raw, "[0-9]+|true")
        )
    if kind.kind in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        value = text_values.day(raw) if kind.kind == "DATE" else text_values.moment(raw, kind.kind)
        return Part(value, f"({raw} IS NOT NULL AND {value} IS NULL)")
    return _read_inside(raw, kind, text, depth) if kind.arguments else Part(raw)


def _read_inside(raw: str, kind: DataType, text: str, depth: int) -> Part:
    """The same of an ARRAY, MAP or STRUCT."""
    if kind.kind == "STRUCT":
        pairs = list(zip(kind.fields, kind.arguments, strict=True))
        parts = [read(f"{raw}.{text_values.tick(name)}", part, text, depth) for name, part in pairs]
        named = ", ".join(
            f"{json_slices.text_literal(name)}, {part.value}"
            for (name, _), part in zip(pairs, parts, strict=True)
        )
        value = f"if({raw} IS NULL, NULL, named_struct({named}))"
        unfit, doubt = (
            " OR ".join(filter(None, which))
            for which in zip(*((p.unfit, p.doubt) for p in parts), strict=True)
        )
        return Part(value, f"({unfit})" if unfit else "", f"({doubt})" if doubt else "")
    item = f"i{depth}"
    part = read(item, kind.arguments[-1], text, depth + 1)
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
    return Part(value, unfit, doubt)


def has(kind: DataType, kinds: tuple[str, ...]) -> bool:
    """Whether the type, or one inside it, is one of these."""
    return kind.kind in kinds or any(has(part, kinds) for part in kind.arguments)

"""Types of expressions over views: families, what two have in common, and Spark's rules for DECIMAL."""

from __future__ import annotations

from leatstream.model.types import DataType
from leatstream.model.view_values import FLOATS, INTEGERS, NESTED

BOOLEAN, BIGINT, INTEGER = DataType("BOOLEAN"), DataType("BIGINT"), DataType("INTEGER")
FLOAT, DOUBLE = DataType("FLOAT"), DataType("DOUBLE")
VARCHAR, DATE = DataType("VARCHAR"), DataType("DATE")
TIMESTAMP, TIMESTAMP_LTZ = DataType("TIMESTAMP"), DataType("TIMESTAMP_LTZ")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 20}
MOST_DIGITS, _LEAST_SCALE = 38, 6


def family(kind: DataType) -> str:
    """integer, decimal, float, text, bytes, boolean, date, moment or nested."""
    if kind.kind in INTEGERS:
        return "integer"
    if kind.kind in FLOATS:
        return "float"
    if kind.kind in NESTED:
        return "nested"
    return {
        "DECIMAL": "decimal",
        "BYTES": "bytes",
        "VARBINARY": "bytes",
        "BOOLEAN": "boolean",
        "DATE": "date",
        "TIMESTAMP": "moment",
        "TIMESTAMP_LTZ": "moment",
    }.get(kind.kind, "text")


def is_number(kind: DataType) -> bool:
    """Whether it can be computed with."""
    return family(kind) in ("integer", "decimal", "float")


def decimal_parts(kind: DataType) -> tuple[int, int]:
    """Precision and scale of a DECIMAL, or of the DECIMAL that holds an integer."""
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return precision, scale
    return _DIGITS[kind.kind], 0


def decimal(precision: int, scale: int) -> DataType:
    """A DECIMAL; too many digits are cut as Spark does: of the fraction, but six of it are kept."""
    if precision > MOST_DIGITS:
        whole = precision - scale
        scale = max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE))
        precision = MOST_DIGITS
    return DataType("DECIMAL", (precision, scale))


def common(left: DataType, right: DataType) -> DataType | None:
    """The type in which values of both can be compared or mixed; None if there is none."""
    if left.kind == right.kind and left.kind != "DECIMAL":
        same = family(left) != "nested" or left == right
        return DataType(left.kind, arguments=left.arguments, fields=left.fields) if same else None
    one, other = family(left), family(right)
    if {one, other} <= {"integer", "decimal", "float"}:
        if "float" in (one, other):
            return DOUBLE
        if one == other == "integer":
            return max(left, right, key=lambda kind: INTEGERS.index(kind.kind))
        (p1, s1), (p2, s2) = decimal_parts(left), decimal_parts(right)
        scale = max(s1, s2)
        return decimal(max(p1 - s1, p2 - s2) + scale, scale)
    if one == other:
        return TIMESTAMP_LTZ if one == "moment" else left
    if {one, other} == {"date", "moment"}:
        return left if one == "moment" else right
    return None


def arithmetic(operator: str, left: DataType, right: DataType) -> DataType:
    """The type of a sum, difference, product, quotient or rest of two numbers.

    Args:
        operator: ``DIV``, or one character.
        left: type of the first operand.
        right: type of the second one.
    """
    one, other = family(left), family(right)
    if left.kind == right.kind == "FLOAT" and operator in "+-*%":
        return FLOAT
    if "float" in (one, other):
        return DOUBLE
    if one == other == "integer":
        wider = max(left, right, key=lambda kind: INTEGERS.index(kind.kind))
        return BIGINT if operator == "DIV" else wider
    if operator == "DIV":
        return BIGINT
    (p1, s1), (p2, s2) = decimal_parts(left), decimal_parts(right)
    if operator == "*":
        return decimal(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(_LEAST_SCALE, s1 + p2 + 1)
        return decimal(p1 - s1 + s2 + scale, scale)
    if operator == "%":
        return decimal(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))
    scale = max(s1, s2)
    return decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)

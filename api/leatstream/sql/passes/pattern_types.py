"""Row patterns with their types known: what the matcher is given, and what it cannot do as Spark would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leatstream.errors import Faults, Position
from leatstream.model.types import DataType, from_spark
from leatstream.sql.passes.pattern_parts import Aggregate, Cell, Final, Operation, Part, Special

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 20}
_FLOATING = ("FLOAT", "DOUBLE")
_ORDERED = ("VARCHAR", "TIME", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "BYTES", "VARBINARY", "BOOLEAN")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_NESTED = ("ARRAY", "MAP", "STRUCT")
_MOST_DIGITS = 38
BIGINT, DOUBLE, BOOLEAN = DataType("BIGINT"), DataType("DOUBLE"), DataType("BOOLEAN")


class Typed:
    """Writes parts for the matcher.

    Args:
        types: of the cells, in Spark's words.
        faults: where is noted what does not fit.
    """

    def __init__(self, types: Sequence[str], faults: Faults) -> None:
        self._types = [_known(text) for text in types]
        self._names = types
        self._faults = faults

    def condition(self, part: Part, variable: str) -> list[Any]:
        """A condition of DEFINE."""
        node, kind = self.write(part)
        if kind is not None and kind.kind != "BOOLEAN":
            detail = f"The condition of {variable} is {kind}, not BOOLEAN."
            self._faults.add("type-mismatch", detail, position=part.position)
        return node

    def write(self, part: Part) -> tuple[list[Any], DataType | None]:
        """A node for the matcher and its type; None where NULL is all it can be."""
        if isinstance(part, Cell):
            where = part.navigation
            chosen = None
            if where is not None:
                variables = None if where.variables is None else list(where.variables)
                chosen = [variables, where.last, where.skip, where.shift]
            return ["cell", part.number, chosen, part.absent], self._cell(part.number, part.position)
        if isinstance(part, Final):
            node, kind = self.write(part.part)
            return ["final", node], kind
        if isinstance(part, Aggregate):
            return self._aggregate(part)
        if isinstance(part, Special):
            kinds = {"classifier": "VARCHAR", "number": "BIGINT", "time": "TIMESTAMP_LTZ"}
            return [part.name], DataType(kinds[part.name])
        return self._operation(part)

    def _cell(self, number: int, at: Position | None) -> DataType | None:
        kind = self._types[number]
        name = self._names[number]
        if kind is None and name.startswith("interval"):
            detail = "Rows are matched by values of the types that columns have, not by intervals."
            self._faults.add("unsupported", detail, position=at, hint="Take the two times apart.")
        elif kind is None and name != "void":
            detail = f"The type {name} has no form in a pattern."
            self._faults.add("unsupported", detail, position=at, hint="Name a field, or CAST it.")
        return kind

    def partition(self, number: int, at: Position | None) -> tuple[list[Any], DataType | None]:
        """A column of PARTITION BY."""
        kind = self._types[number]
        if kind is not None and kind.kind in _NESTED:
            detail = f"Rows are partitioned by values of simple types, not by {kind.kind}."
            self._faults.add("unsupported", detail, position=at, hint="Name a field, or an element.")
        return self.write(Cell(number, None, None, at))

    def _aggregate(self, part: Aggregate) -> tuple[list[Any], DataType | None]:
        variables = None if part.variables is None else list(part.variables)
        node = [part.name, part.number, variables]
        if part.name == "count":
            return node, BIGINT
        kind = self._cell(part.number, part.position) if part.number is not None else None
        shown = part.name.upper()
        if kind is not None and kind.kind in _NESTED and part.name in ("min", "max"):
            detail = f"{shown} of {kind.kind} is not supported here."
            hint = "Name a field, or an element."
            self._faults.add("unsupported", detail, position=part.position, hint=hint)
        if part.name in ("min", "max") or kind is None:
            return node, kind
        if kind.kind in _BITS:
            return node, BIGINT if part.name == "sum" else DOUBLE
        if kind.kind in _FLOATING:
            return node, DOUBLE
        if kind.kind == "DECIMAL" and part.name == "sum":
            precision, scale = _decimal(kind)
            return node, DataType("DECIMAL", (min(_MOST_DIGITS, precision + 10), scale))
        if kind.kind == "DECIMAL":
            hint = "Write SUM(x) / COUNT(x) in MEASURES, or cast x to DOUBLE."
            self._faults.add(
                "unsupported", f"{shown} of {kind} is not supported.", position=part.position, hint=hint
            )
        else:
            self._faults.add("type-mismatch", f"{shown} takes numbers, not {kind}.", position=part.position)
        return node, None

    def _operation(self, part: Operation) -> tuple[list[Any], DataType | None]:
        written = [self.write(one) for one in part.parts]
        nodes, kinds = [node for node, _ in written], [kind for _, kind in written]
        if part.name == "null":
            return ["null", "", *nodes], BOOLEAN
        if part.name in ("and", "or", "not"):
            wrong = next((kind for kind in kinds if kind is not None and kind.kind != "BOOLEAN"), None)
            if wrong is not None:
                detail = f"{part.name.upper()} takes BOOLEAN, not {wrong}."
                self._faults.add("type-mismatch", detail, position=part.position)
            return [part.name, "", *nodes], BOOLEAN
        one, other = kinds
        if one is None or other is None:
            compares = part.name in _COMPARISONS
            return [part.name, "exact", *nodes], BOOLEAN if compares else None
        if part.name in _COMPARISONS:
            return [part.name, self._compared(one, other, part.position), *nodes], BOOLEAN
        how, kind = self._computed(part, one, other)
        return [part.name, how, *nodes], kind

    def _compared(self, one: DataType, other: DataType, at: Position | None) -> str:
        if _numeric(one) and _numeric(other):
            if one.kind in _FLOATING or other.kind in _FLOATING:
                return "double"
            whole = max(p - s for p, s in (_decimal(one), _decimal(other)))
            if whole + max(_decimal(one)[1], _decimal(other)[1]) > _MOST_DIGITS:
                self._refuse("A comparison", one, other, at)
            return "exact"
        if one.kind != other.kind or one.kind not in _ORDERED:
            self._refuse("A comparison", one, other, at)
        return "exact"

    def _computed(self, part: Operation, one: DataType, other: DataType) -> tuple[str, DataType | None]:
        kinds = (one.kind, other.kind)
        whole = all(kind in _BITS for kind in kinds)
        if _numeric(one) and _numeric(other) and "FLOAT" not in kinds:
            if "DOUBLE" in kinds:
                return "double", DOUBLE
            if whole:
                widest = max(kinds, key=lambda kind: _BITS[kind])
                return str(_BITS[widest]), DataType(widest)
            (p, s), (q, t) = _decimal(one), _decimal(other)
            size = (p + q + 1, s + t) if part.name == "*" else (max(p - s, q - t) + max(s, t) + 1, max(s, t))
            if part.name != "/" and size[0] <= _MOST_DIGITS:
                return "decimal", DataType("DECIMAL", size)
        self._refuse(f"{part.name}", one, other, part.position)
        return "exact", None

    def _refuse(self, what: str, one: DataType, other: DataType, at: Position | None) -> None:
        both = f"{one} and {other}" if one != other else f"two {one}"
        detail = f"{what} of {both} from several rows is not supported in DEFINE."
        self._faults.add("unsupported", detail, position=at, hint="Cast both to one type, such as DOUBLE.")


def match_ddl(columns: Mapping[str, DataType], hidden: str) -> str:
    """The matches as Spark DDL."""
    return ", ".join([*(f"`{name}` {kind.spark()}" for name, kind in columns.items()), hidden])


def _known(text: str) -> DataType | None:
    try:
        return from_spark(text)
    except (ValueError, KeyError):
        return None


def _numeric(kind: DataType) -> bool:
    return kind.kind in _BITS or kind.kind in _FLOATING or kind.kind == "DECIMAL"


def _decimal(kind: DataType) -> tuple[int, int]:
    """Digits in all and behind the point."""
    if kind.kind in _DIGITS:
        return _DIGITS[kind.kind], 0
    return ((*kind.parameters, 0)[0], (*kind.parameters, 0)[1]) if kind.parameters else (10, 0)

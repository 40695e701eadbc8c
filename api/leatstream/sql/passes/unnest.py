"""UNNEST: which columns an array or map gives."""

from __future__ import annotations

from sqlglot import exp

from leatstream.errors import Position
from leatstream.model.names import quote
from leatstream.model.objects import HIDDEN_PREFIX
from leatstream.model.types import DataType
from leatstream.sql.passes.columns import Columns
from leatstream.sql.passes.expressions import check
from leatstream.sql.passes.functions import Functions
from leatstream.sql.passes.scope import Binding, Input, Output, Unnested, place

_NO_AGGREGATES = "UNNEST comes before grouping"


def bind_unnest(node: exp.Expression, inputs: list[Input], binding: Binding) -> Input:
    """The rows that UNNEST adds to each row of the inputs on its left.

    Args:
        node: from the parser.
        inputs: what its argument may name.
        binding: of the statement; what is wrong is noted there.
    """
    faults, value = binding.faults, node.expressions[0]
    check(value, Columns(inputs, faults), Functions(inputs, faults, _NO_AGGREGATES))
    given: list[tuple[str, Position]] = node.meta["columns"]
    alias: tuple[str, Position] | None = node.meta["alias"]
    for name, position in [*given, *([alias] if alias else [])]:
        if name.lower().startswith(HIDDEN_PREFIX):
            detail = f"Names that start with {HIDDEN_PREFIX} belong to leatstream."
            faults.add("validation", detail, position=position)
    if any(i.keyed for i in inputs):
        detail = "UNNEST of a changelog is not supported: its rows change."
        faults.add("unsupported", detail, position=place(node), hint="Write the changelog into a stream.")
    known: DataType | None = value.meta.get("type")
    function, parts = _parts(known, len(given))
    columns: tuple[Output, ...] | None = None
    if function is None:
        detail = f"UNNEST takes an ARRAY or a MAP, and this is {known}."
        if known is None:
            detail = "UNNEST of an expression gives one column: a MAP or STRUCTs are known of columns only."
        faults.add("type-mismatch", detail, position=place(value))
    elif not given and any(name is None for name, _ in parts):
        hint = "Write AS t (x)." if len(parts) == 1 else "Write AS t (k, v)."
        faults.add("sql-syntax", "UNNEST needs names for its columns.", position=place(node), hint=hint)
    elif given and len(given) != len(parts):
        detail = f"UNNEST gives {len(parts)} columns here, and {len(given)} are named."
        faults.add("type-mismatch", detail, position=given[0][1])
    else:
        names = [name for name, _ in given] or [str(name) for name, _ in parts]
        columns = tuple(Output(name, kind) for name, (_, kind) in zip(names, parts, strict=True))
        _check_twice(names, given, place(node), binding)
    rows = Unnested(value, function or "explode", node.meta["outer"])
    shown = quote(alias[0]) if alias else "UNNEST"
    return Input(binding.next_ref(), (alias[0],) if alias else (), shown, columns, unnested=rows)


def _parts(
    known: DataType | None, wanted: int
) -> tuple[str | None, list[tuple[str | None, DataType | None]]]:
    """Spark's function, and its columns: name, where the type has one, and type."""
    if known is None:
        return ("explode" if wanted < 2 else None), [(None, None)]
    if known.kind == "MAP":
        return "explode", [(None, known.arguments[0]), (None, known.arguments[1])]
    if known.kind != "ARRAY":
        return None, []
    element = known.arguments[0]
    if element.kind == "STRUCT":
        return "inline", list(zip(element.fields, element.arguments, strict=True))
    return "explode", [(None, element)]


def _check_twice(
    names: list[str], given: list[tuple[str, Position]], whole: Position | None, binding: Binding
) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            at = given[index][1] if given else whole
            binding.faults.add("ambiguous-column", f"UNNEST has the column {quote(name)} twice.", position=at)

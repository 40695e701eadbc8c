"""UNION, EXCEPT and INTERSECT of two SELECTs over views."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from leatstream.model.names import quote
from leatstream.model.types import DataType
from leatstream.sql.passes.scope import place
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.shared import Made, Shared
from leatstream.sql.snapshot.values import typed


def combined(shared: Shared, node: exp.Expression, left: Made, right: Made) -> Made:
    """Put two SELECTs into one; columns go by their place, and by the names of the first.

    Args:
        shared: of the whole statement.
        node: UNION, EXCEPT or INTERSECT.
        left: the first SELECT.
        right: the second one.
    """
    compared = node.meta.get("compared")
    shown = f"an {compared}" if compared else "a UNION"
    if len(left.names) != len(right.names):
        shared.faults.add(
            "type-mismatch",
            f"Each SELECT of {shown} has the same number of columns: the first has {len(left.names)},"
            f" this one {len(right.names)}.",
            position=place(node.expression),
        )
        return left
    types: list[DataType | None] = []
    for name, one, other in zip(left.names, left.types, right.types, strict=True):
        wide = one or other
        if one is not None and other is not None:
            wide = kinds.common(one, other)
            if wide is None or kinds.family(one) != kinds.family(other):
                detail = f"The column {quote(name)} is {one} in one SELECT and {other} in the other."
                shared.faults.add(
                    "type-mismatch", detail, position=place(node.expression), hint="Write CAST(… AS …)."
                )
        types.append(wide)
    # SQLite takes no SELECT in parentheses there.
    word = compared or ("UNION" if node.meta.get("distinct") else "UNION ALL")
    in_postgres = shared.parameters.database == "postgresql"
    sides = [_side(made, types if in_postgres else made.types) for made in (left, right)]
    return Made(f" {word} ".join(sides), left.names, types)


def _side(made: Made, types: Sequence[DataType | None]) -> str:
    """One of both. PostgreSQL takes a column of NULLs for texts, so there it is made one of ``types``."""
    shown = [
        f"{typed(f'o{i}', wanted)} AS o{i}" if given is None and wanted is not None else f"o{i}"
        for i, (given, wanted) in enumerate(zip(made.types, types, strict=True))
    ]
    return f"SELECT {', '.join(shown)} FROM ({made.sql}) AS u"  # noqa: S608 - compiled

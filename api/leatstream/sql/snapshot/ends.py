"""ORDER BY, LIMIT and OFFSET of a SELECT over views."""

from __future__ import annotations

from sqlglot import exp

from leatstream.sql.passes.scope import place
from leatstream.sql.snapshot.expressions import Expressions
from leatstream.sql.snapshot.shared import Made, Shared
from leatstream.sql.snapshot.values import Value


def ended(
    shared: Shared, query: Made, node: exp.Expression, rows: Expressions | None, *, distinct: bool
) -> Made:
    """Write the end of a query behind it.

    Args:
        shared: of the whole text.
        query: what it follows.
        node: the query as it was parsed.
        rows: what ORDER BY may name beside the columns of the result; None after a set operator.
        distinct: whether duplicate rows have been removed by then, so that ORDER BY sees the result alone.
    """
    parts = []
    ends = node.meta.get("ends") or {}
    for item in ends.get("order") or ():
        sql = _sorted(shared, item.value, query, rows, distinct)
        first = not item.descending if item.nulls_first is None else item.nulls_first
        # Spark sorts NULL below everything.
        parts.append(f"{sql}{' DESC' if item.descending else ''} NULLS {'FIRST' if first else 'LAST'}")
    sql = query.sql + (f" ORDER BY {', '.join(parts)}" if parts else "")
    limit, offset = ends.get("limit"), ends.get("offset")
    if limit is not None or offset is not None:
        most = "-1" if shared.parameters.database == "sqlite" else "ALL"
        sql += f" LIMIT {_whole(shared, limit, 'LIMIT') if limit is not None else most}"
        sql += f" OFFSET {_whole(shared, offset, 'OFFSET')}" if offset is not None else ""
    return Made(sql, query.names, query.types)


def _whole(shared: Shared, node: exp.Expression, what: str) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal() and len(node.this) < 10:
        return int(node.this)
    shared.faults.add("type-mismatch", f"{what} takes a whole number.", position=place(node))
    return 0


def _sorted(
    shared: Shared, node: exp.Expression, query: Made, rows: Expressions | None, distinct: bool
) -> str:
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
        digits = node.this.lstrip("0")
        if digits and len(digits) < 10 and int(digits) <= len(query.names):
            return str(int(digits))
        detail = f"ORDER BY {node.this[:20]}: there are {len(query.names)} columns."
        shared.faults.add("unknown-column", detail, position=place(node))
        return "1"
    parts = node.meta.get("parts") if isinstance(node, exp.Column) else None
    if parts is not None and len(parts) == 1 and parts[0][0] in query.names:
        return str(query.names.index(parts[0][0]) + 1)
    if rows is None or distinct:
        hint = "Name the column, or give its number."
        what = "ORDER BY of an expression after UNION or SELECT DISTINCT"
        shared.refuse(what, place(node), hint)
        return "1"
    found: Value = rows.value(node)
    return found.sql

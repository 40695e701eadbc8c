"""Quotients: ``/`` over two whole numbers gives a whole number, which Spark's ``/`` does not.

Only the engine's analyzer knows the operands' types. So a query is first compiled with ``%`` in place of
each ``/`` that is still open: both take the same operands, and a remainder of two whole numbers has the
wider of their types. What the analyzer says of the remainders settles the quotients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from leatstream.model.types import from_spark
from leatstream.model.view_values import INTEGERS
from leatstream.plan.logical import AnalyzedColumn, Origin, Quotient

# The type of each quotient that is settled; None for one that is not a whole number.
Settled = Mapping[Origin, str | None]
_SETTLED = "quotient"
TRY_DIVIDE = "try_divide"


def mark(select: exp.Expression, settled: Settled) -> None:
    """Note on each quotient of a query, before it is bound, what is known of it."""
    for node in nodes(select):
        if is_quotient(node) and origin_of(node) in settled:
            node.meta[_SETTLED] = (settled[origin_of(node)],)


def nodes(select: exp.Expression) -> Iterator[Any]:
    """Everything in a query, what WITH names too."""
    for node in select.walk():
        yield node
        for _, query in node.meta.get("ctes", ()):
            yield from nodes(query)


def is_quotient(node: exp.Expression) -> bool:
    """Whether it is ``/``, or the function that gives NULL for a division by zero."""
    return isinstance(node, exp.Div) or (isinstance(node, exp.Anonymous) and str(node.this) == TRY_DIVIDE)


def origin_of(node: exp.Expression) -> Origin:
    """What distinguishes a quotient from all others of the statement, also in copies of it."""
    return (id(node.meta.get("source")), *(node.meta.get("span") or (0, 0)))


def is_open(node: exp.Expression) -> bool:
    """Whether a quotient's type is still to be asked for."""
    return is_quotient(node) and _SETTLED not in node.meta


def whole_type(node: exp.Expression) -> str | None:
    """The type of whole numbers that a quotient has; None for others, and for one that is open."""
    found: tuple[str | None] = node.meta.get(_SETTLED, (None,))
    return found[0]


def probe(sql: str, quotients: Sequence[Quotient]) -> str:
    """The SQL with a remainder in each quotient's place, character by character."""
    text = list(sql)
    for quotient in quotients:
        text[quotient.operator] = "%"
    return "".join(text)


def settle(quotients: Sequence[Quotient], found: Iterable[AnalyzedColumn]) -> dict[Origin, str | None]:
    """What the analyzer's answer says: a column for each place that it has found, named by its number."""
    types = {quotients[int(column.name)].origin: _whole(column.type) for column in found}
    return {quotient.origin: types.get(quotient.origin) for quotient in quotients}


def _whole(spark_type: str) -> str | None:
    try:
        kind = from_spark(spark_type).kind
    except (ValueError, KeyError):
        return None
    return kind if kind in INTEGERS else None

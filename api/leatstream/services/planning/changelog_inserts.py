"""INSERT INTO what has a primary key, a changelog or a table: each row replaces the one of its key."""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.errors import Position, RequestError
from leatstream.model.names import quote
from leatstream.model.objects import Relation
from leatstream.plan.logical import AnalyzedColumn, LogicalPlan


def check_upserts(
    logical: LogicalPlan, analyzed: Sequence[AnalyzedColumn], target: Relation, position: Position
) -> None:
    """Check that what the SELECT gives can be upserted under the target's primary key.

    Rows of a stream are upserts as they are. Groups without a window, and rows of a changelog, replace each
    other and are taken back by a key of their own, which must be the target's.

    Args:
        logical: the bound SELECT.
        analyzed: its columns, as Spark types them.
        target: the changelog.
        position: where a fault is shown.

    Raises:
        RequestError: unsupported.
    """
    if logical.distinct:
        raise RequestError(
            "unsupported",
            f"DISTINCT leaves out a row that was written before, so {target.fqn} could never go back to it.",
            position=position,
            hint="Leave DISTINCT out: writing the same row again changes nothing.",
        )
    if not logical.primary_key:
        return
    by_place = {column.name: item.name for item, column in zip(analyzed, target.columns, strict=True)}
    wanted = [by_place[key] for key in target.primary_key]
    if sorted(wanted) != sorted(logical.primary_key):
        own, needed = (", ".join(map(quote, names)) for names in (logical.primary_key, wanted))
        key = ", ".join(map(quote, target.primary_key))
        raise RequestError(
            "unsupported",
            f"The SELECT's rows replace each other by {own}, but the primary key of {target.fqn}, {key}, "
            f"would be {needed}: rows of one key could be taken back by another.",
            position=position,
            hint=f"Give {own} at the places of the primary key, or make a changelog of its own.",
        )

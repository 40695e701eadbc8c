"""Whether the role that owns a query may still read and write what the query does."""

from __future__ import annotations

from leatstream.errors import AccessError
from leatstream.model.objects import Query
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Principal
from leatstream.services.environment.authorization import rights_in
from leatstream.services.environment.desk import Desk, denied
from leatstream.services.planning.access import Wanted, reading, writing


def revoked(unit: UnitOfWork, query: Query) -> AccessError | None:
    """The refusal of a query whose owner has lost privileges since it was created; None if it may run.

    Args:
        unit: an open unit that shows everything.
        query: that is about to start.
    """
    rights = rights_in(unit, query.meta.owner)
    if rights.everything:
        return None
    desk = Desk(Principal(query.meta.created_by, query.meta.owner, rights), unit)
    wanted: list[Wanted] = []
    for name in query.sources:
        relation = unit.relations.find(name)
        wanted += reading(desk, relation) if relation is not None else []
    sink = unit.relations.find(query.sink)
    if sink is not None and not query.kind.makes_sink:
        wanted += writing(desk, sink)
    missing = desk.missing(list(dict.fromkeys(wanted)))
    return denied(query.meta.owner, missing) if missing else None

"""What a statement needs to be granted for all that it touches; what is missing is named at once."""

from __future__ import annotations

from collections.abc import Iterable

from leatstream.model.access import CREATE_ON, Privilege
from leatstream.model.names import quote
from leatstream.model.objects import Relation
from leatstream.ports import UnitOfWork
from leatstream.services.environment.desk import Desk, denied, desk_of

Wanted = tuple[Privilege, str, str, str | None]


def require_reading(unit: UnitOfWork, relations: Iterable[Relation]) -> None:
    """SELECT on each relation, and USAGE on what it is in.

    Args:
        unit: of the principal.
        relations: that are read; planned ones are the principal's own.

    Raises:
        AccessError: permission-denied, naming everything that is missing.
    """
    desk = desk_of(unit)
    if desk is not None:
        found = [relation for relation in relations if relation.meta.generation > 0]
        wanted = [one for relation in found for one in reading(desk, relation)]
        desk.require(*dict.fromkeys(wanted))


def require_writing(unit: UnitOfWork, relation: Relation) -> None:
    """INSERT on a relation that exists, and USAGE on what it is in.

    Args:
        unit: of the principal.
        relation: that is written to.

    Raises:
        AccessError: permission-denied, naming everything that is missing.
    """
    desk = desk_of(unit)
    if desk is not None and relation.meta.generation > 0:
        desk.require(*writing(desk, relation))


def require_new_relation(
    unit: UnitOfWork, relation: Relation, *, creates: bool, written: bool, query: bool
) -> None:
    """What a new relation needs: its place in the catalog, its store, and its entity there.

    Args:
        unit: of the principal.
        relation: that would be made.
        creates: whether its entity is made with it.
        written: whether a query writes to the entity.
        query: whether a query is made with it.

    Raises:
        AccessError: permission-denied, naming everything that is missing.
    """
    desk = desk_of(unit)
    if desk is None:
        return
    name = str(relation.fqn)
    schema = f"{quote(relation.fqn.database)}.{quote(relation.fqn.schema)}"
    wanted: list[Wanted] = [(CREATE_ON["relation"], "schema", schema, None), *desk.path("relation", name)]
    if query:
        wanted.append((CREATE_ON["query"], "organization", "", None))
    missing = desk.missing(wanted)
    if relation.store:
        missing += _missing_in_store(desk, relation, creates=creates, written=written)
    if missing:
        raise denied(desk.who.role, missing)


def require_lost_entity(unit: UnitOfWork, relation: Relation) -> None:
    """What it takes to make the entity of a relation again, where the store has lost it.

    Args:
        unit: of the principal.
        relation: as it is stored.

    Raises:
        AccessError: permission-denied, naming everything that is missing.
    """
    desk = desk_of(unit)
    if desk is None:
        return
    missing = desk.missing([(Privilege.MODIFY, "relation", str(relation.fqn), relation.meta.owner)])
    missing += _missing_in_store(desk, relation, creates=True, written=False)
    if missing:
        raise denied(desk.who.role, missing)


def reading(desk: Desk, relation: Relation) -> list[Wanted]:
    """What it takes to read a relation: USAGE on what it is in, and SELECT."""
    return _of_relation(desk, Privilege.SELECT, relation)


def writing(desk: Desk, relation: Relation) -> list[Wanted]:
    """What it takes to write to a relation: USAGE on what it is in, and INSERT."""
    return _of_relation(desk, Privilege.INSERT, relation)


def _of_relation(desk: Desk, privilege: Privilege, relation: Relation) -> list[Wanted]:
    name = str(relation.fqn)
    return [*desk.path("relation", name), (privilege, "relation", name, relation.meta.owner)]


def _missing_in_store(
    desk: Desk, relation: Relation, *, creates: bool, written: bool
) -> list[tuple[Privilege, str]]:
    found = desk.unit.stores.find(relation.store)
    if found is None:  # a planned one is the principal's own
        return []
    if creates:
        needed: tuple[Privilege, ...] = (Privilege.CREATE_ENTITY,)
    else:
        # Who declares a relation can read what is in its entity.
        needed = (Privilege.READ_ENTITY, *((Privilege.WRITE_ENTITY,) if written else ()))
    owner = found.meta.owner
    return [
        *desk.missing([(Privilege.USAGE, "store", quote(found.name), owner)]),
        *desk.missing_on_entity(found.name, relation.entity, needed, owner),
    ]

"""What a principal may do with the objects of one unit of work; refusals name what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.errors import AccessError, sentence
from leatstream.model.access import ENTITY_PRIVILEGES, NAME_PARTS, ORGANIZATION, Privilege
from leatstream.model.names import quote
from leatstream.ports import UnitOfWork
from leatstream.services.environment.rights import Rights, usage_of

if TYPE_CHECKING:
    from leatstream.services.environment import Environment, Principal

# Repositories of a unit of work, and the kinds of objects in them that can be granted on.
NOUNS = {
    "databases": "database",
    "schemas": "schema",
    "relations": "relation",
    "stores": "store",
    "named_secrets": "secret",
    "schema_registries": "schema_registry",
    "descriptor_sources": "descriptor_source",
    "function_sources": "function_source",
    "functions": "function",
    "queries": "query",
    "applications": "application",
}


def name_of(kind: str, key: str) -> str:
    """The name of an object in grants, from its key in the catalog."""
    return key if NAME_PARTS[kind] > 1 else quote(key)


def key_of(kind: str, name: str) -> str:
    """The catalog's key of an object, from its name as SQL writes it."""
    quoted = name.startswith('"') and NAME_PARTS[kind] == 1
    return name[1:-1].replace('""', '"') if quoted else name


def rows_of(unit: UnitOfWork, kind: str) -> Any:
    """The repository of a kind of object that can be granted on."""
    return getattr(unit, next(noun for noun, its in NOUNS.items() if its == kind))


def object_of(unit: UnitOfWork, kind: str, name: str) -> Any:
    """The object of this kind and name that the unit shows; else None.

    Args:
        unit: an open unit.
        kind: of the object.
        name: as SQL writes it.
    """
    return rows_of(unit, kind).find(key_of(kind, name))


def denied(role: str, wanted: Sequence[tuple[Privilege, str]]) -> AccessError:
    """The refusal that names every missing privilege.

    Args:
        role: that the principal acts in.
        wanted: privileges and what they are missing on, as people name it.
    """
    missing = " and ".join(f"{p.value.upper()} on {what}" for p, what in dict.fromkeys(wanted))
    return AccessError(
        "permission-denied",
        sentence(f"Role {role} lacks {missing}"),
        hint=f"Its owner can run {grant_of(role, *wanted[0])}.",
    )


def grant_of(role: str, privilege: Privilege, what: str) -> str:
    """The statement that grants a missing privilege.

    Args:
        role: that lacks it.
        privilege: the missing one.
        what: it is missing on, as people name it.
    """
    return f"GRANT {privilege.value.upper()} ON {_sql_name(what)} TO ROLE {quote(role)}"


def _sql_name(what: str) -> str:
    kind, _, name = what.partition(" ")
    return "ORGANIZATION" if what == "the organization" else f"{kind.upper()} {name}"


@dataclass(slots=True)
class Desk:
    """Answers for one unit what the principal may do with the objects in it."""

    who: Principal
    unit: UnitOfWork

    @property
    def rights(self) -> Rights:
        """The principal's."""
        return self.who.rights

    def owner(self, kind: str, name: str) -> str | None:
        """The role that owns a container or store, where it exists."""
        found = object_of(self.unit, kind, name)
        return None if found is None else str(found.meta.owner)

    def may(self, privilege: Privilege, kind: str, name: str = "", owner: str | None = None) -> bool:
        """Whether a privilege is held; the owner is looked up where it is not given.

        Args:
            privilege: that is needed.
            kind: of the object.
            name: as SQL writes it, or empty for the organization.
            owner: the role that owns it.
        """
        if owner is None and kind != ORGANIZATION and not self.rights.everything:
            owner = self.owner(kind, name)
        return self.rights.may(privilege, kind, name, owner)

    def missing(
        self, wanted: Sequence[tuple[Privilege, str, str, str | None]]
    ) -> list[tuple[Privilege, str]]:
        """Which of (privilege, kind, name, owner) are missing, as people name them."""
        return [
            (privilege, f"{kind} {name}" if kind != ORGANIZATION else "the organization")
            for privilege, kind, name, owner in wanted
            if not self.may(privilege, kind, name, owner)
        ]

    def require(self, *wanted: tuple[Privilege, str, str, str | None]) -> None:
        """AccessError naming every missing one of (privilege, kind, name, owner)."""
        missing = self.missing(wanted)
        if missing:
            raise denied(self.who.role, missing)

    def missing_on_entity(
        self, store: str, entity: str, privileges: Sequence[Privilege], owner: str | None
    ) -> list[tuple[Privilege, str]]:
        """Which privileges on an entity are missing, as people name them.

        Args:
            store: name of its store.
            entity: its name.
            privileges: that are needed.
            owner: the role that owns the store.
        """
        name = quote(store)
        return [
            (one, f"store {name} entities '{entity}'")
            for one in privileges
            if not self.rights.may_entity(one, name, entity, owner)
        ]

    def path(self, kind: str, name: str) -> list[tuple[Privilege, str, str, str | None]]:
        """USAGE on what a relation or schema is in."""
        return [(*one, None) for one in usage_of(kind, name)]


def require_on_entity(env: Environment, store: str, entity: str, *privileges: Privilege) -> None:
    """Privileges on one entity of a store that the principal sees.

    Args:
        env: of the principal.
        store: name of the store.
        entity: its name.
        *privileges: that are needed.

    Raises:
        AccessError: permission-denied, naming everything that is missing.
    """
    with env.open_unit(write=False) as unit:
        desk, found = desk_of(unit), unit.stores.find(store)
    if desk is not None and found is not None:
        missing = desk.missing_on_entity(store, entity, privileges, found.meta.owner)
        if missing:
            raise denied(desk.who.role, missing)


def visible_entities(env: Environment, store: str) -> Callable[[str], bool]:
    """Which entities of a store the principal sees: those on which it has any privilege.

    Args:
        env: of the principal.
        store: name of the store.
    """
    with env.open_unit(write=False) as unit:
        desk, found = desk_of(unit), unit.stores.find(store)
    if desk is None or found is None:
        return lambda _: True
    rights, owner = desk.rights, found.meta.owner
    return lambda entity: any(
        rights.may_entity(one, quote(store), entity, owner) for one in ENTITY_PRIVILEGES
    )


def require_ownership(rows: object, item: object) -> None:
    """AccessError unless the principal owns an object: before it learns what depends on it.

    Args:
        rows: the repository, of the principal's unit.
        item: the object.
    """
    check = getattr(rows, "require_ownership", None)
    if check is not None:
        check(item)


def desk_of(unit: UnitOfWork) -> Desk | None:
    """Who answers for the unit's principal; None where everything is open to it."""
    return getattr(unit, "desk", None)

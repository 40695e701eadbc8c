"""What a principal may do: the grants of its roles, ready to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from leatstream.model.access import (
    BUILT_IN,
    ENTITY_PRIVILEGES,
    OBJECT_PRIVILEGES,
    ORGANIZATION,
    Grant,
    Privilege,
    Scope,
    with_included,
)
from leatstream.model.names import quote, split

_NONE: frozenset[Privilege] = frozenset()
_OF_ROLE: dict[str, tuple[Privilege, ...]] = {
    "useradmin": (Privilege.MANAGE_MEMBERS,),
    "securityadmin": (Privilege.MANAGE_GRANTS, Privilege.AUDIT),
    "sysadmin": tuple(
        p
        for p in OBJECT_PRIVILEGES[ORGANIZATION]
        if p not in (Privilege.MANAGE_MEMBERS, Privilege.MANAGE_GRANTS, Privilege.AUDIT)
    ),
    "reader": (Privilege.MONITOR,),
}


@dataclass(frozen=True, slots=True)
class Rights:
    """The effective rights of one principal.

    Attributes:
        roles: its role and all that this one includes or inherits.
        scope: how far its token reaches.
        everything: whether every object is open to it.
        reads: whether it may read every object.
        grants: (kind, name) to privileges; the organization's name is empty.
        all_in: (kind, kind of container, name of container) to privileges.
        entities: (store, privilege) to patterns; None matches all.
        grantable: grants that may be handed on.
        containers: (kind, name) of what holds a granted object: seen by name.
    """

    roles: frozenset[str]
    scope: Scope = Scope.ADMIN
    everything: bool = False
    reads: bool = False
    grants: Mapping[tuple[str, str], frozenset[Privilege]] = field(default_factory=dict)
    all_in: Mapping[tuple[str, str, str], frozenset[Privilege]] = field(default_factory=dict)
    entities: Mapping[tuple[str, Privilege], tuple[str | None, ...]] = field(default_factory=dict)
    grantable: frozenset[Grant] = frozenset()
    containers: frozenset[tuple[str, str]] = frozenset()

    def looks_only(self, role: str) -> bool:
        """Whether a role is built in and nothing was granted to it, nor to what it includes or to public."""
        granted = bool(self.all_in) or any(kind != ORGANIZATION for kind, _ in self.grants)
        return role in BUILT_IN and not self.everything and not granted

    def lack_some_of(self, before: Rights) -> bool:
        """Whether anything of other rights is missing here."""
        if self is before or self.everything:
            return False
        return (
            before.everything
            or self.reads < before.reads
            or not self.roles >= before.roles
            or any(not self.grants.get(key, _NONE) >= held for key, held in before.grants.items())
            or any(not self.all_in.get(key, _NONE) >= held for key, held in before.all_in.items())
            or any(not {*self.entities.get(key, ())} >= {*held} for key, held in before.entities.items())
        )

    def on(self, kind: str, name: str, owner: str | None = None) -> frozenset[Privilege]:
        """The privileges on one object.

        Args:
            kind: of the object.
            name: as SQL writes it, or empty for the organization.
            owner: the role that owns it, where known.
        """
        if kind != ORGANIZATION and (self.everything or owner in self.roles):
            return frozenset(OBJECT_PRIVILEGES[kind])
        found = self.grants.get((kind, name), _NONE)
        # Pages ask for thousands of names, and to take one apart takes the longest.
        for within, container in containers_of(kind, name) if self.all_in else ():
            found |= self.all_in.get((kind, within, container), _NONE)
        if self.reads and kind != ORGANIZATION:
            found |= _READING & frozenset(OBJECT_PRIVILEGES[kind])
        return found

    def names(self, kind: str) -> list[str] | None:
        """Names of the objects of a kind that grants make visible; None: all of a place, or all."""
        if self.everything or self.reads or any(one == kind for one, _, _ in self.all_in):
            return None
        return [name for one, name in (*self.grants, *self.containers) if one == kind]

    def may(self, privilege: Privilege, kind: str, name: str = "", owner: str | None = None) -> bool:
        """Whether a privilege is held on an object.

        Args:
            privilege: that is needed.
            kind: of the object.
            name: as SQL writes it, or empty for the organization.
            owner: the role that owns it, where known.
        """
        return privilege in self.on(kind, name, owner)

    def sees(self, kind: str, name: str, owner: str | None = None) -> bool:
        """Whether the object exists for this principal: it holds any privilege on it, or on what is in it.

        Args:
            kind: of the object.
            name: as SQL writes it.
            owner: the role that owns it, where known.
        """
        return bool(self.on(kind, name, owner)) or (kind, name) in self.containers

    def may_entity(self, privilege: Privilege, store: str, entity: str, owner: str | None) -> bool:
        """Whether a privilege is held on one entity of a store.

        Args:
            privilege: one of ``ENTITY_PRIVILEGES``.
            store: name of the store as SQL writes it.
            entity: its name in the store.
            owner: the role that owns the store.
        """
        held = self.on("store", store, owner)
        if Privilege.OWNERSHIP in held or privilege in self.all_in.get(("store", ORGANIZATION, ""), _NONE):
            return True
        patterns = self.entities.get((store, privilege), (None,))
        return privilege in held and any(one is None or _matches(one, entity) for one in patterns)


_READING = frozenset(
    {Privilege.USAGE, Privilege.SELECT, Privilege.MONITOR, Privilege.READ_ENTITY},
)


def containers_of(kind: str, name: str) -> list[tuple[str, str]]:
    """What an object is in, as (kind, name): the organization, its database, its schema."""
    if kind == ORGANIZATION:
        return []
    found = [(ORGANIZATION, "")]
    if kind in ("schema", "relation"):
        parts = split(name)
        found.append(("database", quote(parts[0])))
        if kind == "relation":
            found.append(("schema", ".".join(map(quote, parts[:2]))))
    return found


def usage_of(kind: str, name: str) -> list[tuple[Privilege, str, str]]:
    """What it takes to reach an object, beside privileges on it: USAGE on what it is in.

    Args:
        kind: of the object.
        name: as SQL writes it.
    """
    within = [one for one in containers_of(kind, name) if one[0] != ORGANIZATION]
    return [(Privilege.USAGE, *one) for one in within]


def _containers(
    grants: Iterable[tuple[str, str]], all_in: Iterable[tuple[str, str, str]]
) -> frozenset[tuple[str, str]]:
    inner = {one for kind, name in grants for one in containers_of(kind, name)}
    for _, within, container in all_in:
        inner |= {(within, container), *containers_of(within, container)}
    return frozenset(one for one in inner if one[0] != ORGANIZATION)


def _matches(pattern: str, entity: str) -> bool:
    if pattern.endswith("*"):
        return entity.startswith(pattern[:-1])
    return entity == pattern


def rights_of(roles: Iterable[str], grants: Iterable[Grant] = (), scope: Scope = Scope.ADMIN) -> Rights:
    """Rights of roles, with the grants of those that are not built in.

    Args:
        roles: all effective ones.
        grants: of these roles.
        scope: of the token.
    """
    effective = frozenset(one for role in roles for one in with_included(role)) | {"public"}
    everything = "sysadmin" in effective
    named: dict[tuple[str, str], set[Privilege]] = {}
    all_in: dict[tuple[str, str, str], set[Privilege]] = {}
    entities: dict[tuple[str, Privilege], list[str | None]] = {}
    for role in effective & _OF_ROLE.keys():
        named.setdefault((ORGANIZATION, ""), set()).update(_OF_ROLE[role])
    handed_on = set()
    for grant in grants:
        on = grant.on
        if grant.grant_option:
            handed_on.add(grant)
        if on.name is None:
            all_in.setdefault((on.kind, on.within or ORGANIZATION, on.container or ""), set()).add(
                grant.privilege
            )
            continue
        named.setdefault((on.kind, on.name), set()).add(grant.privilege)
        if grant.privilege in ENTITY_PRIVILEGES:
            entities.setdefault((on.name, grant.privilege), []).append(on.entities)
    return Rights(
        roles=effective,
        scope=scope,
        everything=everything,
        reads="reader" in effective,
        grants={key: frozenset(found) for key, found in named.items()},
        all_in={key: frozenset(found) for key, found in all_in.items()},
        entities={key: tuple(found) for key, found in entities.items()},
        grantable=frozenset(handed_on),
        containers=_containers(named, all_in),
    )


@lru_cache(maxsize=64)
def built_in_rights(role: str) -> Rights:
    """Rights of a built-in role, or of another one without its grants."""
    return rights_of([role])

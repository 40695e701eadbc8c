"""Who may do what: privileges, the objects they are granted on, roles, and the accounts that hold them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leatstream.model.objects import Meta


class Privilege(StrEnum):
    """What a role can be granted. ``OBJECT_PRIVILEGES`` says on which kinds of object."""

    USAGE = "usage"
    SELECT = "select"
    INSERT = "insert"
    MODIFY = "modify"
    MONITOR = "monitor"
    OPERATE = "operate"
    OWNERSHIP = "ownership"
    READ_ENTITY = "read_entity"
    WRITE_ENTITY = "write_entity"
    CREATE_ENTITY = "create_entity"
    DROP_ENTITY = "drop_entity"
    CREATE_SCHEMA = "create_schema"
    CREATE_RELATION = "create_relation"
    CREATE_DATABASE = "create_database"
    CREATE_STORE = "create_store"
    CREATE_SECRET = "create_secret"  # noqa: S105 - a privilege
    CREATE_SCHEMA_REGISTRY = "create_schema_registry"
    CREATE_DESCRIPTOR_SOURCE = "create_descriptor_source"
    CREATE_FUNCTION = "create_function"
    CREATE_QUERY = "create_query"
    CREATE_APPLICATION = "create_application"
    USE_MACHINE_CREDENTIALS = "use_machine_credentials"
    MANAGE_MEMBERS = "manage_members"
    MANAGE_GRANTS = "manage_grants"
    AUDIT = "audit"


P = Privilege
ORGANIZATION = "organization"
_USED = (P.USAGE, P.OWNERSHIP)
_RUN = (P.MONITOR, P.OPERATE, P.OWNERSHIP)
ENTITY_PRIVILEGES = (P.READ_ENTITY, P.WRITE_ENTITY, P.CREATE_ENTITY, P.DROP_ENTITY)
# Sources of functions hold code that runs with the driver's rights, so no grant gives their creation.
OBJECT_PRIVILEGES: dict[str, tuple[Privilege, ...]] = {
    ORGANIZATION: (
        P.CREATE_DATABASE,
        P.CREATE_STORE,
        P.CREATE_SECRET,
        P.CREATE_SCHEMA_REGISTRY,
        P.CREATE_DESCRIPTOR_SOURCE,
        P.CREATE_FUNCTION,
        P.CREATE_QUERY,
        P.CREATE_APPLICATION,
        P.USE_MACHINE_CREDENTIALS,
        P.MONITOR,
        P.MANAGE_MEMBERS,
        P.MANAGE_GRANTS,
        P.AUDIT,
    ),
    "database": (P.USAGE, P.CREATE_SCHEMA, P.MODIFY, P.OWNERSHIP),
    "schema": (P.USAGE, P.CREATE_RELATION, P.MODIFY, P.OWNERSHIP),
    "relation": (P.SELECT, P.INSERT, P.MODIFY, P.OWNERSHIP),
    "store": (P.USAGE, *ENTITY_PRIVILEGES, P.MODIFY, P.OWNERSHIP),
    "secret": (P.USAGE, P.MODIFY, P.OWNERSHIP),
    "schema_registry": (P.USAGE, P.MODIFY, P.OWNERSHIP),
    "descriptor_source": (P.USAGE, P.MODIFY, P.OWNERSHIP),
    "function_source": _USED,
    "function": _USED,
    "query": _RUN,
    "application": _RUN,
}
KINDS = tuple(kind for kind in OBJECT_PRIVILEGES if kind != ORGANIZATION)
NAME_PARTS = {kind: {"schema": 2, "relation": 3}.get(kind, 1) for kind in KINDS}
# What holds objects of a kind, for grants on all of them, now and later.
CONTAINERS: dict[str, tuple[str, ...]] = {
    kind: {"schema": (ORGANIZATION, "database"), "relation": (ORGANIZATION, "database", "schema")}.get(
        kind, (ORGANIZATION,)
    )
    for kind in KINDS
}
CREATE_ON: dict[str, Privilege] = {
    "database": P.CREATE_DATABASE,
    "schema": P.CREATE_SCHEMA,
    "relation": P.CREATE_RELATION,
    "store": P.CREATE_STORE,
    "secret": P.CREATE_SECRET,
    "schema_registry": P.CREATE_SCHEMA_REGISTRY,
    "descriptor_source": P.CREATE_DESCRIPTOR_SOURCE,
    "function": P.CREATE_FUNCTION,
    "query": P.CREATE_QUERY,
    "application": P.CREATE_APPLICATION,
}


def plural(kind: str) -> str:
    """``query`` gives ``queries``."""
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """The object of a grant, by name, or all objects of a kind in a container.

    Attributes:
        kind: of the object, a key of ``OBJECT_PRIVILEGES``.
        name: as SQL writes it; None: all in the container. Empty for the organization.
        within: kind of the container.
        container: its name as SQL writes it; empty for the organization.
        entities: entities of a store that the grant is for, exact or ending in ``*``; None = all.
    """

    kind: str
    name: str | None = None
    within: str | None = None
    container: str | None = None
    entities: str | None = None

    def __str__(self) -> str:
        if self.kind == ORGANIZATION:
            return "the organization"
        if self.name is not None:
            entities = f", entities {self.entities}" if self.entities is not None else ""
            return f"{self.kind.replace('_', ' ')} {self.name}{entities}"
        where = "" if self.within == ORGANIZATION else f" in {self.within} {self.container}"
        return f"all {plural(self.kind).replace('_', ' ')}{where}"


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One privilege of a role on one target.

    Attributes:
        grant_option: whether the role may grant it to others.
    """

    privilege: Privilege
    on: Target
    grant_option: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A named set of grants.

    Attributes:
        inherits: roles whose grants it has too.
        grants: its own.
    """

    meta: Meta
    name: str
    inherits: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    comment: str | None = None


class AccountKind(StrEnum):
    """Whether a person or a program signs in."""

    USER = "user"
    SERVICE_ACCOUNT = "service_account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A person or a program that can have tokens.

    Attributes:
        roles: that it may act in.
        default_role: of its tokens that name none.
        disabled: no token of it is accepted.
    """

    meta: Meta
    name: str
    kind: AccountKind
    roles: tuple[str, ...] = ()
    default_role: str | None = None
    disabled: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What makes a user of a person: by a link with a value, or by sign-in with a verified address.

    Attributes:
        mail: address, in lower case; the user's name.
        hash: SHA-256 (hex) of the link's value, whose public part is in the id.
        roles: that the user may act in.
        default_role: one of them.
        scope: of the person's first token, and of those of the identity provider.
        expires_at: from then on it counts no more.
    """

    meta: Meta
    mail: str
    hash: str
    roles: tuple[str, ...]
    default_role: str
    scope: Scope
    expires_at: datetime
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedIdentity:
    """A principal of an identity provider that acts as a user of this server.

    Attributes:
        name: ``issuer#subject``.
        account: name of the user.
        scope: of its tokens.
    """

    meta: Meta
    name: str
    account: str
    scope: Scope


# ASCII only: other letters become these ones in lower case, such as the sign of Kelvin.
_MAIL = re.compile(r"[!#-'*+\-./0-9=?A-Z^_`a-z{|}~]{1,64}@[0-9A-Za-z](?:[0-9A-Za-z.-]{0,250}[0-9A-Za-z])?\Z")


def mail_address(text: str) -> str | None:
    """A mail address in the form in which addresses are compared: lower case; None if it is none."""
    return text.lower() if _MAIL.match(text) else None


def is_issuers(name: str) -> bool:
    """Whether a name is kept for principals of identity providers: ``issuer#subject``."""
    return name.startswith(("http://", "https://")) and "#" in name


class Scope(StrEnum):
    """How far a token reaches; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One secret value of an API token; while a token is rotated, it has two.

    Attributes:
        id: opaque, the part of the value that is not secret.
        hash: SHA-256 (hex) of the value.
        name: of the token; its values share it.
        principal: name of its account.
        role: that it acts in.
        scope: how far it reaches.
        created_by: name of who made it.
        last_used_at: to the hour.
    """

    id: str
    hash: str
    name: str
    principal: str
    role: str
    scope: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    comment: str | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """A change of the catalog, or an attempt that was refused.

    Attributes:
        operation: ``create``, ``update``, ``delete``, or for one that was refused the HTTP method.
        kind: of the object; for one that was refused ``request``, or ``sign_in`` if nobody was signed in.
        name: of the object, or the path.
        outcome: ``allowed`` or ``denied``.
        token: id of the token.
        request: id of the request.
        address: of the client.
        code: of the error.
        detail: why a sign-in was refused.
        count: sign-ins that were refused for this reason, where the event stands for more than one.
        number: its place in the log, from 1; 0 before it is stored.
        hash: SHA-256 (hex) over the hash before and this event.
    """

    at: datetime
    principal: str
    role: str
    operation: str
    kind: str
    name: str
    outcome: str
    token: str | None = None
    request: str | None = None
    address: str | None = None
    code: str | None = None
    detail: str | None = None
    count: int | None = None
    number: int = 0
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which events of the audit log are wanted; None = any.

    Attributes:
        account: name of the account.
        operation: what was done, such as ``create``.
        kind: of the object.
        q: part of the object's name or of the path, in any case.
        outcome: ``allowed`` or ``denied``.
        since: events of this time and later.
        until: events before this time.
    """

    account: str | None = None
    operation: str | None = None
    kind: str | None = None
    q: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None


ANY_EVENT = AuditFilter()


BUILT_IN: dict[str, str] = {
    "orgadmin": "Has every privilege: includes sysadmin and securityadmin.",
    "sysadmin": "Owns what it makes and may do everything with every object.",
    "securityadmin": "Manages roles and grants, and reads the audit log; includes useradmin.",
    "useradmin": "Manages users, service accounts and their tokens.",
    "reader": "Sees every object and reads every record.",
    "public": "Everybody has it; its grants are everybody's.",
}
_INCLUDES = {"orgadmin": ("sysadmin", "securityadmin"), "securityadmin": ("useradmin",)}


BUILT_IN_ROLE = "built in"  # in lists, in place of the number of its grants


def has_own_rights(role: str) -> bool:
    """Whether it is a built-in role whose rights are no grants; those of ``public`` are."""
    return role in BUILT_IN and role != "public"


def with_included(role: str) -> tuple[str, ...]:
    """A built-in role and those that it includes; another role alone."""
    return (role, *(r for included in _INCLUDES.get(role, ()) for r in with_included(included)))

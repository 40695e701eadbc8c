"""Catalog objects to table rows and back.

A row's columns hold the object's ``Meta`` and its key; its document holds every other field under the field's
own name, so a new field with a default needs no migration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa

from leatstream.model.access import Account, Invitation, LinkedIdentity, Role
from leatstream.model.functions import FunctionSource, UserFunction
from leatstream.model.names import quote
from leatstream.model.objects import Database, Meta, Query, Relation, Schema, Store
from leatstream.model.registered import (
    Application,
    DescriptorSource,
    EntityDrop,
    Savepoint,
    SchemaRegistry,
    Secret,
    SessionDefaults,
)
from leatstream.storage import tables

T = TypeVar(
    "T",
    Database,
    Schema,
    Store,
    Relation,
    Query,
    Secret,
    SchemaRegistry,
    DescriptorSource,
    FunctionSource,
    UserFunction,
    SessionDefaults,
    Application,
    Savepoint,
    EntityDrop,
    Role,
    Account,
    Invitation,
    LinkedIdentity,
)

_META = tuple(field.name for field in fields(Meta))


@dataclass(frozen=True, slots=True)
class Noun(Generic[T]):
    """How one kind of object is kept.

    Attributes:
        word: what people call it, for errors.
        type: its class.
        table: its table.
        key: its unique, exact name.
    """

    word: str
    type: type[T]
    table: sa.Table
    key: Callable[[T], str]


def _schema_key(schema: Schema) -> str:
    return f"{quote(schema.database)}.{quote(schema.name)}"


DATABASES: Noun[Database] = Noun("database", Database, tables.databases, lambda d: d.name)
SCHEMAS: Noun[Schema] = Noun("schema", Schema, tables.schemas, _schema_key)
STORES: Noun[Store] = Noun("store", Store, tables.stores, lambda s: s.name)
RELATIONS: Noun[Relation] = Noun("relation", Relation, tables.relations, lambda r: str(r.fqn))
QUERIES: Noun[Query] = Noun("query", Query, tables.queries, lambda q: q.name)

SECRETS: Noun[Secret] = Noun("secret", Secret, tables.named_secrets, lambda s: s.name)
SCHEMA_REGISTRIES: Noun[SchemaRegistry] = Noun(
    "schema registry", SchemaRegistry, tables.schema_registries, lambda r: r.name
)
DESCRIPTOR_SOURCES: Noun[DescriptorSource] = Noun(
    "descriptor source", DescriptorSource, tables.descriptor_sources, lambda d: d.name
)
FUNCTION_SOURCES: Noun[FunctionSource] = Noun(
    "function source", FunctionSource, tables.function_sources, lambda s: s.name
)
FUNCTIONS: Noun[UserFunction] = Noun("function", UserFunction, tables.functions, lambda f: f.name)
SESSION_DEFAULTS: Noun[SessionDefaults] = Noun(
    "defaults of", SessionDefaults, tables.session_defaults, lambda d: d.name
)
APPLICATIONS: Noun[Application] = Noun("application", Application, tables.applications, lambda a: a.name)
SAVEPOINTS: Noun[Savepoint] = Noun("savepoint", Savepoint, tables.savepoints, lambda s: s.name)
ENTITY_DROPS: Noun[EntityDrop] = Noun(
    "drop of", EntityDrop, tables.entity_drops, lambda d: EntityDrop.key_of(d.store, d.entity)
)
ROLES: Noun[Role] = Noun("role", Role, tables.roles, lambda r: r.name)
ACCOUNTS: Noun[Account] = Noun("account", Account, tables.accounts, lambda a: a.name)
INVITATIONS: Noun[Invitation] = Noun("invitation of", Invitation, tables.invitations, lambda i: i.mail)
LINKED_IDENTITIES: Noun[LinkedIdentity] = Noun(
    "account of", LinkedIdentity, tables.linked_identities, lambda i: i.name
)
NOUNS: tuple[Noun[Any], ...] = (
    DATABASES,
    SCHEMAS,
    STORES,
    RELATIONS,
    QUERIES,
    SECRETS,
    SCHEMA_REGISTRIES,
    DESCRIPTOR_SOURCES,
    FUNCTION_SOURCES,
    FUNCTIONS,
    SESSION_DEFAULTS,
    APPLICATIONS,
    SAVEPOINTS,
    ENTITY_DROPS,
    ROLES,
    ACCOUNTS,
    INVITATIONS,
    LINKED_IDENTITIES,
)


def look_into(*kinds: type) -> None:
    """Let msgspec look into classes while they are imported, which one thread does.

    It would at their first use, and keeps what it finds before it is complete: a second thread that comes by
    then ends the process with a segmentation fault (msgspec 0.22).
    """
    for kind in kinds:
        msgspec.json.Decoder(kind)


look_into(*(noun.type for noun in NOUNS))


def to_row(noun: Noun[T], item: T) -> dict[str, Any]:
    """The object as values of its table's columns."""
    document = msgspec.to_builtins(item)
    del document["meta"]
    meta = {name: getattr(item.meta, name) for name in _META}
    return {**meta, "key": noun.key(item), "document": document}


def from_row(noun: Noun[T], row: Mapping[str, Any]) -> T:
    """The object of a row.

    Raises:
        msgspec.ValidationError: the document does not fit the class; the message says where.
    """
    meta = {name: row[name] for name in _META}
    return msgspec.convert({**row["document"], "meta": meta}, noun.type)


def encode_json(value: Any) -> str:
    """A document as JSON text."""
    return msgspec.json.encode(value).decode()


def decode_json(text: str | bytes) -> Any:
    """A document from JSON text."""
    return msgspec.json.decode(text)

"""What may stand where an object is named: a construct, or the name itself."""

from __future__ import annotations

from typing import TypeAlias

from leatstream_cdktf import l1
from leatstream_cdktf._construct import describe

StoreLike: TypeAlias = l1.Store | l1.DataStore | str
DatabaseLike: TypeAlias = l1.Database | l1.DataDatabase | str
SchemaLike: TypeAlias = l1.Schema | l1.DataSchema | str
RoleLike: TypeAlias = l1.Role | l1.DataRole | str
_Kinds: TypeAlias = tuple[
    type[l1.Store | l1.DataStore | l1.Database | l1.DataDatabase | l1.Role | l1.DataRole], ...
]


def _name_of(value: object, what: str, kinds: _Kinds) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, kinds):
        return value.name
    raise TypeError(
        f"{describe(value)} stands where a {what} belongs; give a construct of that kind, or its name"
    )


def store_name(store: StoreLike) -> str:
    """The name of a store: a reference, when it is a construct, so that Terraform makes it first.

    Raises:
        TypeError: it is something else.
    """
    return _name_of(store, "store", (l1.Store, l1.DataStore))


def database_name(database: DatabaseLike) -> str:
    """The name of a database: a reference, when it is a construct, so that Terraform makes it first.

    Raises:
        TypeError: it is something else.
    """
    return _name_of(database, "database", (l1.Database, l1.DataDatabase))


def owner_name(owner: RoleLike | None) -> str | None:
    """The name of the role that owns an object; None = it stays as it is.

    Raises:
        TypeError: it is something else.
    """
    return None if owner is None else _name_of(owner, "role", (l1.Role, l1.DataRole))


def schema_names(schema: SchemaLike, database: DatabaseLike | None) -> tuple[str, str]:
    """The names of a database and a schema, from a Schema construct or from names.

    Raises:
        TypeError: one of them is of another kind.
        ValueError: the schema's construct and a database are both given, or a schema's name without a
            database.
    """
    if isinstance(schema, str):
        if database is None:
            raise ValueError(
                f"schema is the name {schema!r}, so database must be given too (or give a Schema construct)"
            )
        return database_name(database), schema
    if not isinstance(schema, (l1.Schema, l1.DataSchema)):
        raise TypeError(
            f"schema is {describe(schema)}; give a Schema construct, or schema= and database= by name"
        )
    if database is not None:
        raise ValueError("schema is a construct, which knows its database; leave database out")
    return schema.database, schema.name

"""Databases and schemas, which give relations their names."""

from __future__ import annotations

from typing import Unpack

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l2._names import DatabaseLike, RoleLike, database_name, owner_name


class Database(l1.Database):
    """A database: ``Database(self, "demo")``.

    leatstream gives every database a schema ``public``, so that one is not declared: a stream belongs to it
    with ``schema="public", database=demo``.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a database.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            name: the database's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …
        """
        super().__init__(
            scope, id_, name=id_ if name is None else name, comment=comment, owner=owner_name(owner), **meta
        )


class Schema(l1.Schema):
    """A schema of a database: ``Schema(self, "shop", database=demo)``.

    The schema ``public`` is there already, as of every database: declaring it fails.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        database: DatabaseLike,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a schema.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            database: the database, as a construct or by name.
            name: the schema's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …
        """
        super().__init__(
            scope,
            id_,
            database=database_name(database),
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            **meta,
        )

"""Tables: relations over tables of a store, such as PostgreSQL's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l1 import TableColumn
from leatstream_cdktf.l2._columns import Columns
from leatstream_cdktf.l2._names import (
    DatabaseLike,
    RoleLike,
    SchemaLike,
    StoreLike,
    owner_name,
    schema_names,
    store_name,
)
from leatstream_cdktf.l2._relation import place, text_properties


class Table(l1.Table):
    """A table that is there in a store: queries write it, and joins look rows up in it.

    ::

        products = Table(self, "products", schema=public, store=shop_db, topic="sales.products")
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        schema: SchemaLike,
        store: StoreLike,
        columns: Columns | None = None,
        primary_key: Sequence[str] | None = None,
        database: DatabaseLike | None = None,
        name: str | None = None,
        topic: str | None = None,
        properties: Mapping[str, str | int | bool] | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a table.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            schema: the schema that it belongs to, as a construct, or by name together with ``database``.
            store: the store that holds it, as a construct or by name.
            columns: SQL types by column name, or a list, as of a stream; the store's own when left out.
            primary_key: unique columns by which written rows replace each other; with ``columns`` left out
                the store's own.
            database: the database of a schema that is given by name.
            name: the table's exact name; ``id_`` when left out.
            topic: the store's table, as ``table`` or ``schema.table``; the name when left out.
            properties: other properties of the WITH clause.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: the arguments do not go together; the message names all that is wrong with the
                columns.
        """
        listed: list[TableColumn] | None = None
        if columns is not None:
            at = place(f"Table {id_!r}", schema, database, store, columns)
            listed = [TableColumn(**column) for column in at.columns]
        #: The database and schema, for queries that read this table.
        self.context = schema_names(schema, database)
        exact = id_ if name is None else name
        #: The store's table.
        self.topic_name = exact if topic is None else topic
        super().__init__(
            scope,
            id_,
            name=exact,
            database=self.context[0],
            schema=self.context[1],
            columns=listed,
            primary_key=None if primary_key is None else list(primary_key),
            store=store_name(store),
            topic=topic,
            properties=text_properties(properties),
            comment=comment,
            owner=owner_name(owner),
            **meta,
        )

    @property
    def sql_name(self) -> str:
        """The table's full name as SQL reads it: a reference, so Terraform makes it first."""
        return self.fqn_attribute

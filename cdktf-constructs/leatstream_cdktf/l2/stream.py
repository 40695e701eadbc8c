"""Streams: relations over topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l2._columns import Columns
from leatstream_cdktf.l2._names import DatabaseLike, RoleLike, SchemaLike, StoreLike, owner_name
from leatstream_cdktf.l2._relation import place, text_properties


class Stream(l1.Stream):
    """A stream over a topic of a store.

    ::

        pageviews = Stream(
            self, "pageviews", schema=public, store=kafka,
            columns={"viewtime": "BIGINT", "userid": "VARCHAR", "pageid": "VARCHAR"},
            value_format="json",
        )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        schema: SchemaLike,
        store: StoreLike,
        columns: Columns,
        value_format: str = "json",
        database: DatabaseLike | None = None,
        name: str | None = None,
        topic: str | None = None,
        key_format: str | None = None,
        key_type: str | None = None,
        timestamp: str | None = None,
        timestamp_format: str | None = None,
        properties: Mapping[str, str | int | bool] | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a stream.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            schema: the schema that it belongs to, as a construct, or by name together with ``database``.
            store: the store that its topic lies in, as a construct or by name.
            columns: SQL types by column name (``{"userid": "VARCHAR NOT NULL"}``), or a list of
                ``{"name": …, "type": …, "not_null": …, "comment": …}``.
            value_format: format of the records' values.
            database: the database of a schema that is given by name.
            name: the stream's exact name; ``id_`` when left out.
            topic: the topic; the stream's name when left out.
            key_format: format of the records' keys, such as ``primitive``.
            key_type: SQL type of a primitive key.
            timestamp: the column that holds the event time; the record's own time when left out.
            timestamp_format: ``sql`` or ``iso8601``, as the writer does it; both are always read.
            properties: other properties of the WITH clause, such as ``{"topic.partitions": 3}``.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: the arguments do not go together; the message names all that is wrong with the
                columns.
        """
        at = place(f"Stream {id_!r}", schema, database, store, columns)
        #: The database and schema, for queries that read this stream.
        self.context = (at.database, at.schema)
        exact = id_ if name is None else name
        #: The topic's name.
        self.topic_name = exact if topic is None else topic
        super().__init__(
            scope,
            id_,
            name=exact,
            database=at.database,
            schema=at.schema,
            columns=at.columns,
            store=at.store,
            topic=topic,
            value_format=value_format,
            key_format=key_format,
            key_type=key_type,
            timestamp=timestamp,
            timestamp_format=timestamp_format,
            properties=text_properties(properties),
            comment=comment,
            owner=owner_name(owner),
            **meta,
        )

    @property
    def sql_name(self) -> str:
        """The stream's full name as SQL reads it: a reference, so Terraform makes the stream first."""
        return self.fqn_attribute

"""Queries: SQL that runs until it is stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, Unpack

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta, describe
from leatstream_cdktf._sql import fill, tidy
from leatstream_cdktf.l2._names import (
    DatabaseLike,
    RoleLike,
    SchemaLike,
    StoreLike,
    owner_name,
    schema_names,
    store_name,
)
from leatstream_cdktf.l2._relation import text_properties
from leatstream_cdktf.l2._sources import Context, Source, given_context, left_most_context, source_name
from leatstream_cdktf.l2._statement import Sink, check_form, create_as
from leatstream_cdktf.l2.changelog import Changelog
from leatstream_cdktf.l2.stream import Stream
from leatstream_cdktf.l2.table import Table

#: What INSERT INTO writes to.
Target: TypeAlias = "l1.Stream | l1.DataStream | l1.Changelog | l1.DataChangelog | l1.Table | l1.DataTable"
_TARGETS = (l1.Stream, l1.DataStream, l1.Changelog, l1.DataChangelog, l1.Table, l1.DataTable)


class Query(l1.Query):
    """A query, which runs as a job of its own until it is stopped or destroyed.

    ::

        Query(
            self, "enriched",
            sql="SELECT p.*, u.regionid FROM {pageviews} p "
                "JOIN {users} u WITHIN 5 MINUTES ON p.userid = u.userid",
            sources={"pageviews": pageviews, "users": users},
            sink=Sink(name="pageviews_enriched", store=kafka, properties={"topic.partitions": 1}),
        )

    Names in braces become references, so Terraform makes sources and sink before the query and no
    ``depends_on`` is needed. Braces in string literals, quoted names and comments are left alone.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        sql: str,
        sources: Mapping[str, Source] | None = None,
        sink: Sink | Target | None = None,
        schema: SchemaLike | None = None,
        database: DatabaseLike | None = None,
        store: StoreLike | None = None,
        name: str | None = None,
        desired_state: str | None = None,
        delete_sink_entity: bool | None = None,
        properties: Mapping[str, str | int | bool] | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        timeouts: l1.QueryTimeouts | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a query.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            sql: a SELECT, when ``sink`` is given; else a whole ``CREATE STREAM … AS SELECT …`` or ``INSERT
                INTO … SELECT …``. ``{name}`` stands for a relation of ``sources``.
            sources: the relations that ``sql`` names in braces: constructs, or full names.
            sink: a new relation (``Sink``) or one that exists (a ``Stream``, ``Changelog`` or ``Table``
                construct).
            schema: the schema of names that ``sql`` or the sink leave unqualified, as a construct, or by name
                together with ``database``. Left out, it is the schema of the left-most source.
            database: the database of a schema that is given by name.
            store: the store of a sink that names none.
            name: the query's exact name; ``id_`` when left out.
            desired_state: ``running`` (the default) or ``stopped``.
            delete_sink_entity: whether destroying the query also deletes the sink's topic with its records.
                Left out or False, the topic stays.
            properties: properties of the query.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            timeouts: how long Terraform waits, such as ``{"create": "5m"}``.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            TypeError: a source or sink is of the wrong kind.
            ValueError: the SQL, its sources and its sink do not go together; the message says where and why.
        """
        sources = {} if sources is None else sources
        try:
            check_form(sql, sink is not None)
            texts = {key: source_name(key, value) for key, value in sources.items()}
            statement = tidy(fill(sql, texts))
            context = given_context(schema, database) or left_most_context(sql, sources)
            if sink is not None:
                statement = _write_to(sink, statement)
            sink_context = _sink_context(sink, context)
        except (TypeError, ValueError) as fault:
            raise type(fault)(f"Query {id_!r}: {fault}") from None
        self._sink_topic = _sink_topic(sink)
        #: The database and schema of the sink, for queries that read it.
        self.context = sink_context
        super().__init__(
            scope,
            id_,
            name=id_ if name is None else name,
            sql=statement,
            database=context[0],
            schema=context[1],
            store=None if store is None else store_name(store),
            desired_state=desired_state,
            delete_sink_entity=delete_sink_entity,
            properties=text_properties(properties),
            comment=comment,
            owner=owner_name(owner),
            timeouts=timeouts,
            **meta,
        )

    @property
    def sql_name(self) -> str:
        """The full name of the relation that the query writes: a reference, for SQL that reads it."""
        return self.get_string_attribute("sink")

    @property
    def sink_topic(self) -> str:
        """The topic that the query writes; a reference, when the sink stands inside a whole statement."""
        return self.effective["topic"].value if self._sink_topic is None else self._sink_topic


def _write_to(sink: Sink | Target, select: str) -> str:
    if isinstance(sink, _TARGETS):
        return f"INSERT INTO {sink.fqn_attribute}\n{select}"
    if not isinstance(sink, Sink):
        raise TypeError(
            f"sink is {describe(sink)}; give Sink(name=…, store=…) for a new stream, or a Stream, "
            "Changelog or Table construct"
        )
    if sink.schema is None and sink.database is not None:
        raise ValueError(
            f"the sink {sink.name!r} has a database but no schema; give both, or a Schema construct"
        )
    before = () if sink.schema is None else schema_names(sink.schema, sink.database)
    return create_as(sink.kind, [*before, sink.name], sink.all_properties(), select)


def _sink_context(sink: object, context: Context) -> Context:
    if isinstance(sink, (Stream, Changelog, Table)):
        return sink.context
    if isinstance(sink, Sink) and sink.schema is not None:
        return schema_names(sink.schema, sink.database)
    return context


def _sink_topic(sink: object) -> str | None:
    if isinstance(sink, Sink):
        return sink.name if sink.topic is None else sink.topic
    return sink.topic_name if isinstance(sink, (Stream, Changelog, Table)) else None

"""Relations: streams, changelogs and tables; materialized views are shown."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool

from leatstream.errors import Faults, sentence
from leatstream.model import objects
from leatstream.model.objects import Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.rest.schemas.base import (
    Body,
    Comment,
    EffectiveView,
    Name,
    ObjectView,
    OwnedBody,
    Properties,
    View,
    Word,
    effective_view,
    meta_fields,
    properties_view,
    terraform,
)
from leatstream.services.environment import Page
from leatstream.services.export.ddl import (
    create_relation,
    is_declared_changelog,
    named_key_format,
    named_topic,
)
from leatstream.services.nouns.relation_definition import RelationDefinition

_TIMESTAMP_FORMAT = (
    "Form that the writer uses for the timestamp column, `sql` or `iso8601`. "
    "Kept for information: both are always read."
)


class ColumnBody(Body):
    """A declared column."""

    name: Name = Field(description="Name of the column, exact.")
    type: Annotated[str, Field(min_length=1, max_length=4000)] = Field(
        description="SQL type, such as `BIGINT`.", json_schema_extra=terraform(semantic="type")
    )
    not_null: StrictBool = Field(False, description="Whether a value is required.")
    comment: Comment = None


class RelationBody(OwnedBody):
    """A stream, changelog or table: the relational face of an entity."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_stream",
            description="A stream: the relational face of an entity.",
            path="/v1/relations/{database}.{schema}.{name}",
            key=["database", "schema", "name"],
            path_attributes={
                "database": "Name of the database.",
                "schema": "Name of the schema.",
                "name": "Name of the stream, exact.",
            },
            constants={"kind": "stream"},
            assume="relations",
            attributes={"effective": {"volatile": True}, "value_format": {"mode": "optional_computed"}},
            omit=["statement", "created_by_query", "primary_key", "indexes"],
            variants=[
                {
                    "resource": "leatstream_changelog",
                    "description": "A changelog: a record is the newest state of the row of its key.",
                    "path_attributes": {
                        "database": "Name of the database.",
                        "schema": "Name of the schema.",
                        "name": "Name of the changelog, exact.",
                    },
                    "constants": {"kind": "changelog"},
                    "attributes": {
                        "effective": {"volatile": True},
                        "value_format": {"mode": "optional_computed"},
                        "primary_key": {"mode": "required", "description": "Columns that identify a row."},
                        "topic": {
                            "replace": True,
                            "default_from": "name",
                            "description": "Entity behind the changelog; default: the changelog's name.",
                        },
                    },
                    "omit": ["statement", "created_by_query", "indexes", "key_type"],
                },
                {
                    "resource": "leatstream_table",
                    "description": "A table of a store: queries write it, and joins look rows up in it.",
                    "path_attributes": {
                        "database": "Name of the database.",
                        "schema": "Name of the schema.",
                        "name": "Name of the table, exact.",
                    },
                    "constants": {"kind": "table"},
                    "attributes": {
                        "effective": {"volatile": True},
                        "columns": {
                            "mode": "optional_computed",
                            "preview": "columns",
                            "description": "Columns, in order; left out = those of the store's table.",
                        },
                        "primary_key": {
                            "mode": "optional_computed",
                            "preview": "primary_key",
                            "description": "Unique columns by which written rows replace each other; without "
                            "`columns` those of the store's table.",
                        },
                        "topic": {
                            "replace": True,
                            "default_from": "name",
                            "description": "Table of the store, as `table` or `schema.table`; default: the "
                            "relation's name.",
                        },
                    },
                    "omit": [
                        *("statement", "created_by_query", "indexes", "value_format", "key_format"),
                        *("key_type", "timestamp", "timestamp_format"),
                    ],
                },
            ],
            **{"import": "{database}.{schema}.{name}"},
        )
        | {
            "examples": [
                {
                    "kind": "stream",
                    "columns": [
                        {"name": "viewtime", "type": "BIGINT"},
                        {"name": "userid", "type": "VARCHAR"},
                    ],
                    "store": "kafka_store",
                    "topic": "pageviews",
                    "value_format": "json",
                }
            ]
        }
    )

    kind: RelationKind = Field(
        RelationKind.STREAM,
        description="`stream`, `changelog` or `table`; materialized views are made by queries.",
    )
    primary_key: list[Name] | None = Field(
        None,
        description="Columns that identify a row; needed for a changelog, and for a table whose rows are to "
        "replace each other.",
    )
    columns: Annotated[list[ColumnBody], Field(min_length=1, max_length=2000)] | None = Field(
        None,
        description="Columns, in order; left out = those of the registry, of a format with schemas, or those "
        "of the store's table.",
        json_schema_extra=terraform(mode="optional_computed", preview="columns"),
    )
    store: Name = Field(description="Name of the store.", json_schema_extra=terraform(replace=True))
    topic: Name | None = Field(
        None,
        description="Entity behind the stream; default: the stream's name.",
        json_schema_extra=terraform(replace=True, default_from="name"),
    )
    value_format: Word | None = Field(
        None,
        description="Format of record values, such as `json`; required except in stores of tables.",
        examples=["json"],
        json_schema_extra=terraform(semantic="word"),
    )
    key_format: Word | None = Field(
        None,
        description="Format of record keys.",
        examples=["primitive"],
        json_schema_extra=terraform(semantic="word"),
    )
    key_type: Word | None = Field(
        None,
        description="SQL type of record keys.",
        examples=["VARCHAR"],
        json_schema_extra=terraform(semantic="type"),
    )
    timestamp: Name | None = Field(None, description="Column that gives event time.")
    timestamp_format: Word | None = Field(
        None, description=_TIMESTAMP_FORMAT, json_schema_extra=terraform(semantic="word")
    )
    properties: Properties = Field(None, description="Other WITH keys, such as `topic.partitions`.")
    comment: Comment = None

    def to_domain(self) -> RelationDefinition:
        """The definition for the services.

        Raises:
            RequestError: validation, with every column whose type cannot be read.
        """
        faults = Faults()
        columns = []
        for index, column in enumerate(self.columns or ()):
            try:
                parsed = parse_type(column.type)
            except ValueError as error:
                faults.add("validation", sentence(str(error)), pointer=f"#/columns/{index}/type")
                continue
            columns.append(objects.Column(column.name, parsed, column.not_null, column.comment))
        faults.raise_if_any()
        return RelationDefinition(
            columns=tuple(columns),
            kind=self.kind,
            primary_key=tuple(self.primary_key or ()),
            store=self.store,
            topic=self.topic,
            value_format=self.value_format,
            key_format=self.key_format,
            key_type=self.key_type,
            timestamp=self.timestamp,
            timestamp_format=self.timestamp_format,
            properties=dict(self.properties or {}),
            comment=self.comment,
        )


class ColumnView(View):
    """A column."""

    name: str = Field(description="Name of the column, exact.")
    type: str = Field(description="SQL type, such as `BIGINT`.")
    not_null: bool = Field(False, description="Whether a value is required.")
    comment: Comment = None


class IndexView(View):
    """An index of a materialized view."""

    name: str = Field(description="Name of the index.")
    columns: list[str] = Field(description="Its columns, in order.")


class RelationView(ObjectView):
    """A relation."""

    database: str = Field(description="Name of the database.")
    schema_: str = Field(alias="schema", description="Name of the schema.")
    name: str = Field(description="Name of the stream, exact.")
    fqn: str = Field(
        description="Full name, quoted where SQL needs it.",
        json_schema_extra=terraform(template="{database}.{schema}.{name}"),
    )
    kind: RelationKind = Field(description="Kind of the relation.")
    columns: list[ColumnView] = Field(description="Columns, in order.")
    store: str = Field(description="Name of the store; empty for a materialized view.")
    topic: str | None = Field(None, description="Entity behind the stream, where it was named.")
    value_format: str = Field(description="Format of record values; empty for a table and a view.")
    key_format: str | None = Field(None, description="Format of record keys.")
    key_type: str | None = Field(None, description="SQL type of record keys.")
    timestamp: str | None = Field(None, description="Column that gives event time.")
    timestamp_format: str | None = Field(None, description=_TIMESTAMP_FORMAT)
    properties: dict[str, str] | None = Field(None, description="Other WITH keys, as they were written.")
    comment: Comment = None
    statement: str = Field(description="The statement that makes this relation.")
    effective: dict[str, EffectiveView] = Field(
        description="Every property in force, with where it came from."
    )
    primary_key: list[str] = Field(
        default_factory=list, description="Columns that identify a row of a changelog, a table or a view."
    )
    indexes: list[IndexView] = Field(default_factory=list, description="Indexes of a materialized view.")
    created_by_query: str | None = Field(None, description="Id of the query that made it.")

    @classmethod
    def from_domain(cls, item: Relation, *, brief: bool = False) -> RelationView:
        """The answer for a relation; a brief one is without what only the page of one relation shows."""
        shown = () if brief else item.columns
        columns = [
            ColumnView(name=c.name, type=str(c.type), not_null=c.not_null, comment=c.comment) for c in shown
        ]
        effective = {"topic": item.effective["topic"]} if "topic" in item.effective else {}
        return cls(
            **meta_fields(item.meta),
            database=item.fqn.database,
            schema=item.fqn.schema,
            name=item.fqn.name,
            fqn=str(item.fqn),
            kind=item.kind,
            columns=columns,
            store=item.store,
            topic=named_topic(item),
            value_format=item.value_format,
            key_format=named_key_format(item),
            key_type=None if is_declared_changelog(item) else item.key_type,
            timestamp=item.timestamp,
            timestamp_format=item.timestamp_format,
            properties=properties_view(item.properties),
            comment=item.comment,
            statement="" if brief else create_relation(item),
            effective=effective_view(effective if brief else item.effective),
            primary_key=list(item.primary_key),
            indexes=[IndexView(name=i.name, columns=list(i.columns)) for i in item.indexes],
            created_by_query=item.created_by_query,
        )


class RelationList(View):
    """One page of relations."""

    items: list[RelationView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Relation], *, brief: bool = False) -> RelationList:
        """The answer for a page."""
        items = [RelationView.from_domain(item, brief=brief) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)

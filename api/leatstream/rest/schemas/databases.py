"""Databases and schemas."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from leatstream.model.names import quote
from leatstream.model.objects import Database, Schema
from leatstream.rest.schemas.base import Comment, Name, ObjectView, OwnedBody, View, meta_fields, terraform
from leatstream.services.environment import Page


class DatabaseBody(OwnedBody):
    """A database: a logical grouping of schemas."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_database",
            path="/v1/databases/{name}",
            key=["name"],
            path_attributes={"name": "Name of the database, exact."},
            assume="databases",
            **{"import": "{name}"},
        )
        | {"examples": [{"comment": "Web shop"}]}
    )

    comment: Comment = None


class DatabaseCreation(DatabaseBody):
    """A database that must not exist yet."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "demo", "comment": "Web shop"}]})

    name: Name = Field(description="Name of the database, exact.")


class DatabaseView(ObjectView):
    """A database."""

    name: str = Field(description="Name of the database, exact.")
    comment: Comment = None

    @classmethod
    def from_domain(cls, item: Database) -> DatabaseView:
        """The answer for a database."""
        return cls(**meta_fields(item.meta), name=item.name, comment=item.comment)


class DatabaseList(View):
    """One page of databases."""

    items: list[DatabaseView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Database]) -> DatabaseList:
        """The answer for a page."""
        items = [DatabaseView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


class SchemaBody(OwnedBody):
    """A schema: a namespace of relations inside a database.

    Every database has a schema `public` from the start; it is not declared.
    """

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_schema",
            path="/v1/databases/{database}/schemas/{name}",
            key=["database", "name"],
            path_attributes={"database": "Name of the database.", "name": "Name of the schema, exact."},
            assume="schemas",
            **{"import": "{database}.{name}"},
        )
        | {"examples": [{"comment": "Raw events"}]}
    )

    comment: Comment = None


class SchemaView(ObjectView):
    """A schema."""

    database: str = Field(description="Name of the database.")
    name: str = Field(description="Name of the schema, exact.")
    fqn: str = Field(
        description="Full name, quoted where SQL needs it.",
        json_schema_extra=terraform(template="{database}.{name}"),
    )
    comment: Comment = None

    @classmethod
    def from_domain(cls, item: Schema) -> SchemaView:
        """The answer for a schema."""
        return cls(
            **meta_fields(item.meta),
            database=item.database,
            name=item.name,
            fqn=f"{quote(item.database)}.{quote(item.name)}",
            comment=item.comment,
        )


class SchemaList(View):
    """One page of schemas."""

    items: list[SchemaView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Schema]) -> SchemaList:
        """The answer for a page."""
        items = [SchemaView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)

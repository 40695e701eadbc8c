"""Types of the catalog: databases, schemas, relations, stores, entities, queries."""

from __future__ import annotations

from datetime import datetime

import strawberry

from leatstream.connectors import entities as store_entities
from leatstream.model import objects
from leatstream.model.objects import DesiredState, QueryKind, QueryState, RelationKind, StoreState
from leatstream.rest.deps import only
from leatstream.rest.graphql.plans import Plan, plan_of
from leatstream.rest.graphql.request import Info
from leatstream.rest.graphql.status import QueryStatus, status_of
from leatstream.rest.graphql.values import (
    JSON,
    CatalogObject,
    NamedValue,
    Page,
    Property,
    meta_fields,
    named_values,
    page_of,
    properties_of,
)
from leatstream.services.nouns import schemas
from leatstream.services.queries import catalog as queries
from leatstream.services.queries import history
from leatstream.services.relations import entities, relations

for _enum in (DesiredState, QueryKind, RelationKind, StoreState):
    strawberry.enum(_enum)


@strawberry.type(description="A column.")
class Column:
    """A column."""

    name: str
    type: str = strawberry.field(description="SQL type, such as BIGINT.")
    not_null: bool
    comment: str | None


@strawberry.type(description="A logical grouping of schemas.")
class Database(CatalogObject):
    """A logical grouping of schemas."""

    name: str
    comment: str | None

    @strawberry.field(description="Its schemas by name.")
    def schemas(self, info: Info, page_size: int = 100, page_token: str | None = None) -> Page[Schema]:
        """Its schemas by name.

        Args:
            info: of the request.
            page_size: the most items of a page.
            page_token: of the page wanted; null = the first.
        """
        page = info.context.page(schemas.list_schemas, self.name, size=page_size, token=page_token)
        return page_of(map(schema_of, page.items), page.next_page_token)


@strawberry.type(description="A namespace of relations inside a database.")
class Schema(CatalogObject):
    """A namespace of relations inside a database."""

    database: str
    name: str
    comment: str | None

    @strawberry.field(description="Its relations by name.")
    def relations(self, info: Info, page_size: int = 100, page_token: str | None = None) -> Page[Relation]:
        """Its relations by name.

        Args:
            info: of the request.
            page_size: the most items of a page.
            page_token: of the page wanted; null = the first.
        """
        place = (self.database, self.name)
        page = info.context.page(relations.list_relations, *place, size=page_size, token=page_token)
        return page_of(map(relation_of, page.items), page.next_page_token)


@strawberry.type(description="A stream, changelog, table or materialized view.")
class Relation(CatalogObject):
    """A stream, changelog, table or materialized view."""

    fqn: str = strawberry.field(description="Full name, quoted where SQL needs it.")
    database: str
    schema: str
    name: str
    kind: RelationKind
    columns: list[Column]
    primary_key: list[str]
    store: str | None = strawberry.field(description="Name of the store; null for a materialized view.")
    entity: str | None = strawberry.field(description="Topic, data stream or table behind it.")
    value_format: str | None
    key_format: str | None
    key_type: str | None
    timestamp: str | None = strawberry.field(description="Column that gives event time.")
    comment: str | None
    properties: list[Property] = strawberry.field(description="Every property in force, with its origin.")

    @strawberry.field(description="Queries that read or write it.")
    def queries(self, info: Info) -> list[Query]:
        """Queries that read or write it."""
        return [query_of(query) for query in info.context.touching(self.fqn)]


@strawberry.type(description="An event of a query's job.")
class QueryEvent:
    """An event of a query's job."""

    at: datetime
    state: QueryState
    attempt: int
    generation: int
    reason: str | None
    error: str | None = strawberry.field(description="Code of the failure, such as source-gone.")


@strawberry.type(description="A version of a query: what was written, and what it changed for the job.")
class QueryVersion:
    """A version of a query."""

    generation: int
    at: datetime
    by: str
    sql: str
    desired_state: DesiredState
    change: str | None
    reason: str | None


@strawberry.type(description="What a query's job reported at one moment.")
class QueryProgress:
    """What a query's job reported at one moment."""

    at: datetime
    attempt: int
    metrics: JSON


@strawberry.type(description="A continuous statement and the job that runs it.")
class Query(CatalogObject):
    """A continuous statement and the job that runs it."""

    name: str
    kind: QueryKind
    sql: str
    database: str | None
    schema: str | None
    store: str | None
    desired_state: DesiredState
    comment: str | None
    sources: list[str] = strawberry.field(description="Full names of the relations read.")
    sink: str = strawberry.field(description="Full name of the relation written.")
    properties: list[Property] = strawberry.field(description="Every property in force, with its origin.")
    status: QueryStatus
    plan: Plan | None

    @strawberry.field(description="The relations read, of those that the caller may see.")
    def source_relations(self, info: Info) -> list[Relation]:
        """The relations read, of those that the caller may see."""
        found = (find_relation(info, fqn) for fqn in self.sources)
        return [relation for relation in found if relation is not None]

    @strawberry.field(description="The relation written; null if the caller may not see it.")
    def sink_relation(self, info: Info) -> Relation | None:
        """The relation written."""
        return find_relation(info, self.sink)

    @strawberry.field(description="The newest versions, oldest first.")
    def history(self, info: Info, limit: int = 50) -> list[QueryVersion]:
        """The newest versions, oldest first."""
        found = info.context.newest(history.query_history, self.name, limit)
        return [QueryVersion(**{n: getattr(v, n) for n in _fields(QueryVersion)}) for v in found]

    @strawberry.field(description="The newest events of its job, oldest first.")
    def events(self, info: Info, limit: int = 50) -> list[QueryEvent]:
        """The newest events of its job, oldest first."""
        found = info.context.newest(history.query_events, self.name, limit)
        return [QueryEvent(**{n: getattr(e, n) for n in _fields(QueryEvent)}) for e in found]

    @strawberry.field(description="The newest progress reports of its job, oldest first.")
    def progress(self, info: Info, limit: int = 50) -> list[QueryProgress]:
        """The newest progress reports of its job, oldest first."""
        found = info.context.newest(history.query_progress, self.name, limit)
        return [QueryProgress(at=p.at, attempt=p.attempt, metrics=JSON(dict(p.metrics))) for p in found]

    @strawberry.field(description="The last log lines of its job, oldest first.")
    def logs(self, info: Info, tail: int = 50) -> list[str]:
        """The last log lines of its job, oldest first."""
        return list(info.context.newest(queries.query_logs, self.name, tail))


@strawberry.type(description="A topic, data stream, directory or table in a store, read live.")
class Entity:
    """A topic, data stream, directory or table in a store, read live."""

    name: str
    store: str
    properties: list[NamedValue]
    configs: list[NamedValue]


@strawberry.type(description="A system of yours, with the settings to reach it.")
class Store(CatalogObject):
    """A system of yours, with the settings to reach it."""

    name: str
    kind: str
    comment: str | None
    schema_registry: str | None
    state: StoreState
    message: str | None = strawberry.field(description="What is wrong.")
    server: list[NamedValue] = strawberry.field(description="What the server reports about itself.")
    checked_at: datetime | None

    @strawberry.field(description="Its entities by name, read live; `search` is a part of the name.")
    def entities(
        self, info: Info, search: str | None = None, page_size: int = 100, page_token: str | None = None
    ) -> Page[Entity]:
        """Its entities by name, read live.

        Args:
            info: of the request.
            search: a part of the name, in any case; null = any.
            page_size: the most items of a page.
            page_token: of the page wanted; null = the first.
        """
        page = info.context.page(
            entities.list_entities,
            self.name,
            size=page_size,
            token=page_token,
            only=only(search),
        )
        return page_of((entity_of(one, self.name) for one in page.items), page.next_page_token)


def _fields(shape: type[QueryVersion | QueryEvent]) -> list[str]:
    return list(shape.__dataclass_fields__)


def database_of(item: objects.Database) -> Database:
    """A database as clients see it."""
    return Database(**meta_fields(item.meta), name=item.name, comment=item.comment)


def schema_of(item: objects.Schema) -> Schema:
    """A schema as clients see it."""
    return Schema(**meta_fields(item.meta), database=item.database, name=item.name, comment=item.comment)


def relation_of(item: objects.Relation) -> Relation:
    """A relation as clients see it."""
    return Relation(
        **meta_fields(item.meta),
        fqn=str(item.fqn),
        database=item.fqn.database,
        schema=item.fqn.schema,
        name=item.fqn.name,
        kind=item.kind,
        columns=[
            Column(name=c.name, type=str(c.type), not_null=c.not_null, comment=c.comment)
            for c in item.columns
        ],
        primary_key=list(item.primary_key),
        store=item.store or None,
        entity=item.entity or None,
        value_format=item.value_format or None,
        key_format=item.key_format,
        key_type=item.key_type,
        timestamp=item.timestamp,
        comment=item.comment,
        properties=properties_of(item.effective),
    )


def query_of(item: objects.Query) -> Query:
    """A query as clients see it."""
    return Query(
        **meta_fields(item.meta),
        name=item.name,
        kind=item.kind,
        sql=item.sql,
        database=item.context.get("database"),
        schema=item.context.get("schema"),
        store=item.context.get("store"),
        desired_state=item.desired_state,
        comment=item.comment,
        sources=list(item.sources),
        sink=item.sink,
        properties=properties_of(item.effective),
        status=status_of(item),
        plan=plan_of(item.plan),
    )


def store_of(item: objects.Store) -> Store:
    """A store as clients see it: without its settings, some of which are secret."""
    return Store(
        **meta_fields(item.meta),
        name=item.name,
        kind=item.kind,
        comment=item.comment,
        schema_registry=item.schema_registry,
        state=item.state,
        message=item.message,
        server=named_values(item.server),
        checked_at=item.checked_at,
    )


def entity_of(item: store_entities.Entity, store: str) -> Entity:
    """An entity as clients see it."""
    properties, configs = named_values(item.properties), named_values(item.configs)
    return Entity(name=item.name, store=store, properties=properties, configs=configs)


def find_relation(info: Info, fqn: str) -> Relation | None:
    """The relation, or None if there is none that the caller may see."""
    found = info.context.relation(fqn)
    return relation_of(found) if found is not None else None

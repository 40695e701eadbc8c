"""What can be read."""

from __future__ import annotations

from typing import Annotated

import strawberry

from leatstream.errors import RequestError
from leatstream.model.access import ORGANIZATION
from leatstream.model.objects import QueryState, RelationKind
from leatstream.rest.deps import only, read_fqn
from leatstream.rest.graphql.catalog import (
    Database,
    Query,
    Relation,
    Store,
    database_of,
    query_of,
    relation_of,
    store_of,
)
from leatstream.rest.graphql.drivers import Driver, DriverRole, DriverState, driver_of
from leatstream.rest.graphql.request import Info, named
from leatstream.rest.graphql.statements import ContextInput, Validation, context_of, validation_of
from leatstream.rest.graphql.values import Page, page_of
from leatstream.services.drivers import list_drivers
from leatstream.services.lineage import graph
from leatstream.services.nouns import accounts, databases, server, stores
from leatstream.services.queries import catalog as queries
from leatstream.services.relations import relations
from leatstream.services.statements import dry_run


@strawberry.type(description="The server.")
class Server:
    """The server."""

    name: str
    version: str
    api_version: str
    features: list[str] = strawberry.field(description="What this version can do.")


@strawberry.type(description="The caller, as the server sees it.")
class Me:
    """The caller, as the server sees it."""

    name: str
    role: str = strawberry.field(description="Role that the token acts in.")
    scope: str = strawberry.field(description="How far the token reaches: read, write or admin.")
    effective_roles: list[str]
    organization_privileges: list[str]
    roles: list[str] = strawberry.field(description="Roles that the account may act in.")


@strawberry.type(description="An object that records pass: a store, an entity, a relation or a query.")
class LineageNode:
    """An object that records pass."""

    id: str = strawberry.field(description="Kind and name, such as relation:demo.public.pageviews.")
    kind: str
    name: str
    state: str | None = strawberry.field(description="Of a store, or of a query's job.")
    lag: int | None = strawberry.field(description="Records that a query has not read yet.")
    inputs: int = strawberry.field(description="How many edges lead to it in the whole graph.")
    outputs: int = strawberry.field(description="How many edges lead from it in the whole graph.")


@strawberry.type(description="Records pass from one object to another.")
class LineageEdge:
    """Records pass from one object to another."""

    from_: str = strawberry.field(name="from", description="Id of the node that they come from.")
    to: str = strawberry.field(description="Id of the node that they go to.")
    query: str | None = strawberry.field(description="Name of the query that moves them, where one does.")


@strawberry.type(description="What flows where.")
class Lineage:
    """What flows where."""

    nodes: list[LineageNode]
    edges: list[LineageEdge]


@strawberry.type(description="What can be read.")
class QueryRoot:
    """What can be read."""

    @strawberry.field(description="The server: version and features.")
    def server(self, info: Info) -> Server:
        """The server."""
        found = info.context.call(server.describe_server)
        return Server(**{name: found[name] for name in Server.__dataclass_fields__})

    @strawberry.field(description="The caller: account, role, scope.")
    def me(self, info: Info) -> Me:
        """The caller."""
        who, roles = info.context.principal, info.context.call(accounts.roles_of)
        return Me(
            name=who.name,
            role=who.role,
            scope=who.rights.scope.value,
            effective_roles=sorted(who.rights.roles),
            organization_privileges=sorted(who.rights.on(ORGANIZATION, "")),
            roles=sorted(roles),
        )

    @strawberry.field(description="A database. Names fold to lower case unless they stand in double quotes.")
    def database(self, info: Info, name: str) -> Database:
        """A database."""
        return database_of(info.context.call(databases.get_database, named(name)))

    @strawberry.field(description="Databases by name.")
    def databases(self, info: Info, page_size: int = 100, page_token: str | None = None) -> Page[Database]:
        """Databases by name.

        Args:
            info: of the request.
            page_size: the most items of a page.
            page_token: of the page wanted; null = the first.
        """
        page = info.context.page(databases.list_databases, size=page_size, token=page_token)
        return page_of(map(database_of, page.items), page.next_page_token)

    @strawberry.field(description="A relation by its full name.")
    def relation(self, info: Info, fqn: str) -> Relation:
        """A relation by its full name."""
        return relation_of(info.context.call(relations.get_relation, read_fqn(fqn)))

    @strawberry.field(description="Relations by full name. `search` is a part of the name.")
    def relations(
        self,
        info: Info,
        database: str | None = None,
        schema: str | None = None,
        kind: RelationKind | None = None,
        store: str | None = None,
        search: str | None = None,
        page_size: int = 100,
        page_token: str | None = None,
    ) -> Page[Relation]:
        """Relations by full name.

        Args:
            info: of the request.
            database: that they are in; null = any.
            schema: of that database; null = any.
            kind: of the relations; null = any.
            store: that holds them; null = any.
            search: a part of the name, in any case; null = any.
            page_size: the most items of a page.
            page_token: of the page wanted; null = the first.
        """
        place = tuple(None if name is None else named(name) for name in (database, schema))
        store_name = None if store is None else named(store)

        wanted = only(search, kind=kind, store=store_name)
        page = info.context.page(
            relations.list_relations, *place, size=page_size, token=page_token, only=wanted
        )
        return page_of(map(relation_of, page.items), page.next_page_token)

    @strawberry.field(description="A store.")
    def store(self, info: Info, name: str) -> Store:
        """A store."""
        return store_of(info.context.call(stores.get_store, named(name)))

    @strawberry.field(description="Stores by name.")
    def stores(self, info: Info, page_size: int = 100, page_token: str | None = None) -> Page[Store]:
        """Stores by name.

        Args:
            info: of the request.
            page_size: the most items of a page.
            page_token: of the page wanted; null = the first.
        """
        page = info.context.page(stores.list_stores, size=page_size, token=page_token)
        return page_of(map(store_of, page.items), page.next_page_token)

    @strawberry.field(
        description="What is upstream and downstream of an object, such as `demo.public.pageviews` or "
        "`query:enriched`; without a root the whole graph."
    )
    def lineage(
        self,
        info: Info,
        # The library gives a parameter named root something else.
        start: Annotated[str | None, strawberry.argument(name="root")] = None,
        depth: int | None = None,
    ) -> Lineage:
        """What records pass through before and after an object.

        Args:
            info: of the request.
            start: the object; null = the whole graph.
            depth: the most steps from it; null = all.
        """
        if depth is not None and depth < 1:
            raise RequestError("validation", f"The depth must be at least 1, not {depth}.")
        found = info.context.call(graph.lineage, start, depth)
        info.context.spend(len(found.nodes) + len(found.edges))
        return lineage_of(found)

    @strawberry.field(description="A query.")
    def query(self, info: Info, name: str) -> Query:
        """A query."""
        return query_of(info.context.call(queries.get_query, named(name)))

    @strawberry.field(
        description="Queries by name. `database` is that of the sink, `search` a part of a name."
    )
    def queries(
        self,
        info: Info,
        state: QueryState | None = None,
        database: str | None = None,
        search: str | None = None,
        application: str | None = None,
        page_size: int = 100,
        page_token: str | None = None,
    ) -> Page[Query]:
        """Queries by name.

        Args:
            info: of the request.
            state: that they are in; null = any.
            database: of the relation written; null = any.
            search: a part of the name, in any case; null = any.
            application: that they belong to; null = any.
            page_size: the most items of a page.
            page_token: of the page wanted; null = the first.
        """
        place, owner = (None if name is None else named(name) for name in (database, application))

        wanted = only(search, state=state, database=place, application=owner)
        page = info.context.page(queries.list_queries, size=page_size, token=page_token, only=wanted)
        return page_of(map(query_of, page.items), page.next_page_token)

    @strawberry.field(description="Drivers of all servers by id, with what they run and use.")
    def drivers(
        self,
        info: Info,
        state: DriverState | None = None,
        role: DriverRole | None = None,
        page_size: int = 100,
        page_token: str | None = None,
    ) -> Page[Driver]:
        """Drivers of all servers.

        Args:
            info: of the request.
            state: that they are in; null = any.
            role: what they are for; null = anything.
            page_size: the most items of a page.
            page_token: of the page wanted; null = the first.
        """
        wanted = only(None, state=state and state.value, role=role and role.value)
        page = info.context.page(list_drivers, size=page_size, token=page_token, only=wanted)
        info.context.spend(sum(len(driver.queries) for driver in page.items))
        return page_of(map(driver_of, page.items), page.next_page_token)

    @strawberry.field(
        description="The dry run: plans, inferred properties, and everything that is wrong. `name` is that "
        "of a query or application that the text would replace."
    )
    def validate(
        self, info: Info, sql: str, context: ContextInput | None = None, name: str | None = None
    ) -> Validation:
        """The dry run of a text.

        Args:
            info: of the request.
            sql: one or more statements.
            context: what unqualified names mean.
            name: of the query or application that the text would replace.
        """
        replaced = None if name is None else named(name)
        outcome = info.context.call(dry_run.validate, sql, context_of(context), None, replaced)
        return validation_of(outcome)


def lineage_of(found: graph.Lineage) -> Lineage:
    """A graph as clients see it."""
    nodes = [
        LineageNode(
            id=n.id, kind=n.kind, name=n.name, state=n.state, lag=n.lag, inputs=n.inputs, outputs=n.outputs
        )
        for n in found.nodes
    ]
    edges = [LineageEdge(from_=e.source, to=e.target, query=e.query) for e in found.edges]
    return Lineage(nodes=nodes, edges=edges)

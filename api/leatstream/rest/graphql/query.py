"""What can be read."""

from __future__ import annotations

import strawberry

from leatstream.model import objects
from leatstream.model.access import ORGANIZATION
from leatstream.model.names import Fqn
from leatstream.model.objects import QueryState, RelationKind
from leatstream.rest.deps import read_fqn
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
from leatstream.rest.graphql.request import Info, named
from leatstream.rest.graphql.statements import ContextInput, Validation, context_of, validation_of
from leatstream.rest.graphql.values import Page, page_of
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

    @strawberry.field(description="Relations by full name. `search` is a part of it.")
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
            search: a part of the full name, in any case; null = any.
            page_size: the most items of a page; a filtered page may have fewer.
            page_token: of the page wanted; null = the first.
        """
        place = tuple(None if name is None else named(name) for name in (database, schema))
        store_name = None if store is None else named(store)

        def wanted(one: objects.Relation) -> bool:
            fits = kind in (None, one.kind) and store_name in (None, one.store)
            return fits and (search is None or search.lower() in str(one.fqn).lower())

        page = info.context.page(
            relations.list_relations, *place, size=page_size, token=page_token, wanted=wanted
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
        page_size: int = 100,
        page_token: str | None = None,
    ) -> Page[Query]:
        """Queries by name.

        Args:
            info: of the request.
            state: that they are in; null = any.
            database: of the relation written; null = any.
            search: a part of the name, in any case; null = any.
            page_size: the most items of a page; a filtered page may have fewer.
            page_token: of the page wanted; null = the first.
        """
        place = None if database is None else named(database)

        def wanted(one: objects.Query) -> bool:
            fits = state in (None, one.status.state) and place in (None, _database(one))
            return fits and (search is None or search.lower() in one.name.lower())

        page = info.context.page(queries.list_queries, size=page_size, token=page_token, wanted=wanted)
        return page_of(map(query_of, page.items), page.next_page_token)

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


def _database(query: objects.Query) -> str:
    return Fqn.parse(query.sink).database

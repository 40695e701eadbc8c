"""The objects of the catalog that can be exported, and what each needs to exist before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leatstream.model.access import BUILT_IN, AccountKind, Role
from leatstream.model.functions import UserFunction
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import Query, Relation, RelationKind
from leatstream.services.applications.catalog import ShownApplication, list_applications
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.pages import every
from leatstream.services.functions import catalog as functions
from leatstream.services.nouns import (
    accounts,
    databases,
    named_secrets,
    roles,
    schema_registries,
    schemas,
    stores,
)
from leatstream.services.nouns.databases import PUBLIC
from leatstream.services.nouns.descriptor_sources import list_descriptor_sources
from leatstream.services.nouns.schemas import schema_key
from leatstream.services.queries import catalog as queries
from leatstream.services.relations import relations

KINDS = (
    "secret",
    "schema_registry",
    "descriptor_source",
    "store",
    "database",
    "schema",
    "function_source",
    "function",
    "relation",
    "query",
    "application",
    "role",
    "user",
    "service_account",
)
_DESCRIPTORS = "value.descriptor.source"


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """An object by kind and by name as SQL writes it."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Exported:
    """An object that is exported.

    Attributes:
        item: as the services return it.
        needs: what must exist before it.
        follows: what should come before it, where that is possible: the query that creates its entity.
        places: full names of the relations that it declares or writes.
        sinks: the relations that its queries made, by query name.
    """

    ref: Ref
    item: Any
    needs: frozenset[Ref] = frozenset()
    follows: frozenset[Ref] = frozenset()
    places: tuple[str, ...] = ()
    sinks: Mapping[str, Relation] = field(default_factory=dict)


def exported_objects(env: Environment, who: Principal) -> list[Exported]:
    """Every object that the principal sees and that is not made by another one, in no order.

    The relations that queries make are part of their queries, the members of an application part of it. The
    schema ``public`` comes with its database.

    Args:
        env: the environment.
        who: who asks.
    """
    every_database = every(env, who, databases.list_databases)
    found = [
        *(_plain("secret", one) for one in every(env, who, named_secrets.list_secrets)),
        *map(_registry, every(env, who, schema_registries.list_registries)),
        *(_plain("descriptor_source", one) for one in every(env, who, list_descriptor_sources)),
        *map(_store, every(env, who, stores.list_stores)),
        *(_plain("database", one) for one in every_database),
        *(
            Exported(
                Ref("schema", schema_key(one.database, one.name)),
                one,
                frozenset({Ref("database", quote(one.database))}),
            )
            for database in every_database
            for one in every(env, who, schemas.list_schemas, database.name)
            if one.name != PUBLIC or one.comment is not None
        ),
        *(_plain("function_source", one) for one in every(env, who, functions.list_function_sources)),
        *map(_function, every(env, who, functions.list_functions)),
        *_flow(
            every(env, who, relations.list_relations),
            every(env, who, queries.list_queries),
            every(env, who, list_applications),
            _owned(env),
        ),
        *(_role(one) for one in every(env, who, roles.list_roles) if one.name not in BUILT_IN),
    ]
    for kind in AccountKind:
        found += [
            Exported(Ref(kind.value, quote(one.name)), one, _refs("role", one.roles))
            for one in every(env, who, accounts.list_accounts, kind)
        ]
    there = {one.ref for one in found}
    return [
        Exported(one.ref, one.item, one.needs & there, one.follows & there, one.places, one.sinks)
        for one in found
    ]


def _plain(kind: str, item: Any) -> Exported:
    return Exported(Ref(kind, quote(item.name)), item)


def _refs(kind: str, names: Iterable[str | None]) -> frozenset[Ref]:
    return frozenset(Ref(kind, quote(name)) for name in names if name)


def _registry(item: Any) -> Exported:
    return Exported(
        Ref("schema_registry", quote(item.name)), item, _refs("secret", item.secret_names.values())
    )


def _store(item: Any) -> Exported:
    needs = _refs("secret", item.secret_names.values()) | _refs("schema_registry", [item.schema_registry])
    return Exported(Ref("store", quote(item.name)), item, needs)


def _function(item: UserFunction) -> Exported:
    return Exported(Ref("function", quote(item.name)), item, _refs("function_source", [item.source]))


def _role(item: Role) -> Exported:
    needs = {
        Ref(on.kind, on.name) if on.name is not None else Ref(on.within or "", on.container or "")
        for on in (grant.on for grant in item.grants)
    }
    return Exported(Ref("role", quote(item.name)), item, frozenset(needs) | _refs("role", item.inherits))


def _owned(env: Environment) -> tuple[set[str], set[str]]:
    """Names of the queries, and full names of the relations, that belong to an application."""
    with env.open_unit(write=False) as unit:
        found = [one for one in unit.unfiltered.applications.page(limit=100_000) if not one.deleting]
    return {name for one in found for name in one.queries}, {name for one in found for name in one.relations}


def _flow(
    every_relation: list[Relation],
    every_query: list[Query],
    every_application: list[ShownApplication],
    owned: tuple[set[str], set[str]],
) -> list[Exported]:
    """Relations, queries and applications, which depend on each other."""
    alone = [q for q in every_query if q.name not in owned[0] and not (q.deleting or q.beside)]
    wholes = [one for one in every_application if not one.application.deleting]
    made = {r.created_by_query: r for r in every_relation if r.created_by_query is not None}
    makers = {q.sink: Ref("query", quote(q.name)) for q in alone if q.kind.makes_sink}
    for one in wholes:
        ref = Ref("application", quote(one.application.name))
        makers |= {q.sink: ref for q in one.queries if q.kind.makes_sink}
        makers |= dict.fromkeys(one.application.relations, ref)
    entities = {(r.store, r.entity): makers[str(r.fqn)] for r in made.values() if str(r.fqn) in makers}
    found = [
        _relation(one, entities)
        for one in every_relation
        if one.created_by_query is None
        and one.kind is not RelationKind.MATERIALIZED_VIEW
        and str(one.fqn) not in owned[1]
    ]
    found += [_flowing(Ref("query", quote(q.name)), q, [q], q.context, makers, made) for q in alone]
    for one in wholes:
        app = one.application
        ref = Ref("application", quote(app.name))
        found.append(_flowing(ref, one, one.queries, app.context, makers, made, app.relations))
    return found


def _relation(item: Relation, entities: Mapping[tuple[str, str], Ref]) -> Exported:
    needs = {
        Ref("database", quote(item.fqn.database)),
        Ref("schema", schema_key(item.fqn.database, item.fqn.schema)),
        Ref("store", quote(item.store)),
    }
    described = item.find_property(_DESCRIPTORS)
    needs |= _refs("descriptor_source", [str(described)] if described else [])
    maker = entities.get((item.store, item.entity))
    follows = frozenset({maker} if maker is not None else ())
    name = str(item.fqn)
    return Exported(Ref("relation", name), item, frozenset(needs), follows, (name,))


def _flowing(
    ref: Ref,
    item: Any,
    members: list[Query],
    context: Mapping[str, str | None],
    makers: Mapping[str, Ref],
    made: Mapping[str, Relation],
    declared: Iterable[str] = (),
) -> Exported:
    """A query or an application with what it reads, writes and calls."""
    needs = _refs("store", [context.get("store")])
    places = [*declared, *(q.sink for q in members)]
    for place in places:
        fqn = Fqn.parse(place)
        needs |= {Ref("database", quote(fqn.database)), Ref("schema", schema_key(fqn.database, fqn.schema))}
    if context.get("database"):
        database, schema = str(context["database"]), context.get("schema") or PUBLIC
        needs |= {Ref("database", quote(database)), Ref("schema", schema_key(database, schema))}
    for query in members:
        used = [*query.sources, *([] if query.kind.makes_sink else [query.sink])]
        needs |= {makers.get(name, Ref("relation", name)) for name in used}
        needs |= _refs("function", (f["function"] for f in query.job.get("functions") or ()))
    sinks = {q.name: made[q.meta.id] for q in members if q.meta.id in made}
    needs |= _refs("store", (one.store for one in sinks.values()))
    return Exported(ref, item, needs - {ref}, places=tuple(dict.fromkeys(places)), sinks=sinks)

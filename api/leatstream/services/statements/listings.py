"""Tables that LIST and DESCRIBE give."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leatstream.connectors.entities import Entity
from leatstream.connectors.entities import Table as EntityTable
from leatstream.errors import RequestError
from leatstream.model.names import quote
from leatstream.model.objects import RelationKind
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.environment.pages import every
from leatstream.services.nouns import databases, schemas, stores
from leatstream.services.nouns.names import entity_name, qualify_schema, single, store_of
from leatstream.services.queries import catalog as queries
from leatstream.services.queries import history as query_log
from leatstream.services.queries.checkpoints import savepoints
from leatstream.services.queries.views import refuse_other_kind
from leatstream.services.relations import entities, relations
from leatstream.services.staging.catalog_view import qualify
from leatstream.services.statements import access as access_statements
from leatstream.services.statements import applications as application_statements
from leatstream.services.statements import secrets_and_registries as registered_statements
from leatstream.services.statements.function_listings import (
    described_function,
    described_source,
    listed_functions,
    listed_sources,
)
from leatstream.services.statements.result_tables import META, Table, with_origins
from leatstream.services.statements.result_tables import meta_cells as _meta
from leatstream.services.statements.result_tables import pairs as _pairs
from leatstream.services.statements.result_tables import text_columns as _columns
from leatstream.sql import statements as ast

_META = META


def listed(env: Environment, who: Principal, s: ast.ListObjects, context: Context) -> Table:
    """Rows of LIST …

    Args:
        env: the environment.
        who: who asks.
        s: the statement.
        context: database, schema and store of the session.
    """
    found: list[Any]
    if s.noun == "databases":
        found = every(env, who, databases.list_databases)
        return _columns("name", *_META), [[d.name, *_meta(d)] for d in found]
    if s.noun == "schemas":
        database = single(s.within) if s.within else context.database
        if database is None:
            raise RequestError(
                "unknown-relation", "No database is chosen.", hint="LIST SCHEMAS IN DATABASE …"
            )
        found = every(env, who, schemas.list_schemas, database)
        return _columns("database", "name", *_META), [[x.database, x.name, *_meta(x)] for x in found]
    if s.noun == "stores":
        found = every(env, who, stores.list_stores)
        columns = _columns("name", "type", "state", "message", *_META)
        return columns, [[x.name, x.kind, x.state.value, x.message, *_meta(x)] for x in found]
    if s.noun == "entities":
        store = store_of(env, s.within, context)
        found = every(env, who, entities.list_entities, store)
        rows = [[e.name, json.dumps(dict(e.properties)), json.dumps(dict(e.configs))] for e in found]
        return _columns("name", "properties", "configs"), rows
    if s.noun == "queries":
        found = every(env, who, queries.list_queries)
        columns = _columns("name", "desired_state", "state", "message", "sink", "sql", *_META)
        return columns, [
            [q.name, q.desired_state.value, q.status.state.value, q.status.message, q.sink, q.sql, *_meta(q)]
            for q in found
        ]
    if s.noun == "functions":
        return listed_functions(env, who)
    if s.noun == "applications":
        return application_statements.listed(env, who)
    if s.noun == "savepoints":
        found = every(env, who, savepoints.list_savepoints)
        columns = _columns("name", "query", "state", "message", "batch", "offsets", "sql", *_META)
        return columns, [
            [x.name, x.query, x.state.value, x.message, x.batch, json.dumps(x.offsets), x.sql, *_meta(x)]
            for x in found
        ]
    if s.noun in ("secrets", "schema_registries", "descriptor_sources", "descriptors"):
        return registered_statements.listed(env, who, s)
    if s.noun == "function_sources":
        return listed_sources(env, who)
    if s.noun in ("roles", "users", "service_accounts", "api_tokens", "invitations"):
        return access_statements.listed(env, who, s)
    return _relations(env, who, s, context)


def _relations(env: Environment, who: Principal, s: ast.ListObjects, context: Context) -> Table:
    database, schema = context.database, None
    if s.within is not None and s.of == "database":
        database = single(s.within)
    elif s.within is not None:
        database, schema = qualify_schema(s.within, None, context)
    found = every(env, who, relations.list_relations, database, schema)
    wanted = {
        "streams": RelationKind.STREAM,
        "changelogs": RelationKind.CHANGELOG,
        "tables": RelationKind.TABLE,
        "materialized_views": RelationKind.MATERIALIZED_VIEW,
    }.get(s.noun)
    found = [r for r in found if wanted in (None, r.kind)]
    columns = _columns("fqn", "kind", "store", "entity", "value_format", "comment", *_META)
    return columns, [
        [str(r.fqn), r.kind.value, r.store, r.entity, r.value_format, r.comment, *_meta(r)] for r in found
    ]


def described(env: Environment, who: Principal, s: ast.Describe, context: Context) -> Table:
    """Rows of DESCRIBE …

    Args:
        env: the environment.
        who: who asks.
        s: the statement.
        context: database, schema and store of the session.
    """
    if s.noun == "database":
        d = databases.get_database(env, who, single(s.name))
        return _pairs([("name", d.name), ("comment", d.comment), *zip(_META, _meta(d), strict=True)])
    if s.noun == "schema":
        x = schemas.get_schema(env, who, *qualify_schema(s.name, None, context))
        head = [("database", x.database), ("name", x.name), ("comment", x.comment)]
        return _pairs([*head, *zip(_META, _meta(x), strict=True)])
    if s.noun == "store":
        store = stores.get_store(env, who, single(s.name))
        settings = [(k, json.dumps(v) if isinstance(v, dict) else v) for k, v in store.config.items()]
        head = [
            ("name", store.name),
            ("type", store.kind),
            ("state", store.state.value),
            ("message", store.message),
            *store.server.items(),
            ("comment", store.comment),
            *([("schema_registry", store.schema_registry)] if store.schema_registry else []),
            *((f"{path}_secret", name) for path, name in store.secret_names.items()),
        ]
        return _pairs([*head, *settings])
    if s.noun == "entity":
        e = entities.get_entity(env, who, store_of(env, s.store, context), entity_name(s.name))
        return _pairs([("name", e.name), *e.properties.items(), *_settings(e), *_table(e.table)])
    if s.noun == "function":
        return described_function(env, who, s.name)
    if s.noun == "function_source":
        return described_source(env, who, single(s.name))
    if s.noun == "query":
        return _query(env, who, single(s.name))
    if s.noun == "application":
        return application_statements.described(env, who, s)
    if s.noun in registered_statements.DELETE:
        return registered_statements.described(env, who, s)
    relation = relations.get_relation(env, who, qualify(s.name, context))
    refuse_other_kind(relation, s.noun, "DESCRIBE", s.name.position)
    columns = _columns("column", "type", "not_null", "comment")
    return columns, [[c.name, str(c.type), str(c.not_null).lower(), c.comment] for c in relation.columns]


def _settings(entity: Entity) -> Iterator[tuple[str, Any]]:
    """Settings that the details of a table do not tell already."""
    details = entity.table.details if entity.table else {}
    return ((k, v) for k, v in entity.configs.items() if k.replace(".", "_") not in details)


def _table(table: EntityTable | None) -> Iterator[tuple[str, Any]]:
    """What DESCRIBE ENTITY shows of a table."""
    if table is None:
        return
    yield from table.details.items()
    yield "primary_key", ", ".join(map(quote, table.primary_key)) or None
    for column in table.columns:
        end = " NOT NULL" if column.not_null else ""
        yield f"column {quote(column.name)}", f"{column.type}{end} ({column.native})"


def _query(env: Environment, who: Principal, name: str) -> Table:
    q = queries.get_query(env, who, name)
    error = q.status.error
    return with_origins(
        [
            ("name", q.name),
            ("sql", q.sql),
            ("sink", q.sink),
            ("sources", ", ".join(q.sources)),
            ("desired_state", q.desired_state.value),
            ("state", q.status.state.value),
            ("message", q.status.message),
            ("error", f"{error['code']}: {error.get('shown', error['detail'])}" if error else None),
            ("hint", error.get("hint") if error else None),
            ("mode", q.job.get("mode")),
            ("mode_reason", q.job.get("mode_reason")),
            ("driver", q.job.get("driver", "dedicated")),
        ],
        q.effective,
    )


def described_query(env: Environment, who: Principal, s: ast.DescribeQuery) -> Table:
    """Rows of DESCRIBE QUERY STATE, METRICS, EVENTS and HISTORY.

    Args:
        env: the environment.
        who: who asks.
        s: the statement.
    """
    if s.what == "events":
        return _columns("at", "state", "attempt", "generation", "reason", "error"), [
            [e.at.isoformat(), e.state.value, e.attempt, e.generation, e.reason, e.error]
            for e in query_log.query_events(env, who, single(s.name))
        ]
    if s.what == "history":
        return _columns("generation", "at", "by", "change", "reason", "desired_state", "sql"), [
            [v.generation, v.at.isoformat(), v.by, v.change, v.reason, v.desired_state.value, v.sql]
            for v in query_log.query_history(env, who, single(s.name))
        ]
    q = queries.get_query(env, who, single(s.name))
    status = q.status
    if s.what == "metrics":
        columns, rows = _pairs(list(_flat(status.metrics)))
        return [{**columns[0], "name": "metric"}, columns[1]], rows
    error = status.error
    return _pairs(
        [
            ("name", q.name),
            ("desired_state", q.desired_state.value),
            ("state", status.state.value),
            ("since", status.since.isoformat() if status.since else None),
            ("message", status.message),
            ("error", f"{error['code']}: {error.get('shown', error['detail'])}" if error else None),
            ("hint", error.get("hint") if error else None),
            ("generation", q.meta.generation),
            ("observed_generation", status.observed_generation),
            ("attempt", status.attempt),
            ("restarts", status.starts_again),
            ("next_attempt_at", status.next_attempt_at.isoformat() if status.next_attempt_at else None),
            ("heartbeat_at", status.heartbeat_at.isoformat() if status.heartbeat_at else None),
            ("driver", status.driver_id),
        ]
    )


def _flat(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested metrics under dotted names; lists as JSON."""
    for name, value in sorted(metrics.items()):
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", json.dumps(value) if isinstance(value, list) else value

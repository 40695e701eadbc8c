"""The dry run: what a text would do, and everything that is wrong with it. It changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from leatstream.connectors.registry import with_secrets
from leatstream.errors import LeatstreamError, RequestError, StoreError, already_exists
from leatstream.model.names import Fqn
from leatstream.model.objects import Query, Relation, RelationKind, Store
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.environment.results import kind_of
from leatstream.services.functions.catalog import make_function, make_source
from leatstream.services.nouns.acting import in_role
from leatstream.services.nouns.application_owners import refuse_changed_alone
from leatstream.services.nouns.external_ids import with_generated
from leatstream.services.nouns.names import single
from leatstream.services.nouns.places import authorize_place
from leatstream.services.nouns.relation_definition import RelationDefinition
from leatstream.services.nouns.secret_values import planned_value
from leatstream.services.nouns.session_defaults import with_defaults
from leatstream.services.nouns.stores import check_config, require_credentials, split_secrets
from leatstream.services.planning.access import require_new_relation
from leatstream.services.planning.change_feeds import refuse_second_readers
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.query import PlannedQuery
from leatstream.services.planning.query_properties import refuse_other_name
from leatstream.services.planning.record_schemas import with_columns
from leatstream.services.planning.relation_draft import draft_relation
from leatstream.services.planning.selects import plan_select
from leatstream.services.planning.statement import plan_statement
from leatstream.services.queries.catalog import made_by
from leatstream.services.queries.checkpoints.origin import check_origin
from leatstream.services.queries.definition import parse_continuous, with_properties
from leatstream.services.queries.replace.in_place import SAME_STATEMENT, keep_origins, replacement
from leatstream.services.relations.declarations import relation_definition
from leatstream.services.selects.snapshots import reads_views
from leatstream.services.staging.catalog_view import (
    Assumed,
    CatalogView,
    assumed_meta,
    qualify,
)
from leatstream.services.statements import applications as application_statements
from leatstream.services.statements.dry_run_checks import check_statement
from leatstream.services.statements.dry_run_effects import after
from leatstream.sql import statements as ast
from leatstream.sql.canonical import same_meaning
from leatstream.sql.concealing import shown
from leatstream.sql.parser import parse
from leatstream.sql.relation_properties import read_relation_properties

_CONTINUOUS = ast.CreateAs | ast.InsertInto


@dataclass(frozen=True, slots=True)
class ValidationOutcome:
    """Whether the text may run, per statement its plan and problems, and the text as it may be shown."""

    valid: bool
    statements: list[dict[str, Any]]
    canonical: str
    hash: str


def validate(
    env: Environment,
    principal: Principal,
    sql: str,
    context: Context,
    assume: Mapping[str, Any] | None = None,
    name: str | None = None,
    properties: Mapping[str, Any] | None = None,
) -> ValidationOutcome:
    """Check a text without running it.

    Args:
        env: the environment.
        principal: who asks.
        sql: one or more statements.
        context: what unqualified names mean; of a text without a name the caller's defaults do the rest.
        assume: planned objects that count as existing (see ``catalog_view``).
        name: of the query or application this text would replace; its plan then describes the change.
        properties: of the query, beside those that its statement writes; None where the text is no body.

    Raises:
        RequestError: validation, for properties of a text that is not one query's.
        EngineError: engine-unavailable, too many texts are being planned.
    """
    authorize(principal, READ, "statements")
    caller = principal
    env, principal = in_role(replace(env, who=caller), caller, context.role)
    found: list[dict[str, Any]] = []
    try:
        statements = parse(sql)
        assumed = Assumed.read(assume)
        own = name if any(isinstance(s, ast.CreateApplication) for s in statements) else None
        application_statements.assume_all(assumed, own)
    except LeatstreamError as error:
        found.append({"kind": "unknown", "plan": None, "problems": problems_of(error)})
        return _outcome(sql, found)
    if properties and not (len(statements) == 1 and isinstance(statements[0], _CONTINUOUS)):
        detail = "Properties are those of one query, and the text is not one query's."
        raise RequestError("validation", detail, pointer="#/properties")
    if name is None:  # else the text stands for a body, of which PUT takes what it says
        context = with_defaults(env, principal, context)
    for statement in statements:
        # A turn for each: a long text on an unreachable store must not keep all others waiting. Without one
        # there is no answer, which is no fault of a statement.
        with env.turns.taken():
            kind = kind_of(statement)
            try:
                plan = plan_of(env, statement, context, assumed, name, properties)[1]
                context = after(env, statement, context, assumed, name)
                if isinstance(statement, ast.Use) and statement.noun == "role":
                    # A role that the text makes is the caller's to use once it is there.
                    named = single(statement.name)
                    env = env if named in assumed.roles else in_role(env, caller, named)[0]
                found.append({"kind": kind, "plan": plan, "problems": []})
            except LeatstreamError as error:
                problems = problems_of(error.at(statement.position))
                found.append({"kind": kind, "plan": None, "problems": problems})
    return _outcome(sql, found)


def _outcome(sql: str, found: list[dict[str, Any]]) -> ValidationOutcome:
    """With the text as it may be shown, and the hash of that, as passwords can be guessed from hashes."""
    text = shown(sql)
    valid = all(not s["problems"] for s in found)
    return ValidationOutcome(
        valid, found, text, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    )


def problems_of(error: LeatstreamError) -> list[dict[str, Any]]:
    """The faults of an error in JSON form."""
    return [
        {
            "code": f.code or error.code,
            "detail": f.detail,
            "sqlstate": f.sqlstate or error.sqlstate,
            "pointer": f.pointer,
            "position": f.position
            and {
                "line": f.position.line,
                "column": f.position.column,
                "offset": f.position.offset,
                "length": f.position.length,
            },
            "hint": f.hint,
            "fqn": error.extra.get("fqn"),
        }
        for f in error.faults
    ]


def plan_of(
    env: Environment,
    statement: ast.Statement,
    context: Context,
    assumed: Assumed | None = None,
    name: str | None = None,
    properties: Mapping[str, Any] | None = None,
) -> tuple[str, dict[str, Any] | None]:
    """Kind and plan of one statement; statements without a plan give None.

    Args:
        env: the environment.
        statement: as it was read.
        context: database, schema and store of the session.
        assumed: objects that are only planned.
        name: of the query or application that it would replace.
        properties: of the query, beside those in the text.

    Raises:
        LeatstreamError: what is wrong with it.
    """
    with env.planning() as unit:
        view = build_view(env, unit, assumed or Assumed(), context)
        if isinstance(statement, ast.CreateApplication):
            return kind_of(statement), application_statements.check(env, view, statement, context, name)
        if isinstance(statement, _CONTINUOUS):
            given = properties or {}
            old = unit.queries.find(name) if name else None
            if isinstance(statement, ast.CreateAs) and old is None:
                taken = _taken(view, qualify(statement.name, context))
                if taken and statement.if_not_exists:
                    return kind_of(statement), None
                if taken and statement.or_replace:
                    old = made_by(env, qualify(statement.name, context), statement.query_properties)
                    given = old.properties if old is not None else given  # what was said elsewhere stays
            statement = with_properties(statement, given)
            if name and old is None:
                refuse_other_name(statement.query_properties, name)
            planned = plan_statement(env, view, statement, context)
            _refuse_taken(view, planned, old)
            refuse_second_readers(unit, planned.job, old)
            if old is None:
                to_come = view.assumed.ends | {query.name for query in view.assumed.queries}
                check_origin(env, unit, statement.query_properties, planned.job, to_come)
            return kind_of(statement), _plan_json(unit, planned, old, context, given)
        if isinstance(statement, ast.CreateStream):
            check_statement(env, view, statement, context)
            fqn = qualify(statement.name, context)
            drafted = _draft(env, view, fqn, relation_definition(statement, context))
            properties = {k: v.as_json() for k, v in drafted.effective.items()}
            plan = {"fqn": str(fqn), "columns": _columns_json(drafted), "properties": properties}
            key = {"primary_key": list(drafted.primary_key)} if drafted.kind is RelationKind.TABLE else {}
            return kind_of(statement), plan | key
        if isinstance(statement, ast.Select) and not reads_views(view, statement.select, context):
            return kind_of(statement), plan_select(env, view, statement, context).as_json()
        check_statement(env, view, statement, context)
    return kind_of(statement), None


def _columns_json(relation: Relation) -> list[dict[str, Any]]:
    return [
        {"name": c.name, "type": str(c.type)} | ({"not_null": True} if c.not_null else {})
        for c in relation.columns
    ]


def _taken(view: CatalogView, fqn: Fqn) -> Relation | None:
    """The relation of that name, if no statement before drops it."""
    return None if ("relation", str(fqn)) in view.assumed.dropped else view.unit.relations.find(str(fqn))


def _refuse_taken(view: CatalogView, planned: PlannedQuery, old: Query | None) -> None:
    if not planned.kind.makes_sink:
        return
    relation = _taken(view, planned.sink.fqn)
    if relation is not None and (old is None or relation.created_by_query != old.meta.id):
        raise already_exists("relation", str(planned.sink.fqn))


def _plan_json(
    unit: UnitOfWork,
    planned: PlannedQuery,
    old: Query | None,
    context: Context,
    properties: Mapping[str, Any],
) -> dict[str, Any]:
    if old is None:
        return planned.as_json()
    kept = replace(planned, effective=keep_origins(old.effective, planned.effective))
    same = _names(old.context) == _names(context.as_json())
    same = same and same_meaning(old.sql, planned.sql) and dict(old.properties) == dict(properties)
    if not same:
        refuse_changed_alone(unit, old.name)
    return kept.as_json(SAME_STATEMENT if same else replacement(unit, old, planned))


def _names(context: Mapping[str, str | None]) -> list[str | None]:
    """What decides about names; a role does not."""
    return [context.get(part) for part in ("database", "schema", "store")]


def build_view(env: Environment, unit: UnitOfWork, assumed: Assumed, context: Context) -> CatalogView:
    """The catalog with the assumed objects laid over it.

    Args:
        env: the environment.
        unit: an open unit of work.
        assumed: objects that are only planned.
        context: database, schema and store of the session.
    """
    now = env.clock.now()
    view = CatalogView(unit, assumed)
    for name in assumed.stores:
        view.stores[name] = _assumed_store(env, unit, assumed, name)
    for name, (file, content) in assumed.function_sources.items():
        view.function_sources[name] = make_source(assumed_meta(now, name), name, file, content)
    for name, function in assumed.functions.items():
        source = view.source_of(function)
        view.functions[name] = make_function(assumed_meta(now, name), name, function, source)
    for text, body in assumed.relations.items():
        try:
            view.relations[text] = _draft(env, view, Fqn.parse(text), body)
        except (RequestError, StoreError) as error:
            # Said where a statement names it.
            view.faulty[text] = error
    waiting = list(assumed.queries)
    planning: set[str] = set()

    def late(fqn: Fqn) -> Relation | None:
        for item in waiting:
            if item.name in planning:
                continue
            statement = parse_continuous(item.sql)
            if isinstance(statement, ast.CreateAs) and qualify(statement.name, item.context) == fqn:
                planning.add(item.name)
                planned = plan_statement(env, view, statement, item.context)
                view.relations[str(fqn)] = replace(planned.sink, meta=assumed_meta(now, str(fqn)))
                return view.relations[str(fqn)]
        return None

    view.plan_late(late)
    return view


def _assumed_store(env: Environment, unit: UnitOfWork, assumed: Assumed, name: str) -> Store:
    stored, (kind, config) = unit.stores.find(name), assumed.stores[name]
    registry = assumed.store_registries.get(name)
    given = {k: v for k, v in config.items() if v is not None}
    plain, secrets = split_secrets(env, kind, given)
    plain = with_generated(kind, plain, stored)
    same = stored is not None and stored.kind == kind and dict(stored.config) == plain
    if stored is not None and same and stored.schema_registry == registry:
        return stored
    authorize_place(env, unit, "store", name)
    found = {path: planned_value(env, unit, v) for path, v in secrets.items() if v is not None}
    # Of a secret that is only planned one that fits and opens nothing.
    values = {path: "x" * 40 if value is None else value for path, value in found.items()}
    check_config(env, kind, plain, values)
    require_credentials(env, env.caller, kind, plain)
    config = with_secrets(plain, values)
    meta = assumed_meta(env.clock.now(), name)
    return Store(meta=meta, name=name, kind=kind, config=config, schema_registry=registry)


def _draft(env: Environment, view: CatalogView, fqn: Fqn, body: RelationDefinition) -> Relation:
    read = read_relation_properties(body.as_properties(), changelog=body.kind is RelationKind.CHANGELOG)
    store = view.require_store(read.store or env.settings.default_store or "")
    meta = assumed_meta(env.clock.now(), str(fqn))
    body = with_columns(LiveStores(env, view), store.name, fqn.name, body, read)
    draft = draft_relation(env, store, fqn, body, read, meta, view.planned_entity)
    if view.unit.relations.find(str(fqn)) is None:
        creates = not draft.entity_exists
        require_new_relation(view.unit, draft.relation, creates=creates, written=False, query=False)
    return draft.relation

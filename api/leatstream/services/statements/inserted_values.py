"""Records that statements spell out: INSERT … VALUES and INSERT INTO ENTITY … VALUE."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from leatstream.connectors.entities import NewRecord
from leatstream.errors import Faults, Position, RequestError
from leatstream.formats.described import FORMATS
from leatstream.formats.json_faults import faults_of
from leatstream.formats.json_writing import check_type
from leatstream.model.access import Privilege
from leatstream.model.names import did_you_mean, quote
from leatstream.model.objects import Column, Query, QueryState, Relation, RelationKind
from leatstream.plan.job_spec import ColumnSpec
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.environment.desk import require_on_entity
from leatstream.services.nouns.stores import get_store, require_store
from leatstream.services.planning.access import require_writing
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.record_places import headers_column, key_columns, key_only
from leatstream.services.relations.described_records import make_records
from leatstream.services.relations.entities import get_entity
from leatstream.services.staging.catalog_view import CatalogView, qualify
from leatstream.sql.constants import Constant, Misfit, value_of
from leatstream.sql.statements import InsertEntity, InsertValues, Name, Properties

_WRITE_TIMEOUT = 10.0


def check_values(
    env: Environment,
    view: CatalogView,
    statement: InsertValues,
    context: Context,
    *,
    register: bool = False,
) -> tuple[Relation, list[NewRecord]]:
    """The stream and the records of an INSERT … VALUES, ready to be written.

    Schemas of records are registered only on request.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        statement: as it was read.
        context: database, schema and store of the session.
        register: whether schemas of records may be registered.

    Raises:
        RequestError: everything that is wrong with the statement, with positions.
        StoreError: a schema registry cannot be asked.
    """
    relation = view.resolve(statement.name, context)
    if relation.kind is RelationKind.MATERIALIZED_VIEW:
        raise RequestError(
            "unsupported",
            f"Records are inserted into streams, changelogs and tables; {relation.fqn} is a view.",
            position=statement.name.position,
        )
    targets = _targets(relation, statement.columns)
    faults = Faults()
    rows = [_row(relation, targets, row, statement.name.position, faults) for row in statement.rows]
    faults.raise_if_any()
    live, where = LiveStores(env, view), statement.name.position
    return relation, make_records(live, relation, key_columns(relation), rows, where, register=register)


def insert_values(env: Environment, principal: Principal, statement: InsertValues, context: Context) -> str:
    """Write the rows of an INSERT … VALUES and give the stream's full name.

    Args:
        env: the environment.
        principal: who asks.
        statement: as it was read.
        context: database, schema and store of the session.

    Raises:
        RequestError: what is wrong with the statement; nothing is written then.
        StoreError: what the store says, and how many records were written.
    """
    authorize(principal, WRITE, "stream", str(qualify(statement.name, context)))
    with env.open_unit(write=False) as unit:
        relation = CatalogView(unit).resolve(statement.name, context)
        require_writing(unit, relation)
        store = require_store(unit.unfiltered, relation.store) if relation.store else None
    described = relation.value_format in FORMATS or relation.key_format in FORMATS
    # Schemas of records are asked for and registered.
    with env.planning() if described else env.open_unit(write=False) as unit:
        relation, records = check_values(env, CatalogView(unit), statement, context, register=True)
    connector = env.connect(store or get_store(env, principal, relation.store))
    connector.write_records(relation.entity, records, _WRITE_TIMEOUT)
    return str(relation.fqn)


def insert_json(
    env: Environment, principal: Principal, store: str, entity: str, s: InsertEntity
) -> list[str]:
    """Write the one record of an INSERT INTO ENTITY, its JSON as it is written.

    Args:
        env: the environment.
        principal: who asks.
        store: name of the entity's store.
        entity: its name.
        s: the statement.

    Returns:
        Warnings: which relations over the entity cannot read the record, and which queries that ends.

    Raises:
        RequestError: ``validation`` when the text is no JSON object, ``invalid-property``.
        StoreError: entity-not-found, or what the store says.
    """
    record = check_json(s)
    authorize(principal, WRITE, "entity", entity)
    require_on_entity(env, store, entity, Privilege.WRITE_ENTITY)
    get_entity(env, principal, store, entity)
    env.connect(get_store(env, principal, store)).write_records(entity, [record], _WRITE_TIMEOUT)
    return _unreadable(env, store, entity, record.value or b"")


def _unreadable(env: Environment, store: str, entity: str, value: bytes) -> list[str]:
    with env.open_unit(write=False) as unit:
        over = [
            relation
            for relation in unit.unfiltered.relations.page(limit=10_000)
            if (relation.store, relation.entity, relation.value_format) == (store, entity, "json")
        ]
        queries = unit.unfiltered.queries.page(limit=100_000) if over else ()
    found = []
    for relation in over:
        elsewhere = (*key_only(relation), headers_column(relation))
        columns = [
            ColumnSpec(name=column.name, type=str(column.type), not_null=column.not_null)
            for column in relation.columns
            if column.name not in elsewhere
        ]
        faults = faults_of(columns, value)
        if faults:
            why = "; ".join(fault.in_words(shown=env.settings.error_excerpts) for fault in faults)
            names = [quote(query.name) for query in queries if _ends_at(query, relation)]
            ends = (
                f". It ends {'query' if len(names) == 1 else 'queries'} {', '.join(names)}" if names else ""
            )
            found.append(f"{relation.kind.value} {relation.fqn} cannot read this record: {why}{ends}")
    return found


def _ends_at(query: Query, relation: Relation) -> bool:
    """Whether a record that the relation cannot read ends the query, which runs."""
    sources = query.job.get("sources") or ()
    strict = any(s.get("relation") == str(relation.fqn) and s.get("on_error") == "terminate" for s in sources)
    return strict and query.is_wanted and query.status.state is not QueryState.FAILED


def check_json(s: InsertEntity) -> NewRecord:
    """The record of an INSERT INTO ENTITY; RequestError when it is none."""
    text, position = s.value.text, s.value.position
    try:
        document = json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        why = (
            f" ({error.msg} at character {error.pos + 1})" if isinstance(error, json.JSONDecodeError) else ""
        )
        detail = f"This VALUE is not JSON{why}."
        raise RequestError("validation", detail, position=position, hint="""VALUE('{"k": 1}')""") from None
    if not isinstance(document, dict):
        detail = "A record's VALUE is one JSON object."
        raise RequestError("validation", detail, position=position, hint="""VALUE('{"k": 1}')""")
    return NewRecord(_given_key(s.properties), _bytes(text, position))


def _no_json(word: str) -> Any:
    raise ValueError(word)


def _given_key(properties: Properties) -> bytes | None:
    for name, value in properties.items():
        if name != "key":
            detail, where = (
                f"Property {name} is not known here; known: key.",
                value.key_position or value.position,
            )
            raise RequestError("invalid-property", detail, position=where)
        if value.kind != "string":
            detail = "'key' is the record's key, a text."
            raise RequestError("invalid-property", detail, position=value.position)
    key = properties.get("key")
    return _bytes(str(key.value), key.position) if key else None


def _bytes(text: str, position: Position) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        detail = "This text holds half a character (a lone surrogate), which UTF-8 cannot."
        raise RequestError("validation", detail, position=position) from None


def _targets(relation: Relation, names: Sequence[Name]) -> list[Column]:
    """The columns that each row's values go to."""
    if not names:
        return list(relation.columns)
    faults = Faults()
    found: list[Column] = []
    for name in names:
        column = relation.find_column(name.parts[0])
        if column is None:
            hint = did_you_mean(name.parts[0], [c.name for c in relation.columns])
            detail = f"{relation.fqn} has no column {quote(name.parts[0])}."
            faults.add("unknown-column", detail, position=name.position, hint=hint)
        elif column in found:
            faults.add("validation", f"Column {quote(column.name)} is named twice.", position=name.position)
        else:
            found.append(column)
    for column in relation.columns:
        if column.not_null and column not in found and not faults.items:
            detail = f"Column {quote(column.name)} is NOT NULL and must be given."
            faults.add("type-mismatch", detail, position=names[-1].position)
    faults.raise_if_any()
    return found


def _row(
    relation: Relation, targets: Sequence[Column], row: Sequence[Constant], where: Position, faults: Faults
) -> list[Any]:
    """Values of all of the stream's columns, in order; what is wrong is noted."""
    if len(row) != len(targets):
        wanted = ", ".join(quote(c.name) for c in targets)
        detail = f"This row has {len(row)} values for {len(targets)} columns: {wanted}."
        faults.add("type-mismatch", detail, position=row[0].position if row else where)
        return []
    values: Mapping[str, Any] = {
        column.name: _value(column, constant, faults) for column, constant in zip(targets, row, strict=True)
    }
    return [values.get(column.name) for column in relation.columns]


def _value(column: Column, constant: Constant, faults: Faults) -> Any:
    if constant.kind == "null" and column.not_null:
        detail = f"Column {quote(column.name)} is NOT NULL."
        faults.add("type-mismatch", detail, position=constant.position)
        return None
    try:
        value = value_of(constant, column.type)
    except Misfit as misfit:
        detail = f"Column {quote(column.name)}: {misfit.detail}."
        faults.add("type-mismatch", detail, position=misfit.position, hint=misfit.hint)
        return None
    check_type(column.name, column.type)
    return value

"""A sample of a relation: a few of its records as rows, decoded here, without a Spark driver."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Record
from leatstream.connectors.registry import kinds_that
from leatstream.connectors.sampling import MOST_BYTES, Sampled, size_of
from leatstream.errors import EngineError, RequestError
from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.formats.plain_values import Undecodable
from leatstream.formats.record_rows import RowReader
from leatstream.formats.registry_client import RegistryClient
from leatstream.formats.shown_values import decimal_text, number, shown
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import Relation, RelationKind
from leatstream.model.types import DataType
from leatstream.plan.job_spec import SourceSpec
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.planning.access import require_reading
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.specs import sample_spec
from leatstream.services.relations.relations import require_relation
from leatstream.services.selects import snapshots
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql import statements as ast
from leatstream.sql.parser import parse

SECONDS = 5.0
MOST_RECORDS = 100
_MOST_BYTES = 1 << 20  # of keys and values
Start = Literal["latest", "earliest"]


class Outcome(StrEnum):
    """What a record is to a query that reads the relation."""

    ROW = "row"
    DELETION = "deletion"
    PASSED_OVER = "passed_over"
    UNDECODABLE = "undecodable"


@dataclass(frozen=True, slots=True)
class Sampling:
    """A record of a sample.

    Attributes:
        record: as it lies in the store; None of a view and of a table, whose rows have no place.
        outcome: what a query makes of it.
        row: a value for each column, as SELECT answers it; None where there is no row.
        reason: why there is none.
    """

    record: Record | None
    outcome: Outcome
    row: Sequence[Any] | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A few records of a relation.

    Attributes:
        columns: names and types.
        records: in the order that was asked for.
        note: what else is to be known of them: why there are none, or not those that were asked for.
    """

    relation: Relation
    columns: Sequence[tuple[str, str]]
    records: Sequence[Sampling]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is known of the relation before its store is asked."""

    relation: Relation
    source: SourceSpec
    connector: Connector
    registry: RegistryClient | None


def sample_relation(env: Environment, principal: Principal, fqn: Fqn, start: Start, limit: int) -> Sample:
    """The newest or the oldest records of a relation; of a table and of a materialized view any of its rows.

    Args:
        env: the environment.
        principal: who asks.
        fqn: full name of the relation.
        start: ``latest`` gives the newest records, the newest first; ``earliest`` the oldest.
        limit: the most records.

    Raises:
        CatalogError: not-found.
        AccessError: permission-denied, without what SELECT needs.
        RequestError: unsupported, of stores that show no records; property-required without a registry.
        StoreError: the store or the registry cannot be asked.
        EngineError: view-not-ready.
    """
    authorize(principal, READ, "relation", str(fqn))
    with env.planning() as unit:
        relation = require_relation(unit, fqn)
        require_reading(unit, [relation])
        kept = relation.kind is RelationKind.MATERIALIZED_VIEW and not relation.store
        reading = None if kept else _reading(env, CatalogView(unit), relation)
    if reading is None:
        return _of_view(env, principal, relation, limit)
    try:
        connector = reading.connector
        found = connector.sample_records(
            reading.source, newest=start == "latest", limit=limit, timeout=SECONDS
        )
        by_rows = connector.tables
        rows = _table_rows(relation, found) if by_rows else _rows(env, reading, found)
        rows = rows if by_rows or start == "earliest" else rows[::-1]
        return _bounded(relation, rows, _note(relation, connector, found))
    finally:
        if reading.registry is not None:
            reading.registry.close()


def _reading(env: Environment, view: CatalogView, relation: Relation) -> _Reading:
    live = LiveStores(env, view)
    # Who may read a relation need not see its store.
    found = view.unit.unfiltered.stores.find(relation.store)
    if found is not None:
        live.stores[found.name] = found
    connector = live.connector(relation.store)
    if not connector.capabilities.print_records:
        raise RequestError(
            "unsupported",
            f"Records of {relation.fqn} cannot be shown: its store {quote(relation.store)} is of kind "
            f"{connector.kind}.",
            hint=f"That works with stores of kind {kinds_that('print_records')}.",
        )
    registry = None
    form = connector.carried_format(relation.value_format)
    bare = relation.find_property("value.descriptor.source") is not None
    if not connector.tables and ((form in DESCRIBED and not bare) or relation.key_format in DESCRIBED):
        registry = live.registry_client(relation.store, f"'value.format' = {relation.value_format}")
    return _Reading(relation, sample_spec(live, relation), connector, registry)


def _rows(env: Environment, reading: _Reading, found: Sampled) -> list[Sampling]:
    source = reading.source
    form = reading.connector.carried_format(source.value_format)
    reader = RowReader(source, form, reading.registry, env.settings.error_excerpts)
    now_ms = round(env.clock.now().timestamp() * 1000)
    return [_row(reader, reading.relation, record, now_ms) for record in found.records]


def _row(reader: RowReader, relation: Relation, record: Record, now_ms: int) -> Sampling:
    if record.value is None and not relation.primary_key:
        why = "A record without a value is no row of a stream: queries pass over it."
        return Sampling(record, Outcome.PASSED_OVER, reason=why)
    try:
        if record.fault is not None:
            raise Undecodable(record.fault)
        row = reader.row(record.key, record.value, record.headers, record.timestamp, now_ms)
    except Undecodable as error:
        return Sampling(record, Outcome.UNDECODABLE, reason=str(error))
    outcome = Outcome.ROW if record.value is not None else Outcome.DELETION
    return Sampling(record, outcome, [shown(row.get(c.name), c.type) for c in relation.columns])


def _table_rows(relation: Relation, found: Sampled) -> list[Sampling]:
    return [Sampling(None, Outcome.ROW, _table_row(relation, record)) for record in found.records]


def _table_row(relation: Relation, record: Record) -> list[Any]:
    """The declared columns of a table's row, whose JSON is the store kind's own."""
    document = json.loads(record.value or b"{}", parse_float=Decimal)
    folded = {name.lower(): value for name, value in document.items()}
    return [_of_table(document.get(c.name, folded.get(c.name.lower())), c.type) for c in relation.columns]


def _of_table(value: Any, kind: DataType) -> Any:
    if kind.kind == "DECIMAL" and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return decimal_text(Decimal(value), kind)
    if isinstance(value, Decimal):
        return number(float(value), single=False)
    if kind.kind == "ARRAY" and isinstance(value, list):
        return [_of_table(item, kind.arguments[0]) for item in value]
    if isinstance(value, dict):
        parts = dict(zip(kind.fields, kind.arguments, strict=True)) if kind.kind == "STRUCT" else {}
        other = kind.arguments[-1] if kind.arguments else kind
        return {name: _of_table(item, parts.get(name, other)) for name, item in value.items()}
    if isinstance(value, list):
        return [_of_table(item, kind) for item in value]
    return value


def _of_view(env: Environment, principal: Principal, relation: Relation, limit: int) -> Sample:
    (statement,) = parse(f"SELECT * FROM {relation.fqn} LIMIT {limit:d}")  # noqa: S608 - a name of the catalog
    assert isinstance(statement, ast.Select)  # noqa: S101
    result = snapshots.select(env, principal, statement, Context())
    if result is None:
        raise EngineError("view-not-ready", f"{relation.fqn} cannot be read now.")
    columns = [(str(c["name"]), str(c["type"])) for c in result.columns or ()]
    rows = [Sampling(None, Outcome.ROW, row) for row in result.rows or ()]
    note = None if rows else f"{relation.fqn} has no rows yet: its query has written none."
    return Sample(relation, columns, rows, note)


def _note(relation: Relation, connector: Connector, found: Sampled) -> str | None:
    what = f"{connector.entity_noun.capitalize()} {relation.entity}"
    if not found.records and found.whole:
        return f"{what} holds no records now."
    if not found.whole:
        bounds = f"{SECONDS:g} s and {MOST_BYTES >> 20} MiB"
        return f"{what} was not read to its end, as a sample takes at most {bounds}: there may be others."
    return None


def _bounded(relation: Relation, rows: Sequence[Sampling], note: str | None) -> Sample:
    columns = [(c.name, str(c.type)) for c in relation.columns]
    kept, size = list[Sampling](), 0
    for one in rows:
        size += size_of(one.record) if one.record is not None else len(json.dumps(one.row))
        if kept and size > _MOST_BYTES:
            more = f"The other {len(rows) - len(kept)} are left out: an answer has at most 1 MiB of records."
            return Sample(relation, columns, kept, f"{note} {more}" if note else more)
        kept.append(one)
    return Sample(relation, columns, kept, note)

"""Changes of PostgreSQL's tables as a source: what a plan checks, what a driver reads, what a query leaves.

A query has a replication slot and a publication of its own in the database (``ChangeFeed.name``), made when
it starts and dropped when it is deleted, unless the user names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from leatstream.connectors.base import MAX_OFFSETS
from leatstream.connectors.entities import Entity, Record, SourceWatch, Table
from leatstream.connectors.postgres.cdc_records import AFTER, BEFORE, ORIGINS, Form
from leatstream.connectors.postgres.cdc_server import APART_HINT, ChangeServer
from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.connectors.postgres.types import readable
from leatstream.errors import Faults, JobError, Position, StoreError, sentence
from leatstream.model.names import quote
from leatstream.model.objects import Column, Relation, RelationKind
from leatstream.model.types import DataType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from leatstream.plan.job_spec import SourceSpec

_ENVELOPE = {"op": ("VARCHAR",), "ts_ms": ("BIGINT",)} | dict.fromkeys((BEFORE, AFTER, *ORIGINS), ("STRUCT",))
_ORIGIN = {"db": "VARCHAR", "schema": "VARCHAR", "table": "VARCHAR", "lsn": "BIGINT"}


# -- plan ----------------------------------------------------------------------------------------------------


def check_source(
    relation: Relation, entity: Entity, server: Mapping[str, str], position: Position | None
) -> None:
    """See that the changes of a table can be read as this relation.

    Args:
        relation: a changelog of the table's rows or a stream of envelopes.
        entity: the table as it is.
        server: what the store tells of itself.
        position: where the relation is named.

    Raises:
        StoreError: the server does not log what is needed.
        RequestError: every fault of the table or of the declared columns.
    """
    store = relation.store
    if server.get("standby"):
        raise StoreError(
            "store-rejected", f"Store {store} is a standby: it has no changes.", position=position
        )
    level = server.get("wal_level")
    if level != "logical":
        raise StoreError(
            "store-rejected",
            f"Store {store}: its server has wal_level = {level}; changes can only be read with logical.",
            position=position,
            hint="Run ALTER SYSTEM SET wal_level = 'logical', and restart the server.",
        )
    faults = Faults()
    table = entity.table or Table(())
    _check_table(relation, table, faults, position)
    if relation.kind is RelationKind.CHANGELOG:
        named = [(c.name, c.type) for c in relation.columns]
        _check_columns(relation, named, table, "", faults, position)
    else:
        _check_envelope(relation, table, faults, position)
    faults.raise_if_any()


def _check_table(relation: Relation, table: Table, faults: Faults, position: Position | None) -> None:
    name = f"table {relation.entity} of store {quote(relation.store)}"
    if table.apart:
        detail = f"The changes of {name} cannot all be read: {table.apart}."
        faults.add("validation", detail, position=position, hint=APART_HINT)
    if not table.primary_key:
        hint = f"ALTER TABLE {relation.entity} ADD PRIMARY KEY (…)"
        detail = sentence(f"{name} has no primary key, which tells its rows apart")
        faults.add("validation", detail, position=position, hint=hint)
        return
    if table.details.get("replica_identity") in ("nothing", "index"):
        hint = f"ALTER TABLE {relation.entity} REPLICA IDENTITY DEFAULT"
        detail = sentence(
            f"{name} does not log the primary key of rows that change or go (its replica identity)"
        )
        faults.add("validation", detail, position=position, hint=hint)
    if relation.kind is RelationKind.CHANGELOG and set(relation.primary_key) != set(table.primary_key):
        key = ", ".join(table.primary_key)
        detail = f"The primary key of {relation.fqn} is not that of {name}, which is ({key})."
        faults.add("validation", detail, position=position, hint=f"PRIMARY KEY ({key})")


def _check_envelope(relation: Relation, table: Table, faults: Faults, position: Position | None) -> None:
    hint = "Columns are op VARCHAR, ts_ms BIGINT, before STRUCT<…>, after STRUCT<…>, source STRUCT<…>."
    for column in relation.columns:
        allowed = _ENVELOPE.get(column.name)
        if allowed is None:
            detail = f"{relation.fqn} is a stream of changes, which has no column {quote(column.name)}."
            more = " A table's rows are read by a CHANGELOG."
            faults.add("unknown-column", detail, position=position, hint=hint + more)
        elif column.type.kind not in allowed:
            detail = f"Column {quote(column.name)} of a stream of changes is {' or '.join(allowed)}."
            faults.add("type-mismatch", detail, position=position, hint=hint)
        elif column.name in (BEFORE, AFTER):
            fields = list(zip(column.type.fields, column.type.arguments, strict=True))
            _check_columns(relation, fields, table, f"{column.name}.", faults, position)
        elif column.name in ORIGINS:
            _check_origin(column, faults, position)


def _check_origin(column: Column, faults: Faults, position: Position | None) -> None:
    for name, kind in zip(column.type.fields, column.type.arguments, strict=True):
        if _ORIGIN.get(name) != kind.kind:
            known = ", ".join(f'"{n}" {t}' for n, t in _ORIGIN.items())
            detail = f"{column.name} of a stream of changes has no member {quote(name)} {kind}."
            faults.add("type-mismatch", detail, position=position, hint=f"Available: {known}.")


def _check_columns(
    relation: Relation,
    columns: Sequence[tuple[str, DataType]],
    table: Table,
    prefix: str,
    faults: Faults,
    position: Position | None,
) -> None:
    there = {column.name: column for column in table.columns}
    for name, kind in columns:
        found = there.get(name)
        if found is None:
            detail = (
                f"Table {relation.entity} has no column {quote(name)} ({prefix}{name} of {relation.fqn})."
            )
            known = ", ".join(quote(c) for c in there)
            faults.add("unknown-column", detail, position=position, hint=f"Available: {known}.")
        elif found.computed:
            detail = (
                f"{prefix}{name} of {relation.fqn} is a generated column of the table, which its log does "
                "not have."
            )
            faults.add(
                "validation", detail, position=position, hint="Leave it out and compute it in the query."
            )
        elif not readable(kind, found.native):
            detail = (
                f"{prefix}{name} of {relation.fqn} is {kind}; the table's column is {found.native}, which "
                f"can be read as {found.type} or VARCHAR."
            )
            faults.add("type-mismatch", detail, position=position)


# -- driver --------------------------------------------------------------------------------------------------


def read_changes(spark: SparkSession, source: SourceSpec, store: str, config: PostgresConfig) -> DataFrame:
    """Raw records of a table's changes; their place in the log stands for an offset."""
    from pyspark.sql import functions as F

    from leatstream.connectors.postgres.cdc_source import DDL, ChangeStream, SourcePlan
    from leatstream.connectors.scan_source import read_scan

    feed = source.feed
    if feed is None or not (feed.slot or feed.name):
        raise JobError("job-rejected", f"The job does not name the replication slot of {source.relation}.")
    first = source.starting_position == "earliest"
    form = Form(
        database=config.database,
        columns=tuple((c.name, c.type) for c in source.columns),
        key=tuple(source.primary_key),
        primitive=bool(source.primary_key) and source.key_format != "json",
        truncates=feed.ignore_truncates,
    )
    kept = _local(feed.directory)
    plan = SourcePlan(
        store=store,
        config=config,
        entity=source.entity,
        form=form,
        slot=feed.slot or feed.name,
        publication=feed.publication or feed.name,
        own=feed.name,
        own_publication=feed.publication is None,
        first_rows=first,
        most=int(spark.conf.get(MAX_OFFSETS, "500000") or "500000"),
        directory=kept or _directory(feed.directory, source, spark, needed=first),
        durable=bool(kept),
    )
    frame = read_scan(spark, f"leatstream_changes_{source.view}", DDL, ChangeStream, plan)
    position = F.struct(
        F.lit(source.entity).alias("topic"),
        F.lit(0).alias("partition"),
        F.col("lsn").alias("offset"),
        F.lit(0).alias("timestamp_type"),
    )
    return frame.select("key", "value", "timestamp", position.alias("__leat_rowmeta"))


def waiting_records(source: SourceSpec, lsn: int) -> Iterator[Record]:
    """Records that wait beside the checkpoint for their batch, the newest batch first."""
    import pyarrow as pa

    directory = _local(source.feed.directory) if source.feed is not None else ""
    for path in sorted(Path(directory).glob("*.arrow"), reverse=True) if directory else ():
        with pa.memory_map(str(path)) as file:
            for batch in pa.ipc.open_stream(file):
                for row in batch.to_pylist():
                    if row["lsn"] == lsn:
                        yield Record(row["key"], row["value"], 0, lsn, None)


def _local(uri: str) -> str:
    """A directory beside the checkpoint; empty where that is on no file system of the machine."""
    parsed = urlparse(uri)
    return unquote(parsed.path) if parsed.scheme in ("", "file") else ""


def _directory(uri: str, source: SourceSpec, spark: SparkSession, *, needed: bool) -> str:
    """Where records wait that can lie in no checkpoint."""
    if needed:
        raise JobError(
            "job-rejected",
            f"The rows of {source.entity} cannot be read with checkpoints at {urlparse(uri).scheme}://: "
            "a directory of the machine is needed. 'starting.position' = 'latest' reads the changes alone.",
        )
    local = str(spark.conf.get("spark.local.dir", gettempdir())).split(",")[0]
    return str(Path(local) / f"changes-{source.feed.name if source.feed else source.view}")


def watch(source: SourceSpec, store: str, config: PostgresConfig) -> SourceWatch | None:
    """How far a source's slot is behind, and how much log the server keeps for it."""
    feed = source.feed
    if feed is None:
        return None
    server = ChangeServer(store, config, source.entity, feed.slot or feed.name, feed.publication or feed.name)
    try:
        slot, end = server.find_slot(), server.flushed()
    finally:
        server.close()
    if slot is None or slot.lost:
        return None
    return SourceWatch(server.slot, max(0, end - slot.confirmed), max(0, end - slot.restart), slot.safe)


def forget(prefix: str, store: str, config: PostgresConfig) -> None:
    """Drop the slots and publications that a query's readers have made."""
    server = ChangeServer(store, config, "", "", "")
    try:
        server.drop_all(prefix)
    finally:
        server.close()

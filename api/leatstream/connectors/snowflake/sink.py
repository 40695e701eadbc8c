"""Rows of a query into a table, exactly once: a micro-batch and its number are one transaction.

One task of Spark writes a batch, over a session of its own, so that no row passes through the driver's
Python. It stages the rows first (``snowflake.staging``). The transaction then checks the query's row in
``LEATSTREAM_BATCHES``, which lies in the table's schema, writes the staged rows, and sets the batch's number:

    QUERY VARCHAR PRIMARY KEY, CHECKPOINT VARCHAR, ATTEMPT NUMBER, BATCH NUMBER, WRITTEN_AT TIMESTAMP_LTZ

A batch whose number is not above ``BATCH`` was committed before: a replay, which writes nothing. An older
``ATTEMPT`` than the row's is a job that was given up and does not know it yet: it is refused. The number is
set last, and under the same conditions: of two that come so far, Snowflake lets one wait, and it finds the
number there.

Snowflake enforces no key. With a key, the rows of the batch's keys are deleted, and the last one of each key
is inserted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.connectors.arrow_tasks import ArrowTasks, Batches
from leatstream.connectors.entities import Table
from leatstream.connectors.one_task import counted, write_in_one_task
from leatstream.connectors.snowflake.admin import SnowflakeAdmin
from leatstream.connectors.snowflake.entity import BATCHES, STAGED, Place
from leatstream.connectors.snowflake.errors import as_store_errors
from leatstream.connectors.snowflake.session import changed, drop_session, kept_session, run
from leatstream.connectors.snowflake.settings import SnowflakeConfig
from leatstream.connectors.snowflake.staging import DELETED, NUMBER, StagedColumn, stage
from leatstream.connectors.snowflake.types import NESTED
from leatstream.connectors.upper_names import quoted
from leatstream.connectors.writers import Nested, Written
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import JobSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from snowflake.connector import SnowflakeConnection

_CONNECT, _WRITE = 30.0, 600.0  # seconds


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to write a batch.

    Attributes:
        columns: in the order of a row.
        keys: names of those by which rows replace each other; empty where each row is kept.
        checkpoint: name of the query's checkpoint; another one counts batches from 0.
    """

    store: str
    config: SnowflakeConfig
    entity: str
    place: Place
    columns: tuple[StagedColumn, ...]
    keys: tuple[str, ...]
    query: str
    checkpoint: str
    attempt: int

    @property
    def batches(self) -> str:
        """The table of batch numbers, as statements write it."""
        return self.place.beside(BATCHES).statement


class SnowflakeTableWriter:
    """Writes the batches of one attempt of a query."""

    def __init__(self, store: str, config: SnowflakeConfig, spec: JobSpec, table: Table) -> None:
        sink, admin = spec.sink, SnowflakeAdmin(store, config)
        natives = {column.name: column.native for column in table.columns}
        self._types = [parse_type(column.type) for column in sink.columns]
        self._tasks = ArrowTasks()
        self.target = Target(
            store=store,
            config=config,
            entity=sink.entity,
            place=admin.place(sink.entity),
            columns=tuple(StagedColumn(c.name, c.type, natives[c.name]) for c in sink.columns),
            keys=tuple(sink.key_columns),
            query=spec.query_id,
            checkpoint=spec.checkpoint_name,
            attempt=spec.attempt,
        )
        self._last = claim(self.target, admin)

    def committed(self) -> int | None:
        """Number of the last batch of this checkpoint that was there when the attempt began."""
        return self._last

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The sink's columns as texts that Snowflake reads as values of the table's columns."""
        return [
            text(value, kind, column.name, nested)
            for value, kind, column in zip(values, self._types, self.target.columns, strict=True)
        ]

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; returns when it is committed.

        Args:
            frame: ``key`` and ``value``, structs of ``c0``, ``c1``, … with the texts of the key's columns and
                of all columns; a row without ``value`` is deleted. Rows of a key are in their order.
            number: Spark's batch number.

        Returns:
            The rows and their bytes; nothing for a replay.
        """
        rows = frame.select(self._row().alias("row"))
        return write_in_one_task(self._tasks, rows, functools.partial(write_rows, self.target, number))

    def _row(self) -> Column:
        from pyspark.sql import functions as F

        places = {column.name: i for i, column in enumerate(self.target.columns)}
        keys = {places[name] for name in self.target.keys}
        parts = [
            F.coalesce(F.col(f"value.c{i}"), F.col(f"key.c{i}")) if i in keys else F.col(f"value.c{i}")
            for i in range(len(places))
        ]
        deleted = F.when(F.col("value").isNull(), "t").otherwise("f") if keys else F.lit("f")
        return F.to_json(F.array(deleted, *parts))


def claim(target: Target, admin: SnowflakeAdmin) -> int | None:
    """Make this attempt the one that may write; the last batch of its checkpoint.

    Raises:
        AttemptBehindError: a newer attempt writes already.
        StoreError: what Snowflake says.
    """
    values = (target.query, target.checkpoint, target.attempt)
    what = f"preparing table {target.entity}"
    with admin.connection(what, _CONNECT, place=target.place) as connection:
        run(
            connection,
            f'CREATE TABLE IF NOT EXISTS {target.batches} ("QUERY" VARCHAR NOT NULL,'
            ' "CHECKPOINT" VARCHAR NOT NULL, "ATTEMPT" NUMBER(19,0) NOT NULL, "BATCH" NUMBER(19,0),'
            ' "WRITTEN_AT" TIMESTAMP_LTZ, PRIMARY KEY ("QUERY"))',
        )
        # One statement, as nothing keeps two attempts from both inserting a row.
        run(
            connection,
            f"MERGE INTO {target.batches} b USING"  # noqa: S608 - our own names
            ' (SELECT ? AS "QUERY", ? AS "CHECKPOINT", ? AS "ATTEMPT") s'
            ' ON b."QUERY" = s."QUERY" WHEN MATCHED AND b."ATTEMPT" <= s."ATTEMPT" THEN UPDATE SET'
            ' "CHECKPOINT" = s."CHECKPOINT", "ATTEMPT" = s."ATTEMPT",'
            ' "BATCH" = CASE WHEN b."CHECKPOINT" = s."CHECKPOINT" THEN b."BATCH" END'
            ' WHEN NOT MATCHED THEN INSERT ("QUERY", "CHECKPOINT", "ATTEMPT")'
            ' VALUES (s."QUERY", s."CHECKPOINT", s."ATTEMPT")',
            values,
        )
        row = _noted(connection, target)
    if row is None:
        raise fenced(target)
    if row[1] != target.attempt:
        raise AttemptBehindError(fenced(target).detail, row[1])
    return row[2]


def _noted(connection: SnowflakeConnection, target: Target) -> tuple[str, int, int | None] | None:
    text = f'SELECT "CHECKPOINT", "ATTEMPT", "BATCH" FROM {target.batches} WHERE "QUERY" = ?'  # noqa: S608
    rows = run(connection, text, (target.query,))
    if not rows:
        return None
    checkpoint, attempt, batch = max(rows, key=lambda row: int(row[1]))
    return checkpoint, int(attempt), None if batch is None else int(batch)


def fenced(target: Target) -> StoreError:
    """A newer attempt writes the table."""
    return StoreError("store-rejected", f"A newer attempt of the query writes table {target.entity} now.")


def text(value: Column, kind: DataType, name: str, nested: Nested) -> Column:
    """A column as text, in the form that Snowflake reads for its type."""
    from pyspark.sql import functions as F

    if kind.kind in NESTED:
        return nested(name, kind, value)
    if kind.kind in ("BYTES", "VARBINARY"):
        return F.hex(value)
    if kind.kind in ("FLOAT", "DOUBLE"):
        # Snowflake's word for it.
        return F.replace(value.cast("string"), F.lit("Infinity"), F.lit("inf"))
    if kind.kind == "TIMESTAMP_LTZ":
        return F.concat(F.replace(value.cast("string"), F.lit(" "), F.lit("T")), F.lit("+00:00"))
    return value.cast("string")


def write_rows(target: Target, number: int, batches: Batches) -> Batches:
    """A task: stage the rows, and write them in one transaction; gives their number and bytes."""
    return counted(batches, functools.partial(_write, target, number))


def _write(target: Target, number: int, batches: Iterator[pa.RecordBatch]) -> Written:
    place, what = target.place, f"writing to table {target.entity}"
    with as_store_errors(target.store, what, target.config, _WRITE, target.entity):
        connection = kept_session(target.config, place.database, place.schema, _WRITE)
        try:
            if _is_replay(connection, target, number):
                return Written()
            rows = (row.as_py() for batch in batches for row in batch.column(0))
            staged = stage(connection, target.columns, rows, target.entity)
            run(connection, "BEGIN")
            if _is_replay(connection, target, number):
                run(connection, "ROLLBACK")
                return Written()
            for statement in statements(target):
                run(connection, statement)
            _set_number(connection, target, number)
            run(connection, "COMMIT")
        except BaseException:
            drop_session(connection)
            raise
    return staged


def _is_replay(connection: SnowflakeConnection, target: Target, number: int) -> bool:
    """Whether the batch is in the table; StoreError where this attempt may not write any more."""
    noted = _noted(connection, target)
    if noted is None or noted[:2] != (target.checkpoint, target.attempt):
        raise fenced(target)
    return noted[2] is not None and noted[2] >= number


def _set_number(connection: SnowflakeConnection, target: Target, number: int) -> None:
    set_now = changed(
        connection,
        f'UPDATE {target.batches} SET "BATCH" = ?, "WRITTEN_AT" = CURRENT_TIMESTAMP()'  # noqa: S608
        ' WHERE "QUERY" = ? AND "CHECKPOINT" = ? AND "ATTEMPT" = ? AND ("BATCH" IS NULL OR "BATCH" < ?)',
        (number, target.query, target.checkpoint, target.attempt, number),
    )
    if set_now == 0:
        raise fenced(target)


def statements(target: Target) -> list[str]:
    """What writes the staged rows, in their order."""
    table, staged = target.place.statement, quoted(STAGED)
    names = ", ".join(quoted(column.name) for column in target.columns)
    values = ", ".join(column.written for column in target.columns)
    if not target.keys:
        return [f"INSERT INTO {table} ({names}) SELECT {values} FROM {staged}"]  # noqa: S608
    keys = [quoted(name) for name in target.keys]
    same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
    # Where a key came more than once, its last row counts.
    last = (
        f"SELECT * FROM {staged} QUALIFY ROW_NUMBER() OVER"  # noqa: S608
        f" (PARTITION BY {', '.join(keys)} ORDER BY {NUMBER} DESC) = 1"
    )
    return [
        f"DELETE FROM {table} t USING {staged} s WHERE {same}",  # noqa: S608
        f"INSERT INTO {table} ({names}) SELECT {values} FROM ({last}) s WHERE NOT s.{DELETED}",  # noqa: S608
    ]

"""Rows of a query into a table, exactly once: a micro-batch and its number are one transaction.

One task of Spark writes a batch, over a connection of its own, so that no row passes through the driver's
Python. Rows come to it as lines of COPY's text format, made in the JVM. It locks the query's row in
``leatstream_batches``, which lies in the table's schema:

    query text PRIMARY KEY, checkpoint text, attempt bigint, batch bigint, written_at timestamptz

A batch whose number is not above ``batch`` was committed before: a replay, which writes nothing. An older
``attempt`` than the row's is a job that was given up and does not know it yet: it is refused.

Without a key, rows are copied into the table itself; with one, into a temporary table, from where the last
row of each key is deleted or upserted. Of such a transaction copying takes a tenth to a fifth of the time, so
that several copying tasks, with a table for what they have staged, would win next to nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.connectors.arrow_tasks import ArrowTasks, Batches
from leatstream.connectors.entities import Table
from leatstream.connectors.one_task import counted, write_in_one_task
from leatstream.connectors.postgres.admin import (
    BATCHES,
    PostgresAdmin,
    beside_values,
    identifier,
    split_entity,
)
from leatstream.connectors.postgres.errors import told
from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.connectors.postgres.workers import kept_connection
from leatstream.connectors.writers import Nested, Written
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import JobSpec

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from psycopg import sql
    from pyspark.sql import Column, DataFrame

_DELETED = "__leat_deleted"
_CONNECT, _WRITE, _LOCK = 10.0, 600.0, 60.0  # seconds
_NESTED = ("ARRAY", "MAP", "STRUCT")
_MAKING = 0x6C656174


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to write a batch.

    Attributes:
        columns: names, in the order of a line.
        keys: names of those by which rows replace each other; empty where each row is kept.
        deletes: whether a line begins with ``t`` or ``f``: is the row of this key to go?
        checkpoint: name of the query's checkpoint; another one counts batches from 0.
    """

    store: str
    config: PostgresConfig
    entity: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    deletes: bool
    query: str
    checkpoint: str
    attempt: int


class PostgresTableWriter:
    """Writes the batches of one attempt of a query."""

    def __init__(self, store: str, config: PostgresConfig, spec: JobSpec, table: Table) -> None:
        sink = spec.sink
        self._tasks = ArrowTasks()
        self.target = Target(
            store=store,
            config=config,
            entity=sink.entity,
            columns=tuple(column.name for column in sink.columns),
            keys=tuple(sink.key_columns),
            deletes=bool(sink.key_columns),
            query=spec.query_id,
            checkpoint=spec.checkpoint_name,
            attempt=spec.attempt,
        )
        self._types = [parse_type(column.type) for column in sink.columns]
        self._natives = {column.name: column.native for column in table.columns}
        self._last = self._open(PostgresAdmin(store, config))

    def committed(self) -> int | None:
        """Number of the last batch of this checkpoint that was there when the attempt began."""
        return self._last

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The sink's columns as texts that PostgreSQL reads as values of the table's columns."""
        return [
            text(value, kind, name, self._natives[name], nested)
            for value, kind, name in zip(values, self._types, self.target.columns, strict=True)
        ]

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; returns when it is committed.

        Args:
            frame: ``key`` and ``value``, structs of ``c0``, ``c1``, … with the texts of the key's columns and
                of all columns; a row without ``value`` goes. Rows of a key are in their order.
            number: Spark's batch number.

        Returns:
            The lines and their bytes; nothing for a replay.
        """
        lines = frame.select(self._line().alias("line"))
        return write_in_one_task(self._tasks, lines, functools.partial(write_lines, self.target, number))

    def _line(self) -> Column:
        from pyspark.sql import functions as F

        places = {name: i for i, name in enumerate(self.target.columns)}
        keys = {places[name] for name in self.target.keys}
        parts = [
            F.coalesce(F.col(f"value.c{i}"), F.col(f"key.c{i}")) if i in keys else F.col(f"value.c{i}")
            for i in range(len(places))
        ]
        escaped = [F.coalesce(_escaped(part), F.lit("\\N")) for part in parts]
        head = [F.when(F.col("value").isNull(), "t").otherwise("f")] if self.target.deletes else []
        return F.concat(F.concat_ws("\t", *head, *escaped), F.lit("\n"))

    def _open(self, admin: PostgresAdmin) -> int | None:
        """Make this attempt the one that may write; the last batch of its checkpoint."""
        target, what = self.target, f"preparing table {self.target.entity}"
        name = batches_of(target)
        with admin.connection(what, _CONNECT) as connection, connection.transaction():
            # Two queries that both make the table would get in each other's way.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            schema, _ = split_entity(target.entity)
            there = connection.execute(
                "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE n.nspname = %s AND c.relname = %s",
                (schema, BATCHES),
            ).fetchone()
            if there is None:
                connection.execute(
                    _statement(
                        "CREATE TABLE {} (query text PRIMARY KEY, checkpoint text NOT NULL,"
                        " attempt bigint NOT NULL, batch bigint, written_at timestamptz)",
                        name,
                    )
                )
            connection.execute(
                _statement(
                    "INSERT INTO {} AS b (query, checkpoint, attempt) VALUES (%s, %s, %s)"
                    " ON CONFLICT (query) DO UPDATE SET"
                    " checkpoint = excluded.checkpoint, attempt = excluded.attempt,"
                    " batch = CASE WHEN b.checkpoint = excluded.checkpoint THEN b.batch END"
                    " WHERE b.attempt <= excluded.attempt",
                    name,
                ),
                (target.query, target.checkpoint, target.attempt),
            )
            row = connection.execute(
                _statement("SELECT attempt, batch FROM {} WHERE query = %s", name), (target.query,)
            ).fetchone()
        if row is None:
            raise fenced(target)
        if row[0] != target.attempt:
            raise AttemptBehindError(fenced(target).detail, row[0])
        last: int | None = row[1]
        return last


def batches_of(target: Target) -> sql.Identifier:
    """The table of batch numbers in the schema of a target."""
    from psycopg import sql

    return sql.Identifier(split_entity(target.entity)[0], BATCHES)


def fenced(target: Target) -> StoreError:
    """A newer attempt writes the table."""
    return StoreError("store-rejected", f"A newer attempt of the query writes table {target.entity} now.")


def text(value: Column, kind: DataType, name: str, native: str, nested: Nested) -> Column:
    """A column as text, in the form that PostgreSQL reads for the type of the table's column."""
    if kind.kind == "ARRAY" and native.endswith("[]"):
        return _array(value, kind.arguments[0])
    if kind.kind in _NESTED:
        return nested(name, kind, value)
    return _scalar(value, kind)


def _scalar(value: Column, kind: DataType) -> Column:
    from pyspark.sql import functions as F

    if kind.kind in ("BYTES", "VARBINARY"):
        return F.concat(F.lit("\\x"), F.hex(value))
    if kind.kind == "TIMESTAMP_LTZ":
        return F.concat(value.cast("string"), F.lit("Z"))
    return value.cast("string")


def _array(value: Column, inner: DataType) -> Column:
    """``{"a","b",NULL}``"""
    from pyspark.sql import functions as F

    def item(one: Column) -> Column:
        plain = F.replace(_scalar(one, inner), F.lit("\\"), F.lit("\\\\"))
        quoted = F.concat(F.lit('"'), F.replace(plain, F.lit('"'), F.lit('\\"')), F.lit('"'))
        return F.coalesce(quoted, F.lit("NULL"))

    return F.concat(F.lit("{"), F.array_join(F.transform(value, item), ","), F.lit("}"))


def _escaped(value: Column) -> Column:
    from pyspark.sql import functions as F

    for plain, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        value = F.replace(value, F.lit(plain), F.lit(written))
    return value


def write_lines(target: Target, number: int, batches: Batches) -> Batches:
    """A task: write the batch in one transaction; gives its lines and their bytes."""
    return counted(batches, functools.partial(_write, target, number))


def _write(target: Target, number: int, batches: Iterator[pa.RecordBatch]) -> Written:
    what = f"writing to table {target.entity}"
    with told(target.store, what, target.config.where, _WRITE, target.entity):
        connection = kept_connection(target.config, _WRITE, _LOCK)
        with connection.transaction():
            row = connection.execute(
                _statement(
                    "SELECT checkpoint, attempt, batch FROM {} WHERE query = %s FOR UPDATE",
                    batches_of(target),
                ),
                (target.query,),
            ).fetchone()
            if row is None or row[:2] != (target.checkpoint, target.attempt):
                raise fenced(target)
            if row[2] is not None and row[2] >= number:
                return Written()
            written = (
                _upsert(connection, target, batches) if target.keys else _append(connection, target, batches)
            )
            connection.execute(
                _statement(
                    "UPDATE {} SET batch = %s, written_at = now() WHERE query = %s", batches_of(target)
                ),
                (number, target.query),
            )
    return written


def _append(
    connection: psycopg.Connection[Any], target: Target, batches: Iterator[pa.RecordBatch]
) -> Written:
    return _copy(connection, identifier(target.entity), _names(target.columns), batches)


def _upsert(
    connection: psycopg.Connection[Any], target: Target, batches: Iterator[pa.RecordBatch]
) -> Written:
    from psycopg import sql

    table, staged = identifier(target.entity), sql.Identifier("pg_temp", "leat_batch")
    names, deleted = _names(target.columns), sql.Identifier(_DELETED)
    columns = sql.SQL(", ").join(names)
    keys = _names(target.keys)
    connection.execute(
        sql.SQL(
            "CREATE TEMPORARY TABLE leat_batch ON COMMIT DROP AS"
            " SELECT NULL::boolean AS {}, {} FROM {} WITH NO DATA"
        ).format(deleted, columns, table)
    )
    written = _copy(connection, staged, [deleted, *names], batches)
    # Where a key came more than once, its last row counts; a table that was just filled lies in its order.
    last = sql.SQL("(SELECT DISTINCT ON ({keys}) * FROM {staged} ORDER BY {keys}, ctid DESC) b").format(
        keys=sql.SQL(", ").join(keys), staged=staged
    )
    same = sql.SQL(" AND ").join(sql.SQL("t.{0} = b.{0}").format(key) for key in keys)
    connection.execute(
        sql.SQL("DELETE FROM {} t USING {} WHERE b.{} AND {}").format(table, last, deleted, same)
    )
    rest = [n for n, name in zip(names, target.columns, strict=True) if name not in target.keys]
    sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(n) for n in rest)
    doing = sql.SQL("UPDATE SET {}").format(sets) if rest else sql.SQL("NOTHING")
    connection.execute(
        sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE NOT b.{} ON CONFLICT ({}) DO {}").format(
            table, columns, columns, last, deleted, sql.SQL(", ").join(keys), doing
        )
    )
    return written


def _names(columns: Sequence[str]) -> list[sql.Identifier]:
    from psycopg import sql

    return [sql.Identifier(name) for name in columns]


def _statement(text: str, name: sql.Identifier) -> sql.Composed:
    from psycopg import sql

    return sql.SQL(text).format(beside_values(name) if "%s" in text else name)


def _copy(
    connection: psycopg.Connection[Any],
    table: sql.Composable,
    columns: Sequence[sql.Composable],
    batches: Iterator[pa.RecordBatch],
) -> Written:
    from psycopg import sql

    count = size = 0
    copying = sql.SQL("COPY {} ({}) FROM STDIN").format(table, sql.SQL(", ").join(columns))
    with connection.cursor() as cursor, cursor.copy(copying) as copy:
        for batch in batches:
            lines = _bytes(batch.column(0))
            copy.write(lines)
            count += batch.num_rows
            size += lines.nbytes
    return Written(count, size)


def _bytes(lines: pa.Array) -> memoryview:
    """The lines one behind the other, which is how Arrow has them."""
    _, offsets, data = lines.buffers()
    raw = memoryview(offsets).cast("B")
    places = raw.cast("q") if str(lines.type) == "large_string" else raw.cast("i")
    return memoryview(data).cast("B")[places[lines.offset] : places[lines.offset + len(lines)]]

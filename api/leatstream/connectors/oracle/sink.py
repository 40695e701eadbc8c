"""Rows of a query into a table, exactly once: a micro-batch and its number are one transaction.

One task of Spark writes a batch. It locks the query's row in ``LEATSTREAM_BATCHES``, a table in the schema of
the store's user:

    QUERY VARCHAR2 PRIMARY KEY, CHECKPOINT VARCHAR2, ATTEMPT NUMBER, BATCH NUMBER, WRITTEN_AT TIMESTAMP

A batch whose number is not above ``BATCH`` was committed before: a replay, which writes nothing. An older
``ATTEMPT`` than the row's is a job that was given up and does not know it yet: it is refused.

Without a key, rows are inserted into the table itself. With one they go into a global temporary table of the
query's own, which is made beforehand, because DDL commits. From there the last row of each key is deleted or
merged. MERGE's own DELETE would have to update a row first.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.connectors.arrow_tasks import ArrowTasks, Batches
from leatstream.connectors.entities import Table
from leatstream.connectors.one_task import counted, write_in_one_task
from leatstream.connectors.oracle.batches import batches_table, make
from leatstream.connectors.oracle.errors import Place, library
from leatstream.connectors.oracle.names import STAGED, table_name
from leatstream.connectors.oracle.records import merge
from leatstream.connectors.oracle.session import CONNECT, connected, transaction
from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.oracle.types import LOBS, NESTED, base_of
from leatstream.connectors.upper_names import quoted
from leatstream.connectors.writers import Nested, Written
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import JobSpec

if TYPE_CHECKING:
    import oracledb
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_WRITE, _LOCK = 600.0, 60  # seconds
_NUMBER, _DELETED = quoted("LEAT_NUMBER"), quoted("LEAT_DELETED")


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to write a batch.

    Attributes:
        columns: names, in the order of a row: large objects last, as Oracle wants them.
        natives: the columns' types.
        keys: names of those by which rows replace each other; empty where each row is kept.
        checkpoint: name of the query's checkpoint; another one counts batches from 0.
    """

    store: str
    config: OracleConfig
    entity: str
    columns: tuple[str, ...]
    natives: tuple[str, ...]
    keys: tuple[str, ...]
    query: str
    checkpoint: str
    attempt: int

    def place(self, what: str) -> Place:
        """Address of a call, for messages."""
        return Place(self.store, self.config.where, f"{what} table {self.entity}")

    @property
    def table(self) -> str:
        """The table in a statement."""
        return table_name(self.config, self.entity)

    @property
    def staged(self) -> str:
        """The temporary table in a statement: one for each shape that the query's rows have had."""
        shape = repr((self.entity, self.columns, self.natives))
        return quoted(self.config.own_schema, staged_prefix(self.query) + _digest(shape, 8))


def staged_prefix(query: str) -> str:
    """What the names of a query's temporary tables begin with."""
    return f"{STAGED}{_digest(query, 12)}_"


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length].upper()


class OracleTableWriter:
    """Writes the batches of one attempt of a query."""

    def __init__(self, store: str, config: OracleConfig, spec: JobSpec, table: Table) -> None:
        sink = spec.sink
        natives = {column.name: column.native for column in table.columns}
        self._types = [parse_type(column.type) for column in sink.columns]
        self._names = [column.name for column in sink.columns]
        # ORA-24816: no value may follow a large object.
        order = sorted(self._names, key=lambda name: base_of(natives[name])[0] in LOBS)
        self._tasks = ArrowTasks()
        self.target = Target(
            store=store,
            config=config,
            entity=sink.entity,
            columns=tuple(order),
            natives=tuple(natives[name] for name in order),
            keys=tuple(sink.key_columns),
            query=spec.query_id,
            checkpoint=spec.checkpoint_name,
            attempt=spec.attempt,
        )
        self._last = self._open()

    def committed(self) -> int | None:
        """Number of the last batch of this checkpoint that was there when the attempt began."""
        return self._last

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The sink's columns: JSON of what is nested, 0 and 1 of BOOLEAN, the others as they are."""
        found = []
        for value, kind, name in zip(values, self._types, self._names, strict=True):
            if kind.kind in NESTED:
                value = nested(name, kind, value)
            elif kind.kind == "BOOLEAN":
                value = value.cast("int")
            found.append(value)
        return found

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; returns when it is committed. See ``TableWriter``."""
        from pyspark.sql import functions as F

        place = {name: f"c{i}" for i, name in enumerate(self._names)}
        # The members of a key are named as those of the value.
        parts = [
            F.coalesce(F.col(f"value.{place[name]}"), F.col(f"key.{place[name]}"))
            if name in self.target.keys
            else F.col(f"value.{place[name]}")
            for name in self.target.columns
        ]
        head = [F.col("value").isNull().cast("int").alias("d")] if self.target.keys else []
        named = [part.alias(f"v{i}") for i, part in enumerate(parts)]
        return write_in_one_task(
            self._tasks, frame.select(*head, *named), functools.partial(write_rows, self.target, number)
        )

    def _open(self) -> int | None:
        """Make this attempt the one that may write; the last batch of its checkpoint."""
        target, name = self.target, batches_table(self.target.config)
        with (
            connected(target.place("preparing"), target.config, CONNECT) as connection,
            connection.cursor() as cursor,
        ):
            make(
                cursor,
                f'CREATE TABLE {name} ("QUERY" VARCHAR2(128 CHAR) PRIMARY KEY,'
                ' "CHECKPOINT" VARCHAR2(256 CHAR) NOT NULL, "ATTEMPT" NUMBER(19) NOT NULL,'
                ' "BATCH" NUMBER(19), "WRITTEN_AT" TIMESTAMP(6))',
            )
            if target.keys:
                columns = [f"{quoted(n)} {t}" for n, t in zip(target.columns, target.natives, strict=True)]
                make(
                    cursor,
                    f"CREATE GLOBAL TEMPORARY TABLE {target.staged} ({_NUMBER} NUMBER(19),"
                    f" {_DELETED} NUMBER(1), {', '.join(columns)}) ON COMMIT DELETE ROWS",
                )
            try:
                cursor.execute(
                    f'INSERT INTO {name} ("QUERY", "CHECKPOINT", "ATTEMPT") VALUES (:1, :2, :3)',  # noqa: S608
                    [target.query, target.checkpoint, target.attempt],
                )
            except library().IntegrityError:
                cursor.execute(
                    f'UPDATE {name} SET "BATCH" = CASE WHEN "CHECKPOINT" = :1 THEN "BATCH" END,'  # noqa: S608
                    ' "CHECKPOINT" = :2, "ATTEMPT" = :3 WHERE "QUERY" = :4 AND "ATTEMPT" <= :5',
                    [target.checkpoint, target.checkpoint, target.attempt, target.query, target.attempt],
                )
            row = cursor.execute(
                f'SELECT "ATTEMPT", "BATCH" FROM {name} WHERE "QUERY" = :1',  # noqa: S608
                [target.query],
            ).fetchone()
            connection.commit()
        if row is None:
            raise fenced(target)
        if int(row[0]) != target.attempt:
            raise AttemptBehindError(fenced(target).detail, int(row[0]))
        return None if row[1] is None else int(row[1])


def fenced(target: Target) -> StoreError:
    """A newer attempt writes the table."""
    return StoreError("store-rejected", f"A newer attempt of the query writes table {target.entity} now.")


def write_rows(target: Target, number: int, batches: Batches) -> Batches:
    """A task: write the batch in one transaction; gives its rows and their bytes.

    Args:
        target: what is written.
        number: of the batch.
        batches: its rows, as ``OracleTableWriter.write`` makes them.
    """
    return counted(batches, functools.partial(_write, target, number))


def _write(target: Target, number: int, batches: Iterator[pa.RecordBatch]) -> Written:
    name = batches_table(target.config)
    place = target.place("writing to")
    with (
        transaction(place, target.config, _WRITE, target.entity) as connection,
        connection.cursor() as cursor,
    ):
        row = cursor.execute(
            f'SELECT "CHECKPOINT", "ATTEMPT", "BATCH" FROM {name} WHERE "QUERY" = :1 FOR UPDATE WAIT {_LOCK}',  # noqa: S608
            [target.query],
        ).fetchone()
        if row is None or (row[0], int(row[1])) != (target.checkpoint, target.attempt):
            raise fenced(target)
        if row[2] is not None and int(row[2]) >= number:
            return Written()
        written = _insert(cursor, target, batches)
        if target.keys:
            _apply(cursor, target)
        cursor.setinputsizes()
        cursor.execute(
            f'UPDATE {name} SET "BATCH" = :1, "WRITTEN_AT" = SYSTIMESTAMP WHERE "QUERY" = :2',  # noqa: S608
            [number, target.query],
        )
    return written


def _insert(cursor: oracledb.Cursor, target: Target, batches: Iterator[pa.RecordBatch]) -> Written:
    """Put the rows into the table, or into the temporary one with their numbers."""
    from leatstream.connectors.oracle.binding import rows_of, sizes

    names = [quoted(name) for name in target.columns]
    into = target.table
    if target.keys:
        names, into = [_NUMBER, _DELETED, *names], target.staged
    places = ", ".join(f":{i}" for i in range(1, len(names) + 1))
    text = f"INSERT INTO {into} ({', '.join(names)}) VALUES ({places})"  # noqa: S608
    written = Written()
    for batch in batches:
        rows: list[Any] = rows_of(batch, target, written.rows)
        cursor.setinputsizes(*sizes(target))
        cursor.executemany(text, rows)
        written += Written(batch.num_rows, batch.nbytes)
    return written


def _apply(cursor: oracledb.Cursor, target: Target) -> None:
    """Delete and merge the last row of each key."""
    columns = [quoted(name) for name in target.columns]
    keys = [quoted(name) for name in target.keys]
    numbered = (
        f"SELECT B.*, ROW_NUMBER() OVER (PARTITION BY {', '.join(f'B.{key}' for key in keys)}"  # noqa: S608
        f' ORDER BY B.{_NUMBER} DESC) AS "LEAT_LAST" FROM {target.staged} B'
    )
    same = " AND ".join(f"S.{key} = T.{key}" for key in keys)
    cursor.execute(
        f"DELETE FROM {target.table} T WHERE EXISTS (SELECT 1 FROM ({numbered}) S"  # noqa: S608
        f' WHERE S."LEAT_LAST" = 1 AND S.{_DELETED} = 1 AND {same})'
    )
    source = (
        f"SELECT {', '.join(f'N.{column}' for column in columns)} FROM ({numbered}) N"  # noqa: S608
        f' WHERE N."LEAT_LAST" = 1 AND N.{_DELETED} = 0'
    )
    cursor.execute(merge(target.table, source, target.columns, target.keys))

"""Which micro-batches a database's tables have: the table ``leatstream_batches``, a row for each query.

ClickHouse has no transactions, so this record alone makes nothing exactly once. It fences older attempts, it
lets a batch that is complete be passed over, and it fixes which version the rows of a batch have: a batch
notes its version before its rows are written, and a replay takes the noted one.

    query, checkpoint, attempt, batch, version, complete, written_at

``step`` grows with attempt, batch and completion; the row with the highest one counts, so that an older
attempt cannot overwrite what a newer one noted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.connectors.clickhouse.names import BATCHES, quoted

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

_COLUMNS = "query, checkpoint, attempt, batch, version, complete"
_TYPES = ("String", "String", "UInt64", "Nullable(Int64)", "UInt64", "Bool", "UInt64")
_ATTEMPT_BIT = 40
# Where a server has replicas, the newest row is to be read from each of them.
_CONSISTENT = {"select_sequential_consistency": 1}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a query's batches are in its table.

    Attributes:
        checkpoint: name of the checkpoint whose batches are counted.
        batch: the last one that was begun; None for none of this checkpoint.
        version: of the last rows that were written, in milliseconds; no later batch has a smaller one.
        complete: whether the batch is there whole.
    """

    query: str
    checkpoint: str
    attempt: int
    batch: int | None = None
    version: int = 0
    complete: bool = True

    @property
    def step(self) -> int:
        """Which of two rows is the newer one."""
        number = 0 if self.batch is None else self.batch + 1
        return self.attempt << _ATTEMPT_BIT | number << 1 | int(self.complete)


def make(client: Client, database: str) -> None:
    """Make the table where there is none."""
    client.command(
        f"CREATE TABLE IF NOT EXISTS {_place(database)} (query String, checkpoint String, attempt UInt64,"
        " batch Nullable(Int64), version UInt64, complete Bool, step UInt64,"
        " written_at DateTime64(3, 'UTC') DEFAULT now64(3))"
        " ENGINE = ReplacingMergeTree(step) ORDER BY query"
    )


def read(client: Client, database: str, query: str) -> Progress | None:
    """What is noted of a query; None before its first batch.

    Args:
        client: of the server.
        database: the one of the query's table.
        query: its id.
    """
    rows = client.query(
        f"SELECT {_COLUMNS} FROM {_place(database)} FINAL WHERE query = {{query:String}}",  # noqa: S608
        {"query": query},
        settings=dict(_CONSISTENT),
    ).result_rows
    return Progress(*rows[0]) if rows else None


def now(client: Client) -> int:
    """The server's time in milliseconds."""
    ((millis,),) = client.query("SELECT toUnixTimestamp64Milli(now64(3))").result_rows
    return int(millis)


def note(client: Client, database: str, progress: Progress) -> None:
    """Write down how far a query is.

    Args:
        client: of the server.
        database: the one of the query's table.
        progress: what counts from now on, unless a newer attempt has noted something.
    """
    row = [progress.query, progress.checkpoint, progress.attempt, progress.batch, progress.version]
    client.insert(
        BATCHES,
        [[*row, progress.complete, progress.step]],
        column_names=[*_COLUMNS.split(", "), "step"],
        column_type_names=_TYPES,  # else the client would ask for them each time
        database=database,
    )


def forget(client: Client, query: str) -> None:
    """Remove a query's row from every database that has one."""
    found = client.query(
        "SELECT database FROM system.tables WHERE name = {name:String}", {"name": BATCHES}
    ).result_rows
    for (database,) in found:
        client.command(f"DELETE FROM {_place(database)} WHERE query = {{query:String}}", {"query": query})  # noqa: S608


def _place(database: str) -> str:
    return f"{quoted(database)}.{BATCHES}"

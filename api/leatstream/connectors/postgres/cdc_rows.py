"""A table's first rows, read in chunks as of one moment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from leatstream.connectors.postgres.cdc_position import Key, Mark
from leatstream.connectors.postgres.cdc_server import PATIENCE, TIMEOUT, ChangeServer
from leatstream.connectors.postgres.cdc_table import SourceTable, fetched
from leatstream.connectors.postgres.pgoutput import parse_lsn
from leatstream.connectors.postgres.settings import connect
from leatstream.errors import StoreError

# now() is the moment of BEGIN, just before that of the snapshot: so it is not later than changes it lacks.
_SEEN = """
SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text,
  (extract(epoch FROM now()) * 1000000)::bigint
"""


class FirstRows:
    """A transaction that sees one state of the table, to read its rows in chunks by primary key."""

    def __init__(
        self, server: ChangeServer, table: SourceTable, columns: Sequence[str], *, first: bool
    ) -> None:
        self._server = server
        self._table = table
        self._columns = columns
        with server.doing(f"reading table {server.entity}"):
            if first:
                self._wait_for_open_transactions()
            self._connection = connect(server.config, TIMEOUT)
            self._connection.execute("SET statement_timeout = 0")
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            row = self._connection.execute(_SEEN).fetchone()
        snapshot, lsn, at = row or ("", "0/0", 0)
        self.seen = Mark(snapshot, parse_lsn(lsn), at=int(at))

    def chunk(self, after: Key | None, most: int) -> list[list[bytes | None]]:
        """The next rows: the columns asked for, then the key's."""
        from psycopg import sql

        table = self._table
        keys = sql.SQL(", ").join(sql.Identifier(c.name) for c in table.key)
        where: sql.Composable = sql.SQL("")
        if after is not None:
            values = sql.SQL(", ").join(sql.Literal(v) for v in after)
            where = sql.SQL("WHERE ({}) > ({})").format(keys, values)
        query = sql.SQL("SELECT {} FROM {} {} ORDER BY {} LIMIT {}").format(
            sql.SQL(", ").join(
                sql.Identifier(name) for name in (*self._columns, *(c.name for c in table.key))
            ),
            sql.Identifier(table.schema, table.name),
            where,
            keys,
            sql.Literal(most),
        )
        with self._server.doing(f"reading table {self._server.entity}"):
            return fetched(self._connection.execute(query))

    def close(self) -> None:
        """End the transaction."""
        with contextlib.suppress(Exception):
            self._connection.close()

    def _wait_for_open_transactions(self) -> None:
        """Wait for those whose commit may stand before the slot's begin although they still count as open.

        With a synchronous standby that may last: the commit is in the log before it can be seen.
        """
        connection = self._server.connection
        row = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
        begun, end = row[0] if row else "0", time.monotonic() + PATIENCE
        over = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %s::xid8"
        while (row := connection.execute(over, (begun,)).fetchone()) and not row[0]:
            if time.monotonic() > end:
                raise StoreError(
                    "store-unreachable",
                    f"Store {self._server.store}: a transaction has been open for more than {PATIENCE:g} s; "
                    f"the rows of {self._server.entity} cannot be read beside it.",
                    hint="pg_stat_activity shows it; end it.",
                )
            time.sleep(0.05)

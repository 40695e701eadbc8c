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

_FOREIGN = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_index i CROSS JOIN unnest(i.indkey::int2[], i.indclass::oid[]) AS k(number, class)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
JOIN pg_opclass o ON o.oid = k.class JOIN pg_namespace n ON n.oid = o.opcnamespace
WHERE i.indrelid = to_regclass(%s) AND i.indisprimary AND n.nspname <> 'pg_catalog'
"""


def check_order(server: ChangeServer, table: SourceTable) -> None:
    """See that keys can be compared as the table's index orders them.

    Operators are looked for in pg_catalog alone. The keys of an extension's type, such as citext, are ordered
    by its own and would be compared by text's: rows between two chunks would be passed over.

    Raises:
        StoreError: store-rejected, for a key column of such a type.
    """
    from psycopg import sql

    with server.doing(f"describing the key of table {server.entity}"):
        name = sql.Identifier(table.schema, table.name).as_string(server.connection)
        found = server.connection.execute(_FOREIGN, (name,)).fetchone()
    if found:
        raise StoreError(
            "store-rejected",
            f"Store {server.store}: the rows of table {server.entity} cannot be read in the order of its "
            f"primary key: the key column {found[0]} is {found[1]}, a type with an order of its own.",
            hint="'starting.position' = 'latest' reads the changes alone; or give the key a type of "
            "PostgreSQL's own, such as text.",
        )


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

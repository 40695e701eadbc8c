"""What the change source asks of PostgreSQL: its slot, its publication and the log.

The log is read by ``pg_logical_slot_peek_binary_changes`` over a plain connection, which takes nothing away:
reading it again gives the same. Only ``advance`` does, for what is done with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.connectors.postgres.admin import rows_apart, split_entity
from leatstream.connectors.postgres.errors import store_error
from leatstream.connectors.postgres.pgoutput import format_lsn, parse_lsn
from leatstream.connectors.postgres.settings import PostgresConfig, connect
from leatstream.errors import StoreError

if TYPE_CHECKING:
    import psycopg

TIMEOUT = 20.0
# How long transactions that are open when a slot is made may stay so.
PATIENCE = 60.0
APART_HINT = (
    "Declare a relation over each of the tables and write UNION ALL; partitions (PARTITION BY) are read with "
    "their table."
)
_HEADER = 19
_PUBLISHED = """
SELECT p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate, to_jsonb(t) ->> 'rowfilter'
FROM pg_publication_tables t JOIN pg_publication p ON p.pubname = t.pubname
WHERE t.pubname = %s AND t.schemaname = %s AND t.tablename = %s
"""
_SLOT = """
SELECT confirmed_flush_lsn::text, restart_lsn::text, plugin, database = current_database(), active_pid,
  to_jsonb(s) ->> 'wal_status', to_jsonb(s) ->> 'safe_wal_size'
FROM pg_replication_slots s WHERE slot_name = %s
"""
_DROP = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "


@dataclass(frozen=True, slots=True)
class Slot:
    """A replication slot.

    Attributes:
        confirmed: up to here the reader is done.
        restart: from here on the server keeps its log for the slot.
        lost: whether the server has thrown away what the slot needs.
        safe: bytes of log that may still be written before that happens; None where there is no bound.
    """

    confirmed: int
    restart: int
    plugin: str
    here: bool
    active_pid: int | None
    lost: bool
    safe: int | None


class ChangeServer:
    """A connection to the database of a table, opened when it is needed.

    Args:
        store: name, for messages.
        config: settings with the secret.
        entity: the table.
        slot, publication: their names.
    """

    def __init__(self, store: str, config: PostgresConfig, entity: str, slot: str, publication: str) -> None:
        self.store = store
        self.config = config
        self.entity = entity
        self.slot = slot
        self.publication = publication
        self._connection: psycopg.Connection[Any] | None = None
        self._beside: psycopg.Connection[Any] | None = None

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection; psycopg.Error when there is none to be had."""
        if self._connection is None:
            opened = connect(self.config, TIMEOUT)
            # A look at much log takes as long as it takes.
            opened.execute("SET statement_timeout = 0")
            self._connection = opened
        return self._connection

    @property
    def beside(self) -> psycopg.Connection[Any]:
        """Another one, for questions while the log is being read over the first."""
        if self._beside is None:
            self._beside = connect(self.config, TIMEOUT)
        return self._beside

    def close(self) -> None:
        """Close the connections; the next call opens others."""
        for one in (self._connection, self._beside):
            if one is not None:
                with contextlib.suppress(Exception):
                    one.close()
        self._connection = self._beside = None

    @contextlib.contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """psycopg's errors as StoreErrors; after one the connection is closed."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            code = error.sqlstate
            self.close()
            if code == "55006":
                raise self._in_use() from None
            if code in ("42704", "55000"):
                self.require_all()
            raise store_error(self.store, what, error, self.config.where, TIMEOUT) from None

    # -- slot and publication --------------------------------------------------------------------------------

    def find_slot(self) -> Slot | None:
        """The slot, or None."""
        with self.doing(f"looking at slot {self.slot}"):
            row = self.connection.execute(_SLOT, (self.slot,)).fetchone()
        if row is None:
            return None
        confirmed, restart, plugin, here, pid, status, safe = row
        return Slot(
            confirmed=parse_lsn(confirmed) if confirmed else 0,
            restart=parse_lsn(restart) if restart else 0,
            plugin=str(plugin),
            here=bool(here),
            active_pid=pid,
            lost=status == "lost" or not restart,
            safe=int(safe) if safe else None,
        )

    def require_slot(self) -> Slot:
        """The slot, which has to be able to go on.

        Raises:
            StoreError: entity-not-found, when it is gone or has lost its log; store-rejected, when it is
                another's.
        """
        slot = self.find_slot()
        gone = "what the table has changed since it was last read cannot be known any more"
        if slot is None:
            raise StoreError(
                "entity-not-found",
                f"Store {self.store}: the replication slot {self.slot} of table {self.entity} is not there "
                f"any more: {gone}.",
            )
        if slot.lost:
            raise StoreError(
                "entity-not-found",
                f"Store {self.store}: PostgreSQL has removed the log that slot {self.slot} needs "
                f"(max_slot_wal_keep_size): {gone}.",
            )
        if slot.plugin != "pgoutput" or not slot.here:
            raise StoreError(
                "store-rejected",
                f"Store {self.store}: slot {self.slot} is not of the plug-in pgoutput and this database.",
                hint="Name another in postgresql.slot.name; a new one is made if there is none.",
            )
        return slot

    def require_all(self) -> Slot:
        """The slot; StoreError where something is wrong with it or with the publication."""
        slot = self.require_slot()
        self.require_publication()
        return slot

    def require_publication(self) -> None:
        """See that the log has every change of the table's rows: of one that it lacks it tells nothing.

        Raises:
            StoreError: entity-not-found without the table in the publication; store-rejected where some
                changes are missing.
        """
        schema, name = split_entity(self.entity)
        with self.doing(f"looking at publication {self.publication}"):
            found = self.connection.execute(_PUBLISHED, (self.publication, schema, name)).fetchone()
            apart = rows_apart(self.connection, self.entity)
        if found is not None and apart:
            raise StoreError(
                "store-rejected",
                f"Store {self.store}: the changes of table {self.entity} cannot all be read: {apart}.",
                hint=APART_HINT,
            )
        if found is not None and found != (True, None):
            raise StoreError(
                "store-rejected",
                f"Store {self.store}: publication {self.publication} leaves out changes of table "
                f"{self.entity}: it has a row filter, or does not publish all kinds of changes.",
                hint="ALTER PUBLICATION … SET (publish = 'insert, update, delete, truncate'), and SET TABLE "
                "without WHERE; a query's own WHERE chooses rows",
            )
        if found is None:
            raise StoreError(
                "entity-not-found",
                f"Store {self.store}: the publication {self.publication} of table {self.entity} is not there "
                "any more, or does not have the table.",
                hint="A partitioned table is in one made WITH (publish_via_partition_root = true).",
            )

    def make_slot(self) -> int:
        """Make the slot where there is none; where it begins."""
        slot = self.find_slot()
        if slot is None:
            with self.doing(f"making slot {self.slot}, which waits for open transactions"):
                self.connection.execute(f"SET statement_timeout = '{PATIENCE:g}s'")
                made = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
                self.connection.execute(made, (self.slot,))
                self.connection.execute("SET statement_timeout = 0")
        return self.require_slot().confirmed

    def has_publication(self) -> bool:
        """Whether the publication is there and has the table."""
        schema, name = split_entity(self.entity)
        asked = (
            "SELECT 1 FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s"
        )
        with self.doing(f"looking at publication {self.publication}"):
            return self.connection.execute(asked, (self.publication, schema, name)).fetchone() is not None

    def make_publication(self) -> bool:
        """Make the publication of the table where there is none; whether it was made."""
        from psycopg import sql

        if self.has_publication():
            return False
        schema, name = split_entity(self.entity)
        with self.doing(f"making a publication of table {self.entity}"):
            self.connection.execute(
                sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(self.publication))
            )
            self.connection.execute(
                sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)").format(
                    sql.Identifier(self.publication), sql.Identifier(schema, name)
                )
            )
        return True

    def drop_own_slot(self, name: str) -> None:
        """Drop the slot if it is the query's own."""
        with self.doing(f"dropping slot {name}"):
            self.connection.execute(_DROP + "WHERE slot_name = %s", (name,))

    def drop_older(self, name: str) -> None:
        """Drop what earlier generations of the query have left.

        Args:
            name: ``leat_<id>_g<generation>_<scan>``.
        """
        generation, _, _ = name.rpartition("_")
        query, _, _ = generation.rpartition("_")
        self._drop(query + "_", but=generation + "_")

    def drop_all(self, prefix: str) -> None:
        """Drop all slots and publications whose names begin so."""
        self._drop(prefix, but=None)

    def _drop(self, prefix: str, but: str | None) -> None:
        from psycopg import sql

        kept = "AND (%s::text IS NULL OR NOT starts_with({}::text, %s))"
        with self.doing("dropping the query's slots and publications"):
            slots = _DROP + "WHERE starts_with(slot_name::text, %s) AND database = current_database() "
            self.connection.execute(slots + kept.format("slot_name"), (prefix, but, but))
            named = "SELECT pubname FROM pg_publication WHERE starts_with(pubname::text, %s) "
            found = self.connection.execute(named + kept.format("pubname"), (prefix, but, but)).fetchall()
            for (name,) in found:
                self.connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))

    # -- the log ---------------------------------------------------------------------------------------------

    def identity(self) -> str:
        """What tells the server from another, as pg_upgrade makes; empty where it may not be read."""
        with self.doing("asking for the server's identity"):
            allowed = "SELECT has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')"
            row = self.connection.execute(allowed).fetchone()
            if row and row[0]:
                asked = "SELECT system_identifier::text FROM pg_control_system()"
                row = self.connection.execute(asked).fetchone()
                return str(row[0]) if row else ""
        return ""

    def flushed(self) -> int:
        """How far the log is safe on the server's disk."""
        with self.doing("asking for the log's end"):
            row = self.connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        return parse_lsn(row[0]) if row else 0

    def advance(self, lsn: int) -> None:
        """Let the server forget what stands before this place."""
        with self.doing(f"advancing slot {self.slot}"):
            self.connection.execute(
                "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (self.slot, format_lsn(lsn))
            )

    def peek(self, upto: int, most: int) -> Iterator[tuple[int, bytes]]:
        """Messages of whole transactions with their places, from the slot's begin on.

        Args:
            upto: transactions that end behind this place may be left out.
            most: no more transactions are begun after so many messages; 0 = no bound.
        """
        from psycopg import sql

        query = sql.SQL(
            "COPY (SELECT lsn, data FROM pg_logical_slot_peek_binary_changes({}, {}, {},"
            " 'proto_version', '1', 'publication_names', {})) TO STDOUT (FORMAT BINARY)"
        ).format(
            sql.Literal(self.slot),
            sql.Literal(format_lsn(upto)),
            sql.Literal(most or None),
            # The option holds a list of names.
            sql.Literal('"' + self.publication.replace('"', '""') + '"'),
        )
        with (
            self.doing(f"reading the changes of {self.entity}"),
            self.connection.cursor() as cursor,
            cursor.copy(query) as copy,
        ):
            yield from _messages(copy)

    def _in_use(self) -> StoreError:
        slot = self.find_slot()
        pid = f" (process {slot.active_pid} of the server)" if slot and slot.active_pid else ""
        return StoreError(
            "store-unreachable",
            f"Store {self.store}: slot {self.slot} is in use by another reader{pid}.",
            hint="A slot has one reader: end the other one.",
        )


def _messages(copy: Any) -> Iterator[tuple[int, bytes]]:
    """Rows of COPY's binary form: two fields, 8 bytes of place and the message."""
    head = _HEADER
    for block in copy:
        at = head
        head = 0
        size = len(block)
        # 2 bytes of count, 4 of length, 8 of place, 4 of length; the end is a count of -1 alone.
        while at + 18 <= size:
            end = at + 18 + int.from_bytes(block[at + 14 : at + 18], "big")
            yield int.from_bytes(block[at + 6 : at + 14], "big"), bytes(block[at + 18 : end])
            at = end

"""Asking PostgreSQL about tables and changing them; every call ends in time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.connectors.entities import Entity, Table, TableColumn
from leatstream.connectors.postgres.errors import told
from leatstream.connectors.postgres.settings import PostgresConfig, connect
from leatstream.connectors.postgres.types import column_type, read_type
from leatstream.errors import StoreError
from leatstream.model.objects import Column

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

PUBLIC = "public"
BATCHES = "leatstream_batches"
"""The table that tells which micro-batches a schema's tables have; see ``postgres.sink``."""
REPLICA_IDENTITY = "replica.identity"
OLDEST = 13_00_00
_IDENTITIES = {"d": "default", "n": "nothing", "f": "full", "i": "index"}
_TABLES = """
SELECT n.nspname, c.relname, c.oid::bigint, c.reltuples::bigint, c.relreplident::text, c.relkind = 'p'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> %(ours)s
AND n.nspname <> 'information_schema' AND left(n.nspname, 3) <> 'pg_' AND has_schema_privilege(n.oid, 'USAGE')
"""
_COLUMNS = """
SELECT a.attname,
  CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)
  ELSE format_type(a.atttypid, a.atttypmod) END,
  a.attnotnull OR t.typnotnull, a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL,
  a.attgenerated <> '' OR a.attidentity = 'a', t.typtype = 'e', col_description(a.attrelid, a.attnum),
  a.attgenerated <> ''
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEYS = """
SELECT i.indisprimary, array(
  SELECT a.attname::text FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k(number, place)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place)
FROM pg_index i
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
AND i.indexprs IS NULL ORDER BY i.indisprimary DESC, i.indexrelid
"""
# The rows of a table are also those of the tables that inherit from it, which the log has under their own
# names, and of its partitions, of which the log lacks those that are foreign or unlogged.
_APART = """
SELECT array(
  SELECT h.inhrelid::regclass::text FROM pg_inherits h JOIN pg_class p ON p.oid = h.inhparent
  WHERE p.oid = to_regclass(%(table)s) AND p.relkind = 'r' ORDER BY 1),
array(
  SELECT k.oid::regclass::text FROM pg_class k WHERE (k.relkind = 'f' OR k.relpersistence <> 'p')
  AND (k.oid = to_regclass(%(table)s)
    OR k.oid IN (SELECT relid FROM pg_partition_tree(to_regclass(%(table)s)))) ORDER BY 1)
"""


def rows_apart(connection: psycopg.Connection[Any], entity: str) -> str:
    """Why not all changes of a table's rows can be read as the table's; empty where they can."""
    name = identifier(entity).as_string(connection)
    children, unlogged = connection.execute(_APART, {"table": name}).fetchone() or ([], [])
    if children:
        return f"{', '.join(children)} inherit from it, and the log has the changes of their rows as theirs"
    return (
        f"the log does not have the changes of {', '.join(unlogged)}, unlogged or foreign" if unlogged else ""
    )


def split_entity(entity: str) -> tuple[str, str]:
    """Schema and table that an entity's name means: ``orders`` is public.orders."""
    schema, dot, table = entity.partition(".")
    return (schema, table) if dot else (PUBLIC, entity)


def entity_name(schema: str, table: str) -> str:
    """The name of a table as an entity; ``split_entity`` reads it back."""
    return table if schema == PUBLIC and "." not in table else f"{schema}.{table}"


def identifier(entity: str) -> sql.Identifier:
    """The entity's table in a statement."""
    from psycopg import sql

    return sql.Identifier(*split_entity(entity))


def beside_values(part: sql.Composable) -> sql.SQL:
    """Names and literals beside given values, for which a percent sign would begin a place."""
    from psycopg import sql

    return sql.SQL(part.as_string(None).replace("%", "%%"))


class PostgresAdmin:
    """One database of a PostgreSQL server; a connection for each call."""

    def __init__(self, store: str, config: PostgresConfig) -> None:
        self.store = store
        self.config = config

    @contextlib.contextmanager
    def connection(
        self, what: str, timeout: float, table: str | None = None
    ) -> Iterator[psycopg.Connection[Any]]:
        """A connection whose errors are told; see ``postgres.errors.store_error``."""
        with (
            told(self.store, what, self.config.where, timeout, table),
            contextlib.closing(connect(self.config, timeout)) as connection,
        ):
            yield connection

    def server(self, timeout: float) -> dict[str, str]:
        """Version, ``wal_level`` and whether the server is a standby.

        Raises:
            StoreError: also store-rejected, for a server that is too old.
        """
        with self.connection("logging in", timeout) as connection:
            row = connection.execute(
                "SELECT current_setting('server_version'), current_setting('wal_level'), pg_is_in_recovery()"
            ).fetchone()
            number = connection.info.server_version
        version, level, standby = row or ("", "", False)
        if number < OLDEST:
            raise StoreError(
                "store-rejected",
                f"Store {self.store}: PostgreSQL {version} is too old.",
                hint="It has to be 13 or newer.",
            )
        found = {"server_version": str(version), "wal_level": str(level)}
        return found | ({"standby": "true"} if standby else {})

    def entities(self, timeout: float) -> list[Entity]:
        """All tables by name; partitions are not told apart from the table that they are of."""
        with self.connection("listing tables", timeout) as connection:
            rows = connection.execute(_TABLES, {"ours": BATCHES}).fetchall()
        # A schema's name with a dot would be read as schema and table.
        found = [
            Entity(entity_name(r[0], r[1]), configs=_configs(r[4]), table=Table((), details=_rows(r[3])))
            for r in rows
            if "." not in r[0]
        ]
        return sorted(found, key=lambda e: e.name)

    def find(self, entity: str, timeout: float) -> Entity | None:
        """The table with columns and keys, or None."""
        with self.connection(f"describing table {entity}", timeout) as connection:
            head = self._head(connection, entity)
            if head is None:
                return None
            oid = head[2]
            columns = connection.execute(_COLUMNS, (oid,)).fetchall()
            keys = connection.execute(_KEYS, (oid,)).fetchall()
            size = connection.execute("SELECT pg_total_relation_size(%s::oid)", (oid,)).fetchone()
            apart = rows_apart(connection, entity)
        primary = next((tuple(names) for is_primary, names in keys if is_primary), ())
        details = _rows(head[3]) | {"bytes": size[0] if size else None}
        details["replica_identity"] = _IDENTITIES[head[4]]
        table = Table(
            columns=tuple(
                TableColumn(name, read_type(native), native, *facts) for name, native, *facts in columns
            ),
            primary_key=primary,
            unique=tuple(tuple(names) for _, names in keys),
            details=details,
            apart=apart,
        )
        return Entity(entity_name(head[0], head[1]), configs=_configs(head[4]), table=table)

    def identity(self, entity: str, timeout: float) -> str | None:
        """What tells the table from a later one of its name."""
        with self.connection(f"looking for table {entity}", timeout) as connection:
            head = self._head(connection, entity)
        return None if head is None else str(head[2])

    def create(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float
    ) -> bool:
        """Create a table and its schema; False when there is one of this name already."""
        import psycopg
        from psycopg import sql

        schema, _ = split_entity(entity)
        parts = [
            sql.SQL("{} {}{}").format(
                sql.Identifier(column.name),
                sql.SQL(column_type(column.type)),
                sql.SQL(" NOT NULL" if column.not_null else ""),
            )
            for column in columns
        ]
        if primary_key:
            names = sql.SQL(", ").join(map(sql.Identifier, primary_key))
            parts.append(sql.SQL("PRIMARY KEY ({})").format(names))
        statement = sql.SQL("CREATE TABLE {} ({})").format(identifier(entity), sql.SQL(", ").join(parts))
        with self.connection(f"creating table {entity}", timeout) as connection:
            try:
                with connection.transaction():
                    if schema != PUBLIC:
                        connection.execute(
                            sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema))
                        )
                    connection.execute(statement)
            except (psycopg.errors.DuplicateTable, psycopg.errors.UniqueViolation):
                return False
        return True

    def set_identity(self, entity: str, identity: str, timeout: float) -> None:
        """Change what a table's log tells of old rows."""
        from psycopg import sql

        statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY {}")
        with self.connection(f"changing table {entity}", timeout) as connection:
            connection.execute(statement.format(identifier(entity), sql.SQL(identity.upper())))

    def drop(self, entity: str, timeout: float) -> None:
        """Drop a table; does nothing where there is none."""
        from psycopg import sql

        with self.connection(f"dropping table {entity}", timeout) as connection:
            if self._head(connection, entity) is not None:
                connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(identifier(entity)))

    def _head(self, connection: psycopg.Connection[Any], entity: str) -> tuple[Any, ...] | None:
        schema, table = split_entity(entity)
        wanted = {"ours": BATCHES, "schema": schema, "table": table}
        text = _TABLES + " AND n.nspname = %(schema)s AND c.relname = %(table)s"
        return connection.execute(text, wanted).fetchone()


def _configs(identity: str) -> Mapping[str, str]:
    return {REPLICA_IDENTITY: _IDENTITIES[identity]}


def _rows(estimate: int) -> dict[str, str | int | None]:
    """How many rows PostgreSQL believes there are; None before it has looked for the first time."""
    return {"rows": None if estimate < 0 else estimate}

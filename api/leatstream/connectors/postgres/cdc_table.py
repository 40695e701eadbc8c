"""The table behind a change source: what it is now, and questions about its rows and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leatstream.connectors.postgres.admin import beside_values, split_entity
from leatstream.connectors.postgres.cdc_position import Key
from leatstream.connectors.postgres.cdc_server import ChangeServer
from leatstream.connectors.postgres.pgoutput import RelationColumn
from leatstream.errors import StoreError

_COLUMNS = """
SELECT a.attname, a.atttypid::bigint, format_type(a.atttypid, a.atttypmod),
  CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END::bigint,
  CASE WHEN a.attcollation <> t.typcollation THEN
    (SELECT quote_ident(n.nspname) || '.' || quote_ident(l.collname) FROM pg_collation l
     JOIN pg_namespace n ON n.oid = l.collnamespace WHERE l.oid = a.attcollation) END,
  CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)
  ELSE format_type(a.atttypid, a.atttypmod) END,
  (SELECT array_position((i.indkey::int2[])[0:i.indnkeyatts - 1], a.attnum) FROM pg_index i
   WHERE i.indrelid = a.attrelid AND i.indisprimary),
  a.attrelid::bigint
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""
_NATIVE = """
SELECT CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)
  ELSE format_type(u.oid, u.mod) END
FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY AS u(oid, mod, n)
LEFT JOIN pg_type t ON t.oid = u.oid ORDER BY n
"""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the table.

    Attributes:
        type, collation: as SQL writes them.
        base: the type of a domain.
        native: its name.
    """

    name: str
    oid: int
    type: str
    base: int
    collation: str | None
    native: str = ""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The table as it is now; ``oid`` is what the log calls it, whatever its name was."""

    oid: int
    schema: str
    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[TableColumn, ...]


def get_table(server: ChangeServer, *, beside: bool = False) -> SourceTable:
    """The table; StoreError entity-not-found. ``beside``: while the log is being read."""
    from psycopg import sql

    schema, name = split_entity(server.entity)
    with server.doing(f"describing table {server.entity}"):
        connection = server.beside if beside else server.connection
        quoted = sql.Identifier(schema, name).as_string(connection)
        rows = connection.execute(_COLUMNS, (quoted,)).fetchall()
    if not rows:
        raise StoreError("entity-not-found", f"Store {server.store}: table {server.entity} does not exist.")
    columns = [(TableColumn(*row[:6]), row[6]) for row in rows]
    keyed = sorted(((place, c) for c, place in columns if place is not None), key=lambda one: one[0])
    return SourceTable(rows[0][7], schema, name, tuple(c for c, _ in columns), tuple(c for _, c in keyed))


def native_types(server: ChangeServer, columns: Sequence[RelationColumn]) -> list[str]:
    """The types of a log's columns, those of domains for them, as ``format_type`` writes them."""
    with server.doing(f"describing types of {server.entity}"):
        asked = ([c.type for c in columns], [c.modifier for c in columns])
        return [str(row[0]) for row in server.beside.execute(_NATIVE, asked).fetchall()]


def current_rows(
    server: ChangeServer, table: SourceTable, keys: Sequence[Key], wanted: Sequence[str]
) -> list[list[bytes | None] | None]:
    """The values of these columns in the rows with these keys as they are now; None for no such row."""
    from psycopg import sql

    names = [sql.Identifier(f"k{i}") for i in range(len(table.key))]
    joined = sql.SQL(" AND ").join(
        sql.SQL("t.{} = u.{}::{}").format(sql.Identifier(c.name), name, _raw(c.type))
        for c, name in zip(table.key, names, strict=True)
    )
    query = sql.SQL("SELECT u.n, {} FROM unnest({}) WITH ORDINALITY AS u({}, n) JOIN {} t ON {}").format(
        beside_values(sql.SQL(", ").join(sql.Identifier("t", name) for name in wanted)),
        sql.SQL(", ").join(sql.SQL("%s::text[]") for _ in names),
        sql.SQL(", ").join(names),
        beside_values(sql.Identifier(table.schema, table.name)),
        beside_values(joined),
    )
    found: list[list[bytes | None] | None] = [None] * len(keys)
    with server.doing(f"reading rows of {server.entity}"):
        rows = fetched(server.beside.execute(query, [list(part) for part in zip(*keys, strict=True)]))
    for row in rows:
        found[int(row[0] or b"0") - 1] = row[1:]
    return found


def key_ranges(
    server: ChangeServer, table: SourceTable, keys: Sequence[Key], bounds: Sequence[Key]
) -> list[int]:
    """In which of the ranges that end at ``bounds`` each key is, by the server's own order of keys."""
    from psycopg import sql

    typed = [_typed(c, sql.Identifier(f"k{i}")) for i, c in enumerate(table.key)]
    row = sql.SQL("ROW({})").format(sql.SQL(", ").join(typed))
    cases = [
        sql.SQL("WHEN {} <= ROW({}) THEN {}").format(
            row,
            sql.SQL(", ").join(_typed(c, sql.Literal(v)) for c, v in zip(table.key, bound, strict=True)),
            sql.Literal(i),
        )
        for i, bound in enumerate(bounds)
    ]
    query = sql.SQL(
        "SELECT CASE {} ELSE {} END FROM unnest({}) WITH ORDINALITY AS u({}, n) ORDER BY n"
    ).format(
        beside_values(sql.SQL(" ").join(cases)),
        sql.Literal(len(bounds)),
        sql.SQL(", ").join(sql.SQL("%s::text[]") for _ in table.key),
        sql.SQL(", ").join(sql.Identifier(f"k{i}") for i in range(len(table.key))),
    )
    with server.doing(f"comparing keys of {server.entity}"):
        rows = server.beside.execute(query, [list(part) for part in zip(*keys, strict=True)]).fetchall()
    return [int(one[0]) for one in rows]


def fetched(cursor: Any) -> list[list[bytes | None]]:
    """Values as the server's own text, whatever their type."""
    result = cursor.pgresult
    columns = range(result.nfields)
    return [[result.get_value(i, j) for j in columns] for i in range(result.ntuples)]


def _raw(text: str) -> Any:
    """SQL that the server itself has written, as the name of a type."""
    from psycopg import sql

    return sql.SQL(text)  # type: ignore[arg-type, unused-ignore]


def _typed(column: TableColumn, value: Any) -> Any:
    from psycopg import sql

    typed = sql.SQL("{}::{}").format(value, _raw(column.type))
    return sql.SQL("{} COLLATE {}").format(typed, _raw(column.collation)) if column.collation else typed

"""Materialized views against the bare database: rows written a second, and a row read by its key.

The writer is fed as a job feeds it, batch by batch, without Spark; its peer writes the same rows into a table
of the same columns, one transaction a batch. A read is the whole way of a SELECT: parsing, compiling, opening
the file, answering; its peer is a prepared statement on an open connection.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from report import Spread, conditions, keep, table

from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Meta, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.ports import Snapshot
from leatstream.sql.parser import parse
from leatstream.sql.snapshot.compiler import Source, compile_select
from leatstream.sql.statements import Select
from leatstream.views.base import Batch, Table
from leatstream.views.sqlite_store import SqliteViews
from leatstream.views.sqlite_writer import SqliteWriter

COLUMNS = {"k": "VARCHAR", "n": "BIGINT", "total": "DOUBLE"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000, help="rows of the view")
    parser.add_argument("--batches", type=int, default=20, help="batches to write")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a batch")
    parser.add_argument("--reads", type=int, default=2_000, help="reads by key")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    chance = random.Random(7)
    batches = [
        [(f"key-{chance.randrange(options.keys)}", i, i * 0.5) for i in range(options.rows)]
        for _ in range(options.batches)
    ]
    wanted = [f"key-{chance.randrange(options.keys)}" for _ in range(options.reads)]
    with tempfile.TemporaryDirectory() as directory:
        ours, bare = Ours(Path(directory)), Bare(Path(directory) / "bare.db")
        written: dict[str, list[float]] = {"view": [], "bare": []}
        for number, rows in enumerate(batches):
            # In turns, so that both meet the same load.
            for name, target in (("view", ours), ("bare", bare)):
                began = time.perf_counter()
                target.write(number, rows)
                written[name].append(len(rows) / (time.perf_counter() - began))
        read: dict[str, list[float]] = {"view": [], "bare": []}
        for key in wanted:
            for name, target in (("view", ours), ("bare", bare)):
                began = time.perf_counter()
                found = target.read(key)
                read[name].append((time.perf_counter() - began) * 1000)
                assert len(found) <= 1
        assert ours.everything() == bare.everything(), "the view and the bare table differ"
        ours.close()
        bare.close()
    shown = []
    for what, values, unit in (("upserts", written, "rows/s"), ("read by key", read, "ms")):
        view, peer = Spread.of(values["view"]), Spread.of(values["bare"])
        shown.append([what, unit, view.p50, peer.p50, view.p50 / peer.p50])
    print(table(["what", "unit", "view p50", "bare SQLite p50", "ratio"], shown))
    keep(options.json, {"written": written, "read": read})


class Ours:
    """A view, as the driver writes it and the API reads it."""

    def __init__(self, directory: Path) -> None:
        types = tuple(parse_type(kind) for kind in COLUMNS.values())
        self._writer = SqliteWriter(str(directory / "views"), Table("v", 1, types, keys=(0,)), attempt=1)
        self._writer.open()
        self._views = SqliteViews(directory / "views")
        meta = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="", owner="")
        self._source = Source(
            Relation(
                meta=meta,
                fqn=Fqn("demo", "public", "v"),
                kind=RelationKind.MATERIALIZED_VIEW,
                columns=tuple(Column(n, t) for n, t in zip(COLUMNS, types, strict=True)),
                store="",
                entity="",
                value_format="",
            ),
            "v0.leat_rows",
        )

    def write(self, number: int, rows: list[tuple[str, int, float]]) -> None:
        """One batch; the last of a key's rows counts."""
        last = {row[0]: row for row in rows}
        self._writer.apply(Batch(number, list(last.values()), [], 0))

    def read(self, key: str) -> list[tuple[object, ...]]:
        """The row of a key."""
        return self._select(f"SELECT n, total FROM v WHERE k = '{key}'")

    def everything(self) -> list[tuple[object, ...]]:
        """All rows."""
        return self._select("SELECT * FROM v ORDER BY k")

    def _select(self, text: str) -> list[tuple[object, ...]]:
        (statement,) = parse(text)
        assert isinstance(statement, Select)
        made = compile_select(statement.select, lambda _: self._source, "sqlite", NOW)
        return self._views.read(Snapshot(made.sql, made.parameters, [("v", 1)], 10_000_000, 60))[0]

    def close(self) -> None:
        """End the writer."""
        self._writer.close()


class Bare:
    """The same rows in a table of SQLite, with the same care for power cuts."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE v (k TEXT PRIMARY KEY, n INTEGER, total REAL)")

    def write(self, _: int, rows: list[tuple[str, int, float]]) -> None:
        """One transaction."""
        cursor = self._connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        cursor.executemany(
            "INSERT INTO v VALUES (?, ?, ?)"
            " ON CONFLICT (k) DO UPDATE SET n = excluded.n, total = excluded.total",
            rows,
        )
        cursor.execute("COMMIT")

    def read(self, key: str) -> list[tuple[object, ...]]:
        """The row of a key."""
        return self._connection.execute("SELECT n, total FROM v WHERE k = ?", (key,)).fetchall()

    def everything(self) -> list[tuple[object, ...]]:
        """All rows."""
        return self._connection.execute("SELECT * FROM v ORDER BY k").fetchall()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


if __name__ == "__main__":
    main()

"""Batches into tables and rows by key, as Spark's tasks write and read them, against Snowflake's double."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from snowflake_server import SnowflakeServer

from leatstream.connectors import table_lookup
from leatstream.connectors.registry import open_connector
from leatstream.connectors.snowflake import session, sink
from leatstream.connectors.snowflake.connector import SnowflakeConnector
from leatstream.connectors.snowflake.lookup import SnowflakeTableReader, able, look_up
from leatstream.connectors.snowflake.lookup import Target as LookupTarget
from leatstream.connectors.snowflake.sink import Target, claim, write_rows
from leatstream.connectors.snowflake.staging import StagedColumn
from leatstream.connectors.store_marks import find_mark
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, LookupSpec, StoreRef

COLUMNS = {"id": "BIGINT", "name": "VARCHAR(20)"}


@pytest.fixture
def connector(snowflake: SnowflakeServer) -> SnowflakeConnector:
    found = open_connector("snowflake", "s", snowflake.config(), snowflake.secrets)
    assert isinstance(found, SnowflakeConnector)
    return found


@pytest.fixture
def table(connector: SnowflakeConnector) -> Iterator[str]:
    name = f"sales.t_{uuid.uuid4().hex[:8]}"
    yield name
    connector.drop_entity(name)
    for one in list(session.kept.values()):
        session.drop_session(one)


def make(connector: SnowflakeConnector, table: str, key: tuple[str, ...] = ("id",), **columns: str) -> None:
    made = [Column(name, parse_type(kind)) for name, kind in (columns or COLUMNS).items()]
    connector.create_table(table, made, key)


def target(connector: SnowflakeConnector, table: str, attempt: int, **more: Any) -> Target:
    natives = {"id": "NUMBER(19,0)", "name": "VARCHAR(20)"}
    settings: dict[str, Any] = {
        "store": "s",
        "config": connector.settings,
        "entity": table,
        "place": connector.admin.place(table),
        "columns": tuple(StagedColumn(name, kind, natives[name]) for name, kind in COLUMNS.items()),
        "keys": ("id",),
        "query": f"q-{table}",
        "checkpoint": "c1",
        "attempt": attempt,
    }
    return Target(**(settings | more))


def write(to: Target, number: int, *rows: list[str | None]) -> tuple[int, int]:
    batch = pa.record_batch({"row": [json.dumps(row) for row in rows]})
    (counted,) = write_rows(to, number, iter([batch]))
    return counted.column(0)[0].as_py(), counted.column(1)[0].as_py()


def refusal(to: Target, number: int, *rows: list[str | None]) -> tuple[str, str]:
    with pytest.raises(RuntimeError) as caught:
        write(to, number, *rows)
    mark = find_mark(str(caught.value))
    assert mark is not None
    assert mark[0] == "sink"
    return mark[1], mark[2]


def rows(connector: SnowflakeConnector, table: str) -> list[dict[str, Any]]:
    read = connector.read_records(table, from_beginning=True, limit=None, idle_timeout=None)
    return [json.loads(r.value or b"") for r in read if r is not None]


def named(connector: SnowflakeConnector, table: str) -> dict[int, str]:
    return {row["id"]: row["name"] for row in rows(connector, table)}


def test_a_batch_is_written_once(connector: SnowflakeConnector, table: str) -> None:
    make(connector, table)
    first = target(connector, table, 1)
    assert claim(first, connector.admin) is None
    assert write(first, 0, *(["f", str(i), f"n{i}"] for i in range(3)))[0] == 3
    assert write(first, 0, ["f", "1", "again"]) == (0, 0)
    assert write(first, 1, ["f", "1", "a"], ["f", "1", "b"], ["t", "2", None], ["f", "9", None])[0] == 4
    assert named(connector, table) == {0: "n0", 1: "b", 9: None}
    assert claim(target(connector, table, 2), connector.admin) == 1
    code, text = refusal(first, 2, ["f", "1", "old"])
    assert code == "store-rejected"
    assert "newer attempt" in text
    assert write(target(connector, table, 2), 1, ["f", "1", "again"]) == (0, 0)
    with pytest.raises(AttemptBehindError) as behind:
        claim(first, connector.admin)
    assert behind.value.newest == 2
    assert named(connector, table) == {0: "n0", 1: "b", 9: None}
    fresh = target(connector, table, 3, checkpoint="c2")
    assert claim(fresh, connector.admin) is None
    assert write(fresh, 0, ["f", "1", "fresh"])[0] == 1
    assert named(connector, table)[1] == "fresh"


def test_rows_without_a_key_are_appended(connector: SnowflakeConnector, table: str) -> None:
    make(connector, table, ())
    plain = target(connector, table, 1, keys=())
    claim(plain, connector.admin)
    for number in (0, 1, 1):
        write(plain, number, ["f", "1", "x"], ["f", "1", "x"])
    assert rows(connector, table) == [{"id": 1, "name": "x"}] * 4


def test_a_batch_of_several_pieces(
    connector: SnowflakeConnector, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leatstream.connectors.snowflake.staging.PIECE", 2000)
    make(connector, table)
    first = target(connector, table, 1)
    claim(first, connector.admin)
    # The last row of a key counts also where it is in a later piece.
    twice = [["f", str(i % 300), f"{i}"] for i in range(600)]
    assert write(first, 0, *twice)[0] == 600
    assert named(connector, table) == {i: str(i + 300) for i in range(300)}


def test_a_value_that_does_not_fit_leaves_nothing_and_is_not_told(
    connector: SnowflakeConnector, table: str
) -> None:
    make(connector, table)
    first = target(connector, table, 1)
    claim(first, connector.admin)
    code, text = refusal(first, 0, ["f", "1", "x"], ["f", "sesame", "x"])
    assert code == "store-rejected"
    assert "cannot be read" in text
    assert "sesame" not in text
    assert rows(connector, table) == []
    assert write(first, 0, ["f", "1", "x"])[0] == 1


def test_of_two_attempts_that_race_one_writes(
    connector: SnowflakeConnector, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snowflake would let the older one wait, and refuse it; the double refuses its statement at once."""
    make(connector, table)
    old, new = target(connector, table, 1), target(connector, table, 2)
    claim(old, connector.admin)
    monkeypatch.setattr(session, "_ANSWER", 2.0)
    set_number = sink._set_number

    def overtaken(connection: Any, to: Target, number: int) -> None:
        if to is old:
            claim(new, connector.admin)
        set_number(connection, to, number)

    monkeypatch.setattr(sink, "_set_number", overtaken)
    code, _ = refusal(old, 0, ["f", "1", "old"])
    assert code in ("store-unreachable", "store-rejected")
    assert write(new, 0, ["f", "1", "new"])[0] == 1
    assert named(connector, table) == {1: "new"}


def test_a_batch_that_is_lost_before_its_commit(
    connector: SnowflakeConnector, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(connector, table)
    first = target(connector, table, 1)
    claim(first, connector.admin)
    with monkeypatch.context() as patch:
        patch.setattr(sink, "_set_number", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write(first, 0, ["f", "1", "x"])
    assert rows(connector, table) == []
    assert write(first, 0, ["f", "1", "x"])[0] == 1
    assert named(connector, table) == {1: "x"}


def reader(
    connector: SnowflakeConnector, table: str, keys: list[str], ttl: int = 0, **kinds: str
) -> LookupTarget:
    found = connector.find_entity(table)
    assert found is not None
    assert found.table is not None
    spec = LookupSpec(
        relation="t",
        view="t",
        store=StoreRef(name="s", kind="snowflake", config={}),
        entity=table,
        columns=[ColumnSpec(name=name, type=kind) for name, kind in kinds.items()],
        keys=keys,
        values=keys,
        left="l",
        cache_ttl_ms=ttl,
    )
    return SnowflakeTableReader("s", connector.settings, spec, found.table).target


def looked_up(by: LookupTarget, *keys: tuple[str, ...]) -> list[dict[str, Any]]:
    batch = pa.record_batch({f"k{i}": list(column) for i, column in enumerate(zip(*keys, strict=True))})
    return [json.loads(text) for found in look_up(by, iter([batch])) for text in found.column(0).to_pylist()]


def test_rows_are_looked_up_by_key(connector: SnowflakeConnector, table: str) -> None:
    make(connector, table)
    first = target(connector, table, 1)
    claim(first, connector.admin)
    write(first, 0, *(["f", str(i), f"n{i % 2}"] for i in range(6)))
    by_id = reader(connector, table, ["id"], id="BIGINT", name="VARCHAR")
    assert sorted(row["id"] for row in looked_up(by_id, ("4",), ("17",), ("1",))) == [1, 4]
    both = reader(connector, table, ["id", "name"], id="BIGINT", name="VARCHAR")
    assert looked_up(both, ("4", "n1"), ("3", "n1")) == [{"id": 3, "name": "n1"}]
    as_text = reader(connector, table, ["id"], id="VARCHAR", name="VARCHAR")
    assert looked_up(as_text, ("4",), ("04",)) == [{"id": "4", "name": "n0"}]


def test_rows_are_kept_for_their_time(connector: SnowflakeConnector, table: str) -> None:
    make(connector, table)
    first = target(connector, table, 1)
    claim(first, connector.admin)
    write(first, 0, ["f", "1", "a"])
    kept = reader(connector, table, ["id"], 60_000, id="BIGINT", name="VARCHAR")
    try:
        assert looked_up(kept, ("1",), ("2",)) == [{"id": 1, "name": "a"}]
        write(first, 1, ["f", "1", "b"], ["f", "2", "c"])
        assert looked_up(kept, ("1",), ("2",)) == [{"id": 1, "name": "a"}]
    finally:
        table_lookup._rows.clear()


def test_keys_of_every_type(connector: SnowflakeConnector, table: str) -> None:
    kinds = {
        "a": ("BOOLEAN", "true", True),
        "b": ("DECIMAL(10, 2)", "1.50", 1.5),
        "c": ("DOUBLE", "0.1", 0.1),
        "d": ("DATE", "2024-02-29", "2024-02-29"),
        "e": ("TIME", "03:04:05.5", "03:04:05.5"),
        "f": ("TIMESTAMP", "2026-01-02 03:04:05.678901", "2026-01-02 03:04:05.678901"),
        "g": ("TIMESTAMP_LTZ", "2026-01-02T03:04:05.6+00:00", "2026-01-02 03:04:05.6Z"),
        "h": ("BYTES", "00FF", "AP8="),
        "i": ("VARCHAR", "ß'\"\\", "ß'\"\\"),
    }
    declared = {name: kind for name, (kind, _, _) in kinds.items()}
    make(connector, table, (), **declared)
    found = connector.find_entity(table)
    assert found is not None
    assert found.table is not None
    columns = tuple(StagedColumn(c.name, declared[c.name], c.native) for c in found.table.columns)
    first = target(connector, table, 1, columns=columns, keys=())
    claim(first, connector.admin)
    write(first, 0, ["f", *(text for _, text, _ in kinds.values())], ["f", *[None] * len(kinds)])
    row = {name: shown for name, (_, _, shown) in kinds.items()}
    assert rows(connector, table) in ([row, dict.fromkeys(row)], [dict.fromkeys(row), row])
    for name, (_, text, _) in kinds.items():
        assert looked_up(reader(connector, table, [name], **declared), (text,)) == [row], name


@pytest.mark.parametrize(
    ("kind", "native", "value", "can"),
    [
        ("DATE", "DATE", "+10000-01-01", False),
        ("TIMESTAMP", "TIMESTAMP_NTZ(9)", "0000-01-01 00:00:00", False),
        ("TIME", "TIME(9)", "24:00:00", False),
        ("TIME", "TIME(9)", "23:59:59.123456", True),
        ("VARCHAR", "FLOAT", "0.1", True),
        ("VARCHAR", "FLOAT", "0.10", False),
        ("VARCHAR", "FLOAT", "sesame", False),
        ("VARCHAR", "VARCHAR", "sesame", True),
    ],
)
def test_what_can_be_a_key(
    connector: SnowflakeConnector, kind: str, native: str, value: str, can: bool
) -> None:
    place = connector.admin.place("t")
    by = LookupTarget("s", connector.settings, "t", place, (("c", kind, native),), ("c",), 0)
    assert able(by, (value,)) is can


def test_a_time_is_no_key_as_a_text(connector: SnowflakeConnector, table: str) -> None:
    make(connector, table, (), at="TIMESTAMP")
    with pytest.raises(StoreError, match="texts have several forms") as caught:
        reader(connector, table, ["at"], at="VARCHAR")
    assert caught.value.faults[0].hint == "Declare at as TIMESTAMP."

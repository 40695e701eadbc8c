"""What a view's writer promises, on each database: once, in one piece, and by the newest attempt only."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from leatstream.errors import AttemptBehindError, EngineError, StoreError
from leatstream.model.types import parse_type
from leatstream.model.view_values import encode
from leatstream.plan.job_spec import ColumnSpec, JobSpec, SinkSpec, StoreRef, ViewSpec
from leatstream.ports import Freshness, Snapshot, ViewStore
from leatstream.services.selects.snapshots import reader
from leatstream.views.base import Batch, ViewWriter
from leatstream.views.opening import view_writer
from leatstream.views.postgresql_writer import SCHEMA, connect
from leatstream.views.stores import open_views

pytestmark = pytest.mark.core

NOW = 1_767_225_600_000_000  # 2026-01-01, microseconds
DAY = 86_400_000_000


class Target:
    """One view."""

    def __init__(self, store: ViewStore, columns: str, keys: list[str], **view: Any) -> None:
        self.store, self.table = store, f"qry_{uuid.uuid4().hex}"
        struct = parse_type(f"STRUCT<{columns}>")
        self.types = struct.arguments
        specs = [ColumnSpec(name=n, type=str(t)) for n, t in zip(struct.fields, self.types, strict=True)]
        self.spec = JobSpec(
            query_id=self.table,
            query_name="v",
            generation=1,
            attempt=1,
            fencing_token="",
            sql="",
            sources=[],
            mode="micro_batch",
            mode_reason="",
            checkpoint="",
            sink=SinkSpec(
                relation="demo.public.v",
                store=StoreRef(name="", kind="view", config={}),
                entity="",
                columns=specs,
                value_format="",
                key_columns=keys,
                view=ViewSpec(table=self.table, generation=1, database=store.database, **view),
            ),
        )
        self.open: list[ViewWriter] = []

    def writer(self, attempt: int = 1, generation: int = 1) -> ViewWriter:
        """An opened writer."""
        view = self.spec.sink.view.model_copy(update={"generation": generation})
        sink = self.spec.sink.model_copy(update={"view": view})
        spec = self.spec.model_copy(update={"attempt": attempt, "sink": sink})
        made = view_writer(spec, self.store.password)
        made.open()
        self.open.append(made)
        return made

    def batch(self, number: int, *rows: tuple[Any, ...], gone: tuple[Any, ...] = (), **more: Any) -> Batch:
        """A batch in the store's encoding."""
        return Batch(
            number,
            [self._encoded(row) for row in rows],
            [self._encoded(key) for key in gone],
            **{"time": NOW, **more},
        )

    def _encoded(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.store.kind == "postgresql":
            return row
        kinds = [*self.types, parse_type("BIGINT")]
        return tuple(encode(v, k) for v, k in zip(row, kinds, strict=False))

    def read(self, what: str = "*", end: str = "", generation: int = 1) -> tuple[list[Any], Freshness]:
        """What is there."""
        table = "v0.leat_rows" if self.store.kind == "sqlite" else f"leatstream_views.{self.table}"
        sql = f"SELECT {what} FROM {table} {end}"
        rows, freshness = self.store.read(Snapshot(sql, (), [(self.table, generation)], 1000, 10))
        return rows, freshness[0]


@pytest.fixture
def target(store: ViewStore) -> Iterator[Callable[..., Target]]:
    made: list[Target] = []

    def make(columns: str = "k VARCHAR, n BIGINT", keys: tuple[str, ...] = ("k",), **view: Any) -> Target:
        made.append(Target(store, columns, list(keys), **view))
        return made[-1]

    yield make
    for one in made:
        for writer in one.open:
            writer.close()
        store.drop(one.table)


def test_rows_of_one_key_replace_each_other(target: Callable[..., Target]) -> None:
    view = target()
    writer = view.writer()
    assert view.read() == ([], Freshness(None, None, None))
    assert writer.apply(view.batch(0, ("a", 1), ("b", 1)))
    assert writer.apply(view.batch(1, ("a", 2), ("c", 1), watermark=5))
    assert view.read(end="ORDER BY c0") == ([("a", 2), ("b", 1), ("c", 1)], Freshness(1, NOW, 5))


def test_a_batch_counts_once(target: Callable[..., Target]) -> None:
    view = target(keys=())
    assert view.writer().apply(view.batch(0, ("a", 1)))
    again = view.writer(attempt=2)
    assert not again.apply(view.batch(0, ("a", 1)))
    assert again.apply(view.batch(1, ("a", 1)))
    assert view.read() == ([("a", 1), ("a", 1)], Freshness(1, NOW, None))


def test_null_keys_are_keys(target: Callable[..., Target]) -> None:
    view = target("k VARCHAR, j BIGINT, n BIGINT", ("k", "j"))
    writer = view.writer()
    writer.apply(view.batch(0, (None, 1, 1), (None, None, 1), ("a", None, 1)))
    writer.apply(view.batch(1, (None, 1, 2), (None, None, 2), gone=(("a", None),)))
    assert sorted(view.read()[0], key=str) == [(None, 1, 2), (None, None, 2)]


def test_rows_go(target: Callable[..., Target]) -> None:
    view = target()
    writer = view.writer()
    writer.apply(view.batch(0, ("a", 1), ("b", 1)))
    writer.apply(view.batch(1, ("c", 1), gone=(("a",), ("never",))))
    assert view.read(end="ORDER BY c0")[0] == [("b", 1), ("c", 1)]


def test_an_older_attempt_cannot_write(target: Callable[..., Target]) -> None:
    view = target()
    old = view.writer()
    old.apply(view.batch(0, ("a", 1)))
    new = view.writer(attempt=2)
    with pytest.raises(StoreError, match="newer attempt"):
        old.apply(view.batch(1, ("a", 7)))
    with pytest.raises(AttemptBehindError, match="newer attempt") as behind:
        view.writer(attempt=1)
    assert behind.value.newest == 2
    assert (old.committed(), new.committed()) == (None, 0)
    assert new.apply(view.batch(1, ("a", 2)))
    assert view.read() == ([("a", 2)], Freshness(1, NOW, None))


def test_a_failed_batch_leaves_nothing(target: Callable[..., Target]) -> None:
    view = target()
    writer = view.writer()
    writer.apply(view.batch(0, ("a", 1)))
    broken = Batch(1, [*view.batch(1, ("b", 1)).rows, ("c",)], [], NOW)
    with pytest.raises(StoreError):
        writer.apply(broken)
    assert view.read() == ([("a", 1)], Freshness(0, NOW, None))
    assert writer.apply(view.batch(1, ("b", 1)))


def test_another_generation_starts_empty(target: Callable[..., Target]) -> None:
    view = target()
    view.writer().apply(view.batch(7, ("a", 1)))
    with pytest.raises(EngineError) as told:
        view.read(generation=2)
    assert told.value.code == "view-not-ready"
    writer = view.writer(attempt=2, generation=2)
    assert view.read(generation=2) == ([], Freshness(None, None, None))
    assert writer.apply(view.batch(0, ("b", 1)))
    assert view.read(generation=2)[0] == [("b", 1)]


def test_old_rows_go(target: Callable[..., Target]) -> None:
    view = target(retention_ms=2 * 86_400_000)
    writer = view.writer()
    writer.apply(view.batch(0, ("old", 1, NOW - 2 * DAY - 1), ("kept", 1, NOW - DAY), ("now", 1, None)))
    assert sorted(view.read("c0")[0]) == [("kept",), ("now",)]
    writer.apply(view.batch(1, ("new", 1, None), time=NOW + 2 * DAY + 1))
    assert view.read("c0, leat_time")[0] == [("new", NOW + 2 * DAY + 1)]


def test_a_view_of_keys_only(target: Callable[..., Target]) -> None:
    view = target("k VARCHAR", ("k",))
    writer = view.writer()
    writer.apply(view.batch(0, ("a",)))
    writer.apply(view.batch(1, ("a",), ("b",)))
    assert view.read(end="ORDER BY c0")[0] == [("a",), ("b",)]


def test_indexes_come_and_go(target: Callable[..., Target]) -> None:
    name = 'a "name" longer than sixty-three bytes, as PostgreSQL would cut it off otherwise'
    view = target(indexes={"early": ["n", "k"]})
    view.store.add_index(view.table, "too early", [1])
    view.store.drop_index(view.table, "too early")
    view.writer().apply(view.batch(0, ("a", 1)))
    view.store.add_index(view.table, name, [1])
    view.store.add_index(view.table, name, [1])
    assert _indexes(view) == 3
    view.store.drop_index(view.table, name)
    view.store.drop_index(view.table, "early")
    assert _indexes(view) == 1


def _indexes(view: Target) -> int:
    listed = (
        "SELECT count(*) FROM v0.sqlite_master WHERE type = 'index'"
        if view.store.kind == "sqlite"
        else f"SELECT count(*) FROM pg_indexes WHERE tablename = '{view.table}'"
    )
    rows, _ = view.store.read(Snapshot(listed, (), [(view.table, 1)], 1, 10))
    return rows[0][0]


def test_a_dropped_view_is_gone(target: Callable[..., Target]) -> None:
    view = target()
    view.writer().apply(view.batch(0, ("a", 1)))
    view.open.pop().close()
    view.store.drop(view.table)
    view.store.drop(view.table)
    with pytest.raises(EngineError) as told:
        view.read()
    assert told.value.code == "view-not-ready"


def test_what_the_url_says_of_connections_counts(postgresql: str) -> None:
    with connect(f"{postgresql}?keepalives_idle=99", None) as connection:
        used = connection.info.get_parameters()
    assert (used["keepalives_idle"], used["keepalives_count"]) == ("99", "3")


def test_a_view_that_a_dump_reads_is_dropped_later(postgresql: str, tmp_path: Path) -> None:
    """Who waited for the dump would hold up all readers of the view, and the server that drops it."""
    view = Target(open_views(postgresql, tmp_path), "k VARCHAR, n BIGINT", ["k"])
    view.writer().apply(view.batch(0, ("a", 1)))
    view.open.pop().close()
    with psycopg.connect(postgresql) as dump:
        dump.execute(f"LOCK TABLE {SCHEMA}.{view.table} IN ACCESS SHARE MODE")
        with pytest.raises(StoreError) as told:
            view.store.drop(view.table)
        assert "has locked the view's table" in told.value.detail
        assert view.read("count(*)")[0] == [(1,)]
    view.store.drop(view.table)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("BOOLEAN", [False, True]),
        ("TINYINT", [-128, 0, 127]),
        ("BIGINT", [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]),
        ("FLOAT", [-math.inf, -1.5, 0.0, 3.4028234663852886e38, math.inf, math.nan]),
        ("DOUBLE", [-math.inf, -1e-300, 0.1, 1.7976931348623157e308, math.inf, math.nan]),
        (
            "DECIMAL(38, 10)",
            [
                Decimal(t)
                for t in (
                    "-9999999999999999999999999999.9999999999",
                    "-12.5000000000",
                    "-12.3400000000",
                    "12345678901234567890.0123456789",
                )
            ],
        ),
        (
            "DECIMAL(10, 2)",
            [Decimal(t) for t in ("-10.00", "-9.90", "0.00", "0.05", "0.50", "9.00", "10.00")],
        ),
        ("VARCHAR", ["", "A", "B", "a", "ß", "é", "東", "\U0001f600"]),
        ("BYTES", [b"", b"\x00", b"a", b"\xff"]),
        ("DATE", [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
        ("TIMESTAMP", [datetime(1, 1, 1), datetime(2026, 1, 1, 1, 2, 3, 4), datetime(9999, 12, 31)]),
        ("TIMESTAMP_LTZ", [datetime(1, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=UTC)]),
    ],
)
def test_values_come_back_and_sort(target: Callable[..., Target], kind: str, values: list[Any]) -> None:
    view = target(f"k {kind}, n BIGINT")
    writer = view.writer()
    writer.apply(view.batch(0, *((value, 0) for value in reversed(values))))
    writer.apply(view.batch(1, *((value, i) for i, value in enumerate(values))))
    rows, _ = view.read("c0, c1", "ORDER BY c0")
    assert [n for _, n in rows] == list(range(len(values)))
    expected = [view._encoded((value,))[0] for value in values]
    found = [value for value, _ in rows]
    assert [str(v) if v != v else v for v in found] == [str(v) if v != v else v for v in expected]
    if kind.startswith("DECIMAL"):
        # By what is shown: to compare with ``encode`` finds nothing that it loses.
        show = reader(parse_type(kind), view.store.kind == "sqlite")
        assert [show(v) for v in found] == [str(v) for v in values]

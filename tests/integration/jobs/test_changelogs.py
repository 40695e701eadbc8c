"""Queries over changelogs as real Spark computes them, batch by batch, against written-down results.

A case of tests/fixtures/queries/changelogs tells a statement, the relations it reads, per batch the records of
each (key, value or null for a tombstone, seconds of their time), and what the batch writes, in any order. Sources
and sink are files and lists, so that it is certain what one batch holds. ``into`` is the changelog that an INSERT
writes to, and whether what it reads is a changelog.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import duckdb
import pytest
from pyspark.sql import SparkSession
from short_form import later
from spark_analyzer import typed
from statement_cases import analyzed

from leatstream.connectors.base import Connector
from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.errors import StoreError
from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Meta, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, JobSpec, SinkSpec, SourceSpec, StoreRef
from leatstream.plan.logical import LogicalPlan
from leatstream.ports import Snapshot
from leatstream.services.environment import Context
from leatstream.services.planning.binding import bind_statement
from leatstream.services.planning.changelog_inserts import check_upserts
from leatstream.services.planning.sink_columns import new_columns, wrap_insert
from leatstream.services.planning.sink_formats import primary_key_formats, sink_formats
from leatstream.services.planning.specs import operator_spec, watermark_delay
from leatstream.services.planning.views import view_sink
from leatstream.sql.binder import bind
from leatstream.sql.parser import parse
from leatstream.sql.passes.quotients import Settled
from leatstream.sql.relation_properties import RelationProperties, read_relation_properties
from leatstream.sql.source_properties import read_source_options
from leatstream.sql.statements import (
    CreateAs,
    CreateChangelogAs,
    CreateMaterializedViewAs,
    InsertInto,
    Name,
)
from leatstream.sql.view_properties import read_view_properties
from leatstream.views.sqlite_store import SqliteViews
from leatstream_jobs.attempt import run_query
from leatstream_jobs.changelogs.snapshot_store import SnapshotStore

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[2] / "fixtures" / "queries" / "changelogs"
CASES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="admin", owner="admin")
Pair = tuple[str | None, Any]


class FilesConnector(KafkaConnector):
    """Topics that are directories of JSON lines; what is written stays in memory."""

    kind: ClassVar[str] = "kafka"

    def __init__(self, folder: Path) -> None:
        self.name, self.folder = "store", folder
        self.written: list[Pair] = []
        self.headers: list[dict[str, str] | None] = []
        self.fail: Callable[[str], None] = lambda _: None

    def read_stream(self, spark: SparkSession, source: SourceSpec, *, realtime: bool) -> Any:
        folder = self.folder / source.entity
        folder.mkdir(parents=True, exist_ok=True)
        schema = "key STRING, value STRING, timestamp TIMESTAMP, offset BIGINT"
        position = "named_struct('topic', '', 'partition', 0, 'offset', offset, 'timestamp_type', 0) AS __leat_rowmeta"
        return (
            spark.readStream.schema(schema)
            .json(str(folder))
            .selectExpr("CAST(key AS BINARY) key", "CAST(value AS BINARY) value", "timestamp", position)
        )

    def write_stream(self, frame: Any, sink: SinkSpec, *, realtime: bool) -> Any:
        return frame.writeStream.foreachBatch(lambda batch, _: self.write_batch(batch, sink))

    def write_batch(self, frame: Any, sink: SinkSpec) -> None:
        self.fail("before the sink")
        for row in frame.collect():
            value = json.loads(bytes(row["value"])) if row["value"] is not None else None
            self.written.append((bytes(row["key"]).decode() if row["key"] is not None else None, value))
            headers = row["headers"] if "headers" in frame.columns else None
            self.headers.append(headers and {one.key: bytes(one.value).decode() for one in headers})
        self.fail("after the sink")


class Run:
    """A compiled statement over files, run batch by batch."""

    exact_keys = True

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        sql: str,
        relations: dict[str, Any],
        into: dict[str, Any] | None = None,
    ) -> None:
        self.spark, self.offset, self.number = spark, 0, 0
        self.store = FilesConnector(folder)
        self.views = SqliteViews(folder / "views")
        self.query: Any = None
        self.relations = {name: relation_of(name, spec) for name, spec in relations.items()}
        (statement,) = parse(sql)
        assert isinstance(statement, CreateAs | InsertInto)
        target = relation_of("o", into) if into is not None else None
        # What an INSERT reads decides, as in the plan of services.planning.
        changelog = isinstance(statement, CreateChangelogAs) or bool(into and into["changelog"])
        if isinstance(statement, CreateMaterializedViewAs):
            catalog: Any = SimpleNamespace(resolve=lambda name, _: self._find(name), find_function=None)
            self.plan = typed(spark, lambda settled: bind_statement(catalog, statement, Context(), settled))
        else:

            def bound(settled: Settled) -> LogicalPlan:
                return bind(statement.select.copy(), self._find, sql, changelog=changelog, settled=settled)

            self.plan = typed(spark, bound)
        found = analyzed(spark, self.plan)
        if target is not None:
            check_upserts(self.plan, found, target, statement.position)
            wrapped = wrap_insert(self.plan.sql, found, target.columns, deletes=self.plan.deletes)
            self.plan = replace(self.plan, sql=wrapped, primary_key=target.primary_key, aggregation=None)
        made = target.columns if target is not None else new_columns(found, statement.position)
        if isinstance(statement, CreateMaterializedViewAs):
            self.spec = _job(self.plan, self._view(statement, made), (folder / "checkpoint").as_uri())
            return
        given = read_relation_properties(statement.properties, changelog=changelog)
        left, keys = self.plan.left_most.relation, self.plan.primary_key
        effective = sink_formats(given, left, self.plan.aggregation, made, {}, keys, exact=self.exact_keys)
        sink = SinkSpec(
            relation="demo.public.o",
            store=_STORE,
            entity="o",
            columns=_specs(made),
            value_format="json",
            key_format=effective["key.format"].value if "key.format" in effective else None,
            key_columns=list(keys),
            deletes=self.plan.deletes,
        )
        self.spec = _job(self.plan, sink, (folder / "checkpoint").as_uri())

    def _view(self, statement: CreateMaterializedViewAs, columns: tuple[Column, ...]) -> SinkSpec:
        keys = self.plan.primary_key
        made = replace(relation_of("o", {"columns": "x BIGINT"}), columns=columns, primary_key=keys)
        sink = view_sink(made, read_view_properties(statement.properties), deletes=self.plan.deletes)
        assert sink.view is not None
        own = {"table": "qry_v", "generation": 1, "database": self.views.database}
        return sink.model_copy(update={"view": sink.view.model_copy(update=own)})

    def kept(self, what: str = "SELECT * FROM v0.leat_rows") -> list[list[Any]]:
        """What the view holds, in an order of its own."""
        found, _ = self.views.read(Snapshot(what, (), [("qry_v", 1)], 1000, 30))
        return sorted(map(list, found), key=str)

    def _find(self, name: Name) -> Relation:
        return self.relations[name.parts[-1]]

    def connect(self, store: StoreRef) -> Connector:
        """Sources and sink are one store here."""
        return self.store

    def give(self, records: dict[str, list[list[Any]]]) -> None:
        """Put a batch's records where the job will find them."""
        for name, rows in records.items():
            lines = []
            for key, value, at in rows:
                self.offset += 1
                text = None if value is None else json.dumps(value)
                at = datetime.fromtimestamp(NOW.timestamp() + at, UTC).isoformat()
                lines.append(json.dumps({"key": key, "value": text, "timestamp": at, "offset": self.offset}))
            target = self.store.folder / name / f"{self.number}.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            hidden = target.with_name(f"_{target.name}")
            hidden.write_text("\n".join(lines))
            hidden.rename(target)
        self.number += 1

    def work(self) -> list[Pair]:
        """Let the job work off everything; gives what it wrote.

        A job of one source runs on. Of several it would see the files of a batch one after the other, so it is
        stopped before they are given.
        """
        self.store.written = []
        if self.query is None:
            self.query = run_query.start(self.spark, self.spec, self.connect, 2).query
        try:
            self.query.processAllAvailable()
        except Exception:
            self.stop()
            raise
        if len(self.relations) > 1:
            self.stop()
        return self.store.written

    def stop(self) -> None:
        """Stop the job."""
        if self.query is not None:
            self.query.stop()
            self.query = None

    def batch(self, records: dict[str, list[list[Any]]]) -> list[Pair]:
        """One batch."""
        self.give(records)
        return self.work()


_STORE = StoreRef(name="store", kind="kafka", config={})


def _specs(columns: Any) -> list[ColumnSpec]:
    return [ColumnSpec(name=c.name, type=str(c.type), not_null=c.not_null) for c in columns]


def relation_of(name: str, spec: dict[str, Any]) -> Relation:
    struct = parse_type(f"STRUCT<{spec['columns']}>")
    columns = tuple(Column(n, t) for n, t in zip(struct.fields, struct.arguments, strict=True))
    keys = tuple(spec.get("primary_key") or ())
    key = primary_key_formats(RelationProperties(), keys, columns, {})["key.format"].value if keys else None
    return Relation(
        meta=META,
        fqn=Fqn("demo", "public", name),
        kind=RelationKind.CHANGELOG if keys else RelationKind.STREAM,
        columns=columns,
        store="store",
        entity=name,
        value_format="json",
        key_format=key,
        timestamp=spec.get("timestamp"),
        primary_key=keys,
    )


def _job(plan: LogicalPlan, sink: SinkSpec, checkpoint: str) -> JobSpec:
    sources = [
        SourceSpec(
            view=scan.view,
            relation=str(scan.relation.fqn),
            store=_STORE,
            entity=scan.relation.entity,
            columns=_specs(scan.relation.columns),
            value_format="json",
            key_format=scan.relation.key_format,
            timestamp=scan.relation.timestamp,
            starting_position="earliest",
            watermark_delay_ms=watermark_delay(plan, 10_000),
            primary_key=list(scan.relation.primary_key),
        )
        for scan in plan.streams
    ]
    return JobSpec(
        query_id="q",
        query_name="q",
        generation=1,
        attempt=1,
        fencing_token="",
        sql=plan.sql,
        sources=sources,
        sink=sink,
        mode="micro_batch",
        mode_reason="test",
        operator=operator_spec(plan, [read_source_options(scan.properties) for scan in plan.streams]),
        checkpoint=checkpoint,
        conf={"spark.sql.shuffle.partitions": "2"},
    )


def _ordered(pairs: Any) -> list[str]:
    return sorted(json.dumps(list(pair), ensure_ascii=False, sort_keys=True) for pair in pairs)


# Variants whose mechanism other cases show.
VARIANTS = (
    "aggregate_tombstones",
    "foreign_key_left",
    "groups_of_joined",
    "groups_of_left_joined",
    "insert_groups",
    "null_keys_inner",
    "null_keys_left",
    "null_keys_temporal",
    "primary_key_inner",
    "temporal_left",
    "temporal_twice",
)


@pytest.mark.core
@pytest.mark.parametrize("name", later(CASES, VARIANTS))
def test_case(name: str, spark: SparkSession, tmp_path: Path) -> None:
    case = CASES[name]
    run = Run(spark, tmp_path, case["sql"], case["relations"], case.get("into"))
    # Several partitions are for the random records below: these take half the time in one.
    run.spec = run.spec.model_copy(update={"conf": {"spark.sql.shuffle.partitions": "1"}})
    for number, (records, expected) in enumerate(zip(case["batches"], case["expected"], strict=True)):
        assert _ordered(run.batch(records)) == _ordered(expected), f"batch {number}"
    run.stop()


class Model:
    """What the three operators must give, in plain Python, from all records up to now."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, tuple[tuple[int, int], Any]]] = {}
        self.history: dict[str, list[tuple[int, int, Any]]] = {}
        self.count = 0

    def take(self, name: str, key: str, value: Any, at: int) -> None:
        """One record of a changelog."""
        self.count += 1
        self.history.setdefault(key, []).append((at, self.count, value))
        rows = self.rows.setdefault(name, {})
        if key not in rows or rows[key][0] < (at, self.count):
            rows[key] = ((at, self.count), value)

    def now(self, name: str) -> dict[str, Any]:
        """Rows that are there."""
        return {k: v for k, (_, v) in self.rows.get(name, {}).items() if v is not None}

    def as_of(self, key: str, at: int) -> Any:
        """The version that held at a time."""
        versions = [v for v in self.history.get(key, ()) if v[0] <= at]
        return max(versions, key=lambda v: v[:2])[2] if versions else None


RANDOM = {
    "temporal": (
        "CREATE STREAM s AS SELECT v.n, a.region, a.n AS m FROM views v LEFT JOIN accounts a ON v.id = a.id",
        ("views", "accounts"),
    ),
    "joined_groups": (
        "CREATE CHANGELOG c AS SELECT r.name, count(*) AS c, sum(a.n) AS total, min(a.id) AS low FROM accounts a"
        " LEFT JOIN regions r ON a.region = r.code WHERE a.n > 9 GROUP BY r.name",
        ("accounts", "regions"),
    ),
    "groups_of_a_part": (
        "CREATE CHANGELOG c AS SELECT place, total, c + 1 AS c FROM (SELECT upper(region) AS place, sum(n) AS total,"
        " count(*) AS c FROM (SELECT id, region, n FROM accounts WHERE n > 20) GROUP BY upper(region)) WHERE c < 4",
        ("accounts",),
    ),
    "part_joined": (
        "CREATE CHANGELOG c AS SELECT a.id, a.m, coalesce(r.label, '-') AS label FROM (SELECT id, region, n + 1 AS m"
        " FROM accounts WHERE n > 20) a LEFT JOIN (SELECT code, coalesce(upper(name), 'none') AS label FROM regions"
        " WHERE name <> 'n1') r ON a.region = r.code WHERE a.m < 90",
        ("accounts", "regions"),
    ),
}
RELATIONS: dict[str, dict[str, Any]] = {
    "views": {"columns": "id VARCHAR, n BIGINT"},
    "accounts": {"columns": "id VARCHAR, region VARCHAR, n BIGINT", "primary_key": ["id"]},
    "regions": {"columns": "code VARCHAR, name VARCHAR", "primary_key": ["code"]},
}


def _records(chance: random.Random, batch: int, names: tuple[str, ...], model: Model) -> dict[str, Any]:
    """A batch of each relation: late, early, deleted, repeated."""
    found: dict[str, list[list[Any]]] = {name: [] for name in names}
    for name in names:
        for _ in range(40):
            at = 100 * batch + chance.randint(-250, 100)
            if name == "views":
                view = {"id": f"k{chance.randint(0, 14)}", "n": chance.randint(0, 9**9)}
                found[name].append(["x", view, at])
                continue
            key = f"k{chance.randint(0, 13)}" if name == "accounts" else f"r{chance.randint(0, 4)}"
            value: Any = {"code": key, "name": f"n{chance.randint(0, 3)}"}
            if name == "accounts":
                value = {"id": key, "region": f"r{chance.randint(0, 5)}", "n": chance.randint(0, 99)}
            value = None if chance.random() < 0.15 else value
            found[name].append([key, value, at])
    for name in names:
        for key, value, at in found[name]:
            if name != "views":
                model.take(name, key, value, at)
    return found


def _sparse(chance: random.Random, batch: int, names: tuple[str, ...], model: Model) -> dict[str, Any]:
    """All keys at first, then of sixty one that changes, one that goes and one that comes back."""
    found: dict[str, Any] = {name: [] for name in names}
    for name in names:
        keys = [f"k{i}" for i in range(60)] if name != "regions" else [f"r{i}" for i in range(6)]
        there = sorted(model.now(name))
        gone = sorted(set(keys) - set(there))
        touched = [chance.choice(there), *gone[:1]] if there else keys
        if name == "regions" and batch % 2:
            touched = []
        for at, key in enumerate(touched, 100 * batch):
            row: Any = {"code": key, "name": f"n{chance.randint(0, 3)}"}
            if name == "accounts":
                row = {"id": key, "region": f"r{chance.randint(0, 5)}", "n": chance.randint(0, 99)}
            found[name].append(
                ["x" if name == "views" else key, {"id": key, "n": at} if name == "views" else row, at]
            )
        if there and touched:
            found[name].append([chance.choice(there), None, 100 * batch + 50])
        if name == "views":
            found[name] = [record for record in found[name] if record[1] is not None]
    for name in names:
        for key, value, at in found[name]:
            if name != "views":
                model.take(name, key, value, at)
    return found


def test_headers_are_written_with_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Also where the headers alone have changed; a row that is gone takes its headers along."""
    sql = "CREATE CHANGELOG o AS SELECT g, MAP['n', CAST(COUNT(*) AS VARCHAR)] AS h FROM u GROUP BY g"
    run = Run(spark, tmp_path, sql, {"u": {"columns": "id VARCHAR, g VARCHAR", "primary_key": ["id"]}})
    run.spec = run.spec.model_copy(update={"sink": run.spec.sink.model_copy(update={"headers_column": "h"})})
    found = [
        (run.batch({"u": records}), run.store.headers[-1])
        for records in (
            [["x", {"id": "x", "g": "a"}, 0], ["y", {"id": "y", "g": "a"}, 0]],
            [["x", None, 1]],
            [["y", None, 2]],
        )
    ]
    run.stop()
    assert found == [
        ([("a", {"g": "a"})], {"n": "2"}),
        ([("a", {"g": "a"})], {"n": "1"}),
        ([("a", None)], None),
    ]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["temporal", "joined_groups"])
def test_few_keys_change(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    """Most rows are not touched by a batch: they stay as they are, and are found again batches later."""
    sql, names = RANDOM[kind]
    run = Run(spark, tmp_path, sql, {name: RELATIONS[name] for name in names})
    chance, model, kept = random.Random(f"few {kind}"), Model(), dict[str | None, Any]()
    for batch in range(6):
        records = _sparse(chance, batch, names, model)
        written = run.batch(records)
        wanted = _wanted(kind, model, records)
        if kind == "temporal":
            assert _ordered(written) == wanted, f"batch {batch}"
            continue
        assert batch == 0 or len(written) < 25, f"batch {batch} writes what it does not concern"
        kept = {k: v for k, v in (kept | dict(written)).items() if v is not None}
        assert kept == wanted, f"batch {batch}"
    run.stop()


def _wanted(kind: str, model: Model, records: dict[str, Any]) -> Any:
    if kind == "temporal":
        rows = []
        for _, view, at in records["views"]:
            row = model.as_of(view["id"], at) or {}
            rows.append(["x", {"n": view["n"], "region": row.get("region"), "m": row.get("n")}])
        return _ordered(rows)
    return {row[next(iter(row))]: row for row in _batch_answer(RANDOM[kind][0], model)}


def _batch_answer(sql: str, model: Model) -> list[dict[str, Any]]:
    """DuckDB's rows for the same SELECT, over the rows that are there now."""
    with duckdb.connect() as connection:
        for name in ("accounts", "regions"):
            connection.execute(f"CREATE TABLE {name} ({RELATIONS[name]['columns']})")
            rows = [list(row.values()) for row in model.now(name).values()]
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        found = connection.execute(sql.removeprefix("CREATE CHANGELOG c AS "))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.long] if kind != "temporal" else []) for kind in RANDOM],
)
def test_random_records_and_crashes(
    kind: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash at any of the three places the batch is repeated, and gives what it gave."""
    sql, names = RANDOM[kind]
    run = Run(spark, tmp_path, sql, {name: RELATIONS[name] for name in names})
    chance, model, kept = random.Random(kind), Model(), dict[str | None, Any]()
    monkeypatch.setattr("leatstream_jobs.changelogs.snapshots._MOST_FILES", 2)
    crashes = {1: "before the manifest", 2: "before the sink", 3: "after the sink"}
    commit = SnapshotStore.commit
    for batch in range(5):
        # Batches that the driver holds and larger ones take turns, and read what the others have left.
        monkeypatch.setattr("leatstream_jobs.changelogs.snapshot_rows.HELD", 10 if batch % 2 else 5_000)
        records = _records(chance, batch, names, model)
        run.give(records)
        place = crashes.get(batch)
        if place is not None:
            _crash(run, place, monkeypatch)
            monkeypatch.setattr(SnapshotStore, "commit", commit)
        written = run.work()
        wanted = _wanted(kind, model, records)
        if kind == "temporal":
            assert _ordered(written) == wanted, f"batch {batch}"
            continue
        changed = {k: v for k, v in written if kept.get(k) != v}
        assert len(changed) == len(written), f"batch {batch} writes what is there already"
        kept = {k: v for k, v in (kept | changed).items() if v is not None}
        assert kept == wanted, f"batch {batch}"
    run.stop()
    files = [p.name for p in (tmp_path / "checkpoint" / "snapshots").iterdir() if not p.name.endswith(".crc")]
    manifests = [name for name in files if name.startswith("m-")]
    assert len(manifests) == 3
    assert len(files) - len(manifests) <= 8 * len(names), "files that no batch needs are removed"


def _crash(run: Run, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the job end at a place with an error, which leaves what a killed one leaves."""

    def fail(*_: Any) -> None:
        raise StoreError("store-unreachable", "crash")

    def at(where: str) -> None:
        if where == place:
            fail()

    if place == "before the manifest":
        monkeypatch.setattr(SnapshotStore, "commit", fail)
    run.store.fail = at
    with pytest.raises(Exception, match="crash"):
        run.work()
    run.store.fail = lambda _: None


def test_old_versions_are_forgotten(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What both sides have left behind by the history's length goes, but for the last version before that."""
    monkeypatch.setattr("leatstream_jobs.changelogs.snapshots._MOST_FILES", 2)
    run = Run(
        spark,
        tmp_path,
        "CREATE STREAM s AS SELECT v.n, a.n AS m FROM views v"
        " LEFT JOIN accounts a WITH ('history.retention.millis' = 50000) ON v.id = a.id",
        {name: RELATIONS[name] for name in ("views", "accounts")},
    )
    for batch in range(4):
        at = 100 * batch
        account = [["a", {"id": "a", "region": "r", "n": at + i}, at + i] for i in (0, 50)]
        views = [["x", {"id": "a", "n": at}, at + 60]] if batch != 1 else []
        gone = [["b", None, 1], ["b", {"id": "b", "region": "r", "n": 0}, 0]] if batch == 0 else []
        written = run.batch({"accounts": [*account, *gone], "views": views})
        assert _ordered(written) == _ordered([("x", {"n": at, "m": at + 50})] if views else [])
    # Files were merged last when time was 250 s: what ended before the 50 s of history is gone.
    times = (("a", 199), ("a", 200), ("a", 249), ("a", 300), ("b", 0))
    found = run.batch({"views": [["x", {"id": key, "n": at}, at] for key, at in times]})
    assert {(value["n"], value["m"]) for _, value in found} == {
        (199, None),
        (200, 200),
        (249, 200),
        (300, 300),
        (0, None),
    }

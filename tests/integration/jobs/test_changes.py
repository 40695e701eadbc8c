"""Edits of queries (tests/fixtures/changes) and their classes, proven on real Spark.

What keeps its checkpoint is really run: the version before on the first records, the version after from its
checkpoint on the rest. That must write what the version after writes when it has run all the time. Where
``differs`` is told of a ``new-state``, keeping the state is shown to be wrong: Spark refuses, or rows differ.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from short_form import one_in
from spark_analyzer import typed
from statement_cases import FileStore, Pairs, analyzed, ordered, stream

from leatstream.model.names import Fqn
from leatstream.model.objects import Column, QueryKind, Relation, RelationKind
from leatstream.plan.change import Change, changed_kind, classify
from leatstream.plan.job_spec import ColumnSpec, JobSpec
from leatstream.plan.logical import LogicalPlan
from leatstream.ports import Snapshot
from leatstream.services.environment import Context
from leatstream.services.planning.binding import bind_statement
from leatstream.services.planning.sink_columns import new_columns
from leatstream.services.planning.sink_formats import sink_formats
from leatstream.services.planning.specs import operator_spec
from leatstream.services.planning.views import VIEW_STORE
from leatstream.sql.parser import parse
from leatstream.sql.relation_properties import read_relation_properties
from leatstream.sql.source_properties import read_source_options
from leatstream.sql.statements import (
    CreateAs,
    CreateChangelogAs,
    CreateMaterializedViewAs,
    CreateStreamAs,
    Name,
)
from leatstream.sql.view_properties import read_view_properties
from leatstream.views.sqlite_store import SqliteViews
from leatstream_jobs.attempt import run_query

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[2] / "fixtures" / "changes"
CASES = {
    f"{path.stem}: {case['name']}": case
    for path in sorted(FOLDER.glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))
}
KEPT = [name for name, case in CASES.items() if case["class"].startswith("restart-")]
WRONG = [name for name, case in CASES.items() if case.get("differs")]
COLUMNS = "k VARCHAR, n BIGINT, m BIGINT, o STRUCT<a BIGINT, b VARCHAR>, tags ARRAY<VARCHAR>, at TIMESTAMP"
DELAY = 10_000
TABLE = "qry_v"
KINDS = {
    CreateStreamAs: QueryKind.CREATE_STREAM_AS,
    CreateChangelogAs: QueryKind.CREATE_CHANGELOG_AS,
    CreateMaterializedViewAs: QueryKind.CREATE_MATERIALIZED_VIEW_AS,
}


def record(k: str, n: int, m: int | None, minute: float) -> dict[str, Any]:
    at = f"2026-01-01 {int(minute // 60):02}:{int(minute % 60):02}:{int(minute * 60 % 60):02}"
    return {"k": k, "n": n, "m": m, "o": {"a": n * 2, "b": k}, "tags": [k, "t"], "at": at}


# Windows are open and rows without a partner wait when the version changes; the last record closes them.
BATCHES = [
    [record("a", 1, 5, 1), record("a", 4, None, 2), record("b", 3, 7, 3), record("A", 2, 1, 4)],
    [record("a", 3, 2, 5), record("b", 1, 9, 6), record("b", 6, None, 7), record("c", 9, 4, 12)],
    [record("a", 5, 3, 13), record("c", 2, 8, 14), record("z", 1, 1, 59)],
]


# Statement, how late rows may be, partitions of the state.
Key = tuple[str, int, int]


def before(case: dict[str, Any]) -> Key:
    return case["before"], DELAY, 1


def after(case: dict[str, Any]) -> Key:
    return case["after"], case.get("after_delay_ms", DELAY), case.get("after_partitions", 1)


@dataclass
class Version:
    """A version of a query: its job and what kind of statement it is."""

    job: JobSpec
    kind: QueryKind


class Bench:
    """Runs versions over the same records.

    Every version begins on the first records, others go on from there with the rest: a file source knows a
    record by its file's path, so one path leads to the first records at one time and to all at another.
    """

    def __init__(self, spark: SparkSession, job: Callable[..., dict[str, Any]], place: Path) -> None:
        self.spark, self._job, self._place = spark, job, place
        for name, batches in (("first", BATCHES[:1]), ("all", BATCHES)):
            for entity in ("s", "r"):
                for number, records in enumerate(batches):
                    FileStore(place / name / entity).put(number, records)
        self._versions: dict[Key, Version] = {}

    def rest(self, first: Key, *others: Key) -> list[Pairs | str]:
        """What versions write of the rest: one goes on from where ``first`` was, the others from themselves."""
        self._begin({first, *others[1:]})
        wanted = []
        for number, key in enumerate(others):
            # One of its own each time: Spark may still clean up behind a query that has stopped.
            copy = self._place / "rest" / uuid.uuid4().hex
            shutil.copytree(self._begun(first if number == 0 else key), copy)
            wanted.append((key, copy))
        return self._run(wanted, "all")

    def _begin(self, keys: set[Key]) -> None:
        new = [(key, self._begun(key)) for key in sorted(keys) if not self._begun(key).exists()]
        assert all(isinstance(found, list) for found in self._run(new, "first"))

    def _begun(self, key: Key) -> Path:
        return self._place / "begun" / hashlib.sha256(repr(key).encode()).hexdigest()[:16]

    def _run(self, wanted: list[tuple[Key, Path]], records: str) -> list[Pairs | str]:
        """Work off the records, all at once; pairs that were written, or why Spark refused."""
        shown = self._place / "records"
        shown.unlink(missing_ok=True)
        shown.symlink_to(self._place / records, target_is_directory=True)
        running: list[tuple[_Sink, Any]] = []
        for key, checkpoint in wanted:
            sink = _Sink(self._place)
            store: Any = _Store(shown, sink)
            update = {"checkpoint": checkpoint.as_uri(), "query_id": uuid.uuid4().hex}
            job = self.version(key).job.model_copy(update=update)
            if job.sink.view is not None:
                # Beside the state, so that it is copied with it.
                sink.views = SqliteViews(checkpoint / "views")
                view = job.sink.view.model_copy(update={"database": sink.views.database})
                job = job.model_copy(update={"sink": job.sink.model_copy(update={"view": view})})
            running.append((sink, run_query.start(self.spark, job, lambda _, store=store: store, 2).query))
        return [_finished(sink, query) for sink, query in running]

    def version(self, key: Key) -> Version:
        """Compile a statement as the services do."""
        if key not in self._versions:
            self._versions[key] = self._compile(*key)
        return self._versions[key]

    def _compile(self, sql: str, delay_ms: int, partitions: int) -> Version:
        (statement,) = parse(sql)
        assert isinstance(statement, CreateAs)
        catalog: Any = SimpleNamespace(resolve=lambda name, _: relation(name), find_function=None)
        plan = typed(self.spark, lambda settled: bind_statement(catalog, statement, Context(), settled))
        made = new_columns(analyzed(self.spark, plan), statement.position)
        document = self._job([source(s, plan, delay_ms) for s in plan.scans], "", plan.sql, "x BIGINT")
        for one, scan in zip(document["sources"], plan.scans, strict=True):
            one["columns"] = specs(scan.relation.columns)
        document["sink"] |= _sink(statement, plan, made)
        update = plan.operator is None and plan.aggregation is not None and plan.aggregation.update
        document |= {
            "output_mode": "update" if update else "append",
            "distinct": plan.distinct,
            "state": plan.state,
            "conf": {"spark.sql.shuffle.partitions": str(partitions)},
        }
        operator = operator_spec(plan, [read_source_options(scan.properties) for scan in plan.scans])
        document["operator"] = operator.model_dump() if operator is not None else None
        return Version(JobSpec.model_validate(document), KINDS[type(statement)])


class _Sink(FileStore):
    """What a version writes: records, or a view."""

    views: SqliteViews | None = None

    def found(self) -> Pairs:
        """What was written; of a view the rows that it has."""
        if self.views is None:
            return [pair for _, pairs in sorted(self.written.items()) for pair in pairs]
        rows, _ = self.views.read(Snapshot("SELECT * FROM v0.leat_rows", (), [(TABLE, 1)], 1000, 30))
        return [(None, list(row)) for row in rows]


class _Store:
    """Stands for the store of all entities: records in, rows out."""

    takes_rows = False
    carried_format = staticmethod(FileStore.carried_format)

    def __init__(self, folder: Path, sink: FileStore) -> None:
        self.folder, self.sink = folder, sink

    def read_stream(self, spark: SparkSession, source: Any, *, realtime: bool) -> Any:
        return FileStore(self.folder / source.entity).read_stream(spark, source, realtime=realtime)

    def write_stream(self, frame: Any, sink: Any, *, realtime: bool) -> Any:
        return self.sink.write_stream(frame, sink, realtime=realtime)

    def write_batch(self, frame: Any, sink: Any) -> None:
        self.sink.write_batch(frame, sink)


def _sink(statement: CreateAs, plan: LogicalPlan, made: tuple[Column, ...]) -> dict[str, Any]:
    parts = statement.name.parts
    sink = {
        "relation": ".".join(["demo", "public", "x"][: 3 - len(parts)] + list(parts)),
        "columns": specs(made),
        "deletes": plan.deletes,
    }
    if isinstance(statement, CreateMaterializedViewAs):
        retention = read_view_properties(statement.properties).retention_ms
        view = {"table": TABLE, "generation": 1, "retention_ms": retention}
        store = VIEW_STORE.model_dump()
        keys = list(plan.primary_key)
        return sink | {"view": view, "store": store, "entity": "", "value_format": "", "key_columns": keys}
    changelog = isinstance(statement, CreateChangelogAs)
    given = read_relation_properties(statement.properties, changelog=changelog)
    left = plan.scans[0].relation
    effective = sink_formats(given, left, plan.aggregation, made, {}, plan.primary_key)
    return sink | {
        "entity": given.topic or parts[-1],
        "key_format": effective["key.format"].value if "key.format" in effective else None,
        "key_columns": list(plan.primary_key or given.key_columns),
    }


def relation(name: Name) -> Relation:
    """``s`` and ``r``, streams of the same columns, and the changelog ``c_s`` over the records of ``s``."""
    made, entity = stream(COLUMNS, "at"), name.parts[-1]
    made = replace(made, fqn=Fqn("demo", "public", entity), entity=entity.removeprefix("c_"))
    if entity.startswith("c_"):
        return replace(made, kind=RelationKind.CHANGELOG, primary_key=("k",), key_format="primitive")
    return made


def source(scan: Any, plan: LogicalPlan, delay_ms: int) -> dict[str, Any]:
    options = read_source_options(scan.properties)
    return {
        "entity": scan.relation.entity,
        "relation": str(scan.relation.fqn),
        "columns": "x BIGINT",
        "timestamp": options.timestamp or scan.relation.timestamp,
        "primary_key": list(scan.relation.primary_key),
        "key_format": scan.relation.key_format,
        "starting_position": options.starting_position or "latest",
        "starting_timestamp_ms": options.starting_timestamp_ms,
        "on_error": options.on_error,
        "watermark_delay_ms": delay_ms if plan.timed else None,
        "idle_timeout_ms": options.idle_timeout_ms if plan.timed else None,
    }


def specs(columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    return [
        ColumnSpec(name=c.name, type=str(c.type), not_null=c.not_null).model_dump(mode="json")
        for c in columns
    ]


def _finished(sink: _Sink, query: Any) -> Pairs | str:
    try:
        query.processAllAvailable()
    except StreamingQueryException as error:
        return str(error)
    finally:
        query.stop()
    return sink.found()


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(spark, document, tmp_path_factory.mktemp("changes"))


def classes(bench: Bench, case: dict[str, Any]) -> Change:
    old, new = bench.version(before(case)), bench.version(after(case))
    return changed_kind(old.kind, new.kind) or classify(old.job, new.job)


def test_there_are_enough_of_every_class() -> None:
    assert len(CASES) >= 100
    counts = Counter(case["class"] for case in CASES.values())
    assert set(counts) == {"hot", "restart-keep-state", "restart-from-offsets", "new-state", "refused"}
    assert min(counts.values()) >= 6


@pytest.mark.core
def test_the_classes_and_their_reasons(bench: Bench) -> None:
    wrong = {}
    for name, case in CASES.items():
        found = classes(bench, case)
        if found.kind != case["class"] or case["reason"] not in found.reason:
            wrong[name] = (case["class"], case["reason"], found)
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


# A run without `long` takes some of every group: each case takes some seconds.


@pytest.mark.parametrize("name", one_in(9, KEPT))
def test_what_is_kept_goes_on_as_if_nothing_had_changed(name: str, bench: Bench) -> None:
    case = CASES[name]
    resumed, whole = bench.rest(before(case), after(case), after(case))
    assert isinstance(resumed, list), resumed
    assert isinstance(whole, list), whole
    assert whole, "the case shows nothing"
    assert ordered(resumed) == ordered(whole)


@pytest.mark.parametrize("name", one_in(5, WRONG))
def test_what_is_not_kept_could_not_be(name: str, bench: Bench) -> None:
    case = CASES[name]
    resumed, whole = bench.rest(before(case), after(case), after(case))
    assert isinstance(whole, list), whole
    assert isinstance(resumed, str) or ordered(resumed) != ordered(whole)


def document(sources: list[dict[str, Any]], sink: str, sql: str, out: str) -> dict[str, Any]:
    """A JobSpec of nothing but names."""
    store = {"name": "store", "kind": "kafka", "config": {}}
    scans = [
        {"view": f"leat_src_{i}", "store": store, "value_format": "json"} | s for i, s in enumerate(sources)
    ]
    return {
        "query_id": "q",
        "query_name": "q",
        "generation": 1,
        "attempt": 1,
        "fencing_token": "",
        "sql": sql,
        "sources": scans,
        "sink": {"store": store, "value_format": "json"},
        "mode": "micro_batch",
        "mode_reason": "test",
        "checkpoint": "",
    }

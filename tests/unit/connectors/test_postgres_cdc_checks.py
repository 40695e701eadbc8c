"""What a plan says of a table whose changes shall be read, and where records wait for their task."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from leatstream.connectors.entities import Entity, Table, TableColumn
from leatstream.connectors.postgres.cdc import check_source, waiting_records
from leatstream.connectors.postgres.types import read_type, readable
from leatstream.errors import Position, RequestError, StoreError
from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Meta, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ChangeFeed, ColumnSpec, JobSpec, Mode, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt.failed_records import with_record_faults
from leatstream_jobs.attempt.failures import Link, classify

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOGICAL = {"wal_level": "logical", "server_version": "15"}
AT = Position(1, 2, 3)
NATIVE = {"id": "bigint", "name": "text", "at": "timestamp with time zone", "tags": "text[]", "more": "jsonb"}
TABLE = Table(
    tuple(TableColumn(name, read_type(native), native) for name, native in NATIVE.items()),
    ("id",),
    details={"replica_identity": "default"},
)
ROW = '"id" BIGINT, "name" VARCHAR'


def relation(kind: RelationKind, columns: str, key: tuple[str, ...] = ()) -> Relation:
    fields = parse_type(f"STRUCT<{columns}>")
    meta = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="a", owner="o")
    return Relation(
        meta=meta,
        fqn=Fqn("d", "s", "r"),
        kind=kind,
        columns=tuple(Column(n, t) for n, t in zip(fields.fields, fields.arguments, strict=True)),
        store="pg",
        entity="t",
        value_format="json",
        primary_key=key,
    )


def changelog(columns: str, *key: str) -> Relation:
    return relation(RelationKind.CHANGELOG, columns, key or ("id",))


def stream(columns: str) -> Relation:
    return relation(RelationKind.STREAM, columns)


def faults(found: Relation, table: Table = TABLE) -> list[tuple[str | None, str]]:
    with pytest.raises(RequestError) as caught:
        check_source(found, Entity("t", table=table), LOGICAL, AT)
    assert all(fault.position == AT for fault in caught.value.faults)
    return [(fault.code, fault.detail) for fault in caught.value.faults]


@pytest.mark.parametrize(
    "good",
    [
        changelog(ROW),
        changelog(f'{ROW}, "at" TIMESTAMP_LTZ, "tags" ARRAY<VARCHAR>, "more" STRUCT<a INTEGER>'),
        changelog('"id" DECIMAL(20, 0), "at" VARCHAR, "tags" VARCHAR, "more" VARCHAR'),
        stream(f'"op" VARCHAR, "before" STRUCT<{ROW}>, "after" STRUCT<{ROW}>, "ts_ms" BIGINT'),
        stream(
            '"op" VARCHAR, "source" STRUCT<"db" VARCHAR, "schema" VARCHAR, "table" VARCHAR, "lsn" BIGINT>'
        ),
        stream('"op" VARCHAR, "system" STRUCT<"lsn" BIGINT>'),
    ],
    ids=lambda r: ",".join(c.name for c in r.columns),
)
def test_what_can_be_read(good: Relation) -> None:
    check_source(good, Entity("t", table=TABLE), LOGICAL, AT)


@pytest.mark.parametrize(
    ("server", "said"),
    [({"wal_level": "replica"}, "wal_level = replica"), ({**LOGICAL, "standby": "true"}, "standby")],
)
def test_a_server_without_changes(server: dict[str, str], said: str) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        check_source(changelog(ROW), Entity("t", table=TABLE), server, AT)
    assert caught.value.faults[0].position == AT


def test_all_faults_of_a_changelog_at_once() -> None:
    found = changelog('"id" INTEGER, "nam" VARCHAR, "at" BIGINT', "nam")
    assert [code for code, _ in faults(found)] == [
        "validation",
        "type-mismatch",
        "unknown-column",
        "type-mismatch",
    ]
    told = " ".join(detail for _, detail in faults(found))
    assert "which is (id)" in told
    assert "the table's column is bigint, which can be read as BIGINT or VARCHAR" in told


def test_a_table_that_does_not_tell_its_rows_apart() -> None:
    ((code, said),) = faults(changelog(ROW), replace(TABLE, primary_key=()))
    assert (code, "no primary key" in said) == ("validation", True)
    details: dict[str, Any] = {"replica_identity": "nothing"}
    ((code, said),) = faults(changelog(ROW), replace(TABLE, details=details))
    assert (code, "replica identity" in said) == ("validation", True)


def test_rows_whose_changes_are_not_in_its_log() -> None:
    apart = replace(TABLE, apart="public.child inherit from it, and the log has their changes as theirs")
    for found in (changelog(ROW), stream('"op" VARCHAR')):
        ((code, said),) = faults(found, apart)
        assert (code, "cannot all be read: public.child inherit" in said) == ("validation", True)
    computed = replace(TABLE, columns=(TABLE.columns[0], replace(TABLE.columns[1], computed=True)))
    ((code, said),) = faults(changelog(ROW), computed)
    assert (code, "name of d.s.r is a generated column" in said) == ("validation", True)


def test_a_stream_is_of_envelopes() -> None:
    found = stream('"op" BIGINT, "id" BIGINT, "after" STRUCT<"no" BIGINT>, "source" STRUCT<"scn" BIGINT>')
    assert [code for code, _ in faults(found)] == [
        "type-mismatch",
        "unknown-column",
        "unknown-column",
        "type-mismatch",
    ]


@pytest.mark.parametrize(
    ("kind", "native", "can"),
    [
        ("BIGINT", "integer", True),
        ("INTEGER", "bigint", False),
        ("DECIMAL(10, 2)", "numeric(10,2)", True),
        ("BIGINT", "numeric(10,0)", False),
        ("VARCHAR", "public.mood", True),
        ("TIMESTAMP", "timestamp(3) without time zone", True),
        ("TIMESTAMP", "timestamp with time zone", False),
        ("ARRAY<BIGINT>", "integer[]", True),
        ("ARRAY<ARRAY<BIGINT>>", "integer[]", True),
        ("ARRAY<BOOLEAN>", "integer[]", False),
        ("BIGINT", "integer[]", False),
        ("BYTES", "bytea", True),
        ("MAP<VARCHAR, BIGINT>", "jsonb", True),
        ("ARRAY<STRUCT<a BIGINT>>", "jsonb[]", True),
        ("ARRAY<ARRAY<BIGINT>>", "jsonb[]", False),
        ("BOOLEAN", "text", False),
    ],
)
def test_types(kind: str, native: str, can: bool) -> None:
    assert readable(parse_type(kind), native) is can


def test_a_change_that_is_no_row_is_read_again_where_it_waits(tmp_path: Path) -> None:
    """Among those at its place of the log it is the one that has a fault; its excerpt is for people only."""
    batch = pa.table(
        {
            "key": [b"{}"] * 4,
            "value": [b'{"id":"no"}', b'{"id":1,"n":null}', b'{"id":2,"n":"out of range: infinity"}', None],
            "lsn": [16, 32, 32, 32],
        }
    )
    with (
        pa.OSFile(str(tmp_path / "0-0-9-9.arrow"), "wb") as file,
        pa.ipc.new_stream(file, batch.schema) as out,
    ):
        out.write_table(batch)
    columns = [ColumnSpec(name="id", type="BIGINT"), ColumnSpec(name="n", type="DATE")]
    store = StoreRef(name="pg", kind="postgres", config={})
    source = SourceSpec(
        view="leat_src_0",
        relation="d.s.r",
        store=store,
        entity="public.t",
        columns=columns,
        value_format="json",
        feed=ChangeFeed(directory=tmp_path.as_uri()),
    )
    spec = JobSpec(
        query_id="q",
        query_name="q",
        generation=1,
        attempt=1,
        fencing_token="f",
        sql="",
        sources=[source],
        sink=SinkSpec(relation="d.s.o", store=store, entity="o", columns=columns, value_format="json"),
        mode=Mode.MICRO_BATCH,
        mode_reason="",
        checkpoint="file:///c",
    )

    class Store:
        def records_at(self, source: SourceSpec, position: Any, _: float) -> Any:
            return waiting_records(source, position["offset"])

    mark = 'LEAT_UNDECODABLE leat_src_0 {"topic":"public.t","partition":0,"offset":32} LEAT_UNDECODABLE_END'
    failure = with_record_faults(classify([Link("x", mark)], spec), spec, lambda _: Store())  # type: ignore[arg-type, return-value]
    assert failure.record is None  # it cannot be skipped by its place
    assert failure.columns == ("n",)
    assert failure.shown is not None
    assert 'column n is DATE, the record has the string "out of range: infinity"' in failure.shown
    assert "infinity" not in failure.detail

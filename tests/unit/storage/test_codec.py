"""Objects survive the way into a row and back, every field of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from leatstream.model.functions import FunctionSource, UserFunction
from leatstream.model.names import Fqn
from leatstream.model.objects import (
    CheckpointOrigin,
    Column,
    Database,
    DesiredState,
    Effective,
    Meta,
    Origin,
    Query,
    QueryKind,
    QueryState,
    QueryStatus,
    Relation,
    RelationKind,
    Schema,
    SkippedRecord,
    StartFrom,
    Store,
    StoreState,
    ViewIndex,
)
from leatstream.model.registered import (
    Application,
    DescriptorSource,
    EntityDrop,
    MessageType,
    Savepoint,
    SavepointState,
    SchemaRegistry,
    Secret,
    SessionDefaults,
)
from leatstream.model.types import parse_type
from leatstream.storage import codec

MOMENT = datetime(2026, 11, 21, 8, 0, 0, 123456, tzinfo=UTC)
META = Meta(id="x_1", generation=3, created_at=MOMENT, updated_at=MOMENT, created_by="ann", owner="sysadmin")
EFFECTIVE = {
    "topic.partitions": Effective(6, Origin.LEFT_MOST_SOURCE, "demo.public.pageviews"),
    "value.format": Effective("json", Origin.EXPLICIT),
    "flag": Effective(True, Origin.DEFAULT),
}
TYPE = 'STRUCT<a ARRAY<DECIMAL(10, 2)>, "B b" MAP<VARCHAR, TIMESTAMP(3)>>'
STATUS = QueryStatus(
    state=QueryState.FAILED,
    since=MOMENT,
    message="fell",
    error={"code": "job-failed", "detail": "x", "retryable": True},
    attempt=4,
    driver_id="drv_1",
    pid=77,
    observed_generation=2,
    heartbeat_at=MOMENT,
    metrics={"input_rows_total": 5, "sources": [{"end_offsets": {"0": 9}, "lag": None}]},
    log_tail=("a", "b"),
    restarts=2,
    outages=1,
    progress_at=MOMENT,
    next_attempt_at=MOMENT,
    entity_ready=True,
    crashes=2,
    apart_from="drv_0",
    revoked_at=MOMENT,
    view_behind=True,
    never_ran=True,
    reached={"checkpoint": "g2", "batch": 4, "offsets": [{"a": {"0": 9}}]},
)
OBJECTS: list[tuple[codec.Noun[Any], Any]] = [
    (codec.DATABASES, Database(meta=META, name='Ünï"code', comment="c")),
    (codec.SCHEMAS, Schema(meta=META, database="Demo", name="public", comment="c")),
    (
        codec.STORES,
        Store(
            meta=META,
            name="k",
            kind="kafka",
            config={"bootstrap_servers": "h:1", "tls": {"verify_hostname": False}},
            secrets={"sasl.password": "secret://store/x/sasl.password"},
            secret_names={"sasl.password": "kafka_pw"},
            secret_changes=2,
            schema_registry="r",
            comment="c",
            state=StoreState.ERRORED,
            message="m",
            error_code="store-unreachable",
            server={"server_version": "17.2"},
            checked_at=MOMENT,
        ),
    ),
    (
        codec.SECRETS,
        Secret(
            meta=META,
            name="s",
            kind="generic_string",
            version=2,
            properties={"a": "b"},
            comment="c",
            outside="secret://env/A",
        ),
    ),
    (
        codec.SCHEMA_REGISTRIES,
        SchemaRegistry(
            meta=META,
            name="r",
            kind="confluent",
            uris="http://h:8081",
            username="u",
            secrets={"password": "secret://catalog/x/value"},
            secret_names={"password": "s"},
            ca_certificate="PEM",
            comment="c",
        ),
    ),
    (
        codec.DESCRIPTOR_SOURCES,
        DescriptorSource(
            meta=META,
            name="d",
            descriptor_set="AAAA",
            sha256="ab",
            size=3,
            messages=(MessageType(name="shop.Order", file="a.proto", fields=("id",)),),
            comment="c",
        ),
    ),
    (
        codec.SESSION_DEFAULTS,
        SessionDefaults(meta=META, name="ann", database="demo", schema="raw", store="k"),
    ),
    (
        codec.APPLICATIONS,
        Application(
            meta=META,
            name="app",
            sql="BEGIN APPLICATION app …",
            context={"database": "demo", "schema": None, "store": "k", "role": None},
            queries=("q",),
            relations=("d.s.r",),
            virtual=("virtual.public.v",),
            comment="c",
            desired_state=DesiredState.STOPPED,
            deleting=True,
            plan={"queries": [{"name": "q", "action": "keep"}], "change": None},
        ),
    ),
    (
        codec.SAVEPOINTS,
        Savepoint(
            meta=META,
            name="before",
            query="q",
            query_id="qry_1",
            query_generation=2,
            sql="CREATE …",
            job={"sources": []},
            checkpoint_generation=3,
            state=SavepointState.READY,
            message="m",
            batch=7,
            offsets={"d.s.r": {"t": {"0": 1}}},
        ),
    ),
    (codec.ENTITY_DROPS, EntityDrop(meta=META, store="k", entity="日本/t", at_work=2)),
    (
        codec.RELATIONS,
        Relation(
            meta=META,
            fqn=Fqn("demo", "Public", "日本"),
            kind=RelationKind.STREAM,
            columns=(Column("a", parse_type(TYPE), True, "c"), Column("B", parse_type("VARCHAR(3)"))),
            store="k",
            entity="t",
            value_format="json",
            key_format="primitive",
            key_type="VARCHAR",
            timestamp="a",
            timestamp_format="epoch_millis",
            properties={"topic.partitions": 3, "x": "y", "z": False},
            effective=EFFECTIVE,
            created_by_query="qry_1",
            primary_key=("a", "B"),
            indexes=(ViewIndex("i", ("a",)),),
            comment="c",
        ),
    ),
    (
        codec.FUNCTION_SOURCES,
        FunctionSource(
            meta=META, name="s", file="s.py", language="python", content="é\n", digest="d", comment="c"
        ),
    ),
    (
        codec.FUNCTIONS,
        UserFunction(
            meta=META,
            name="f",
            arguments=(Column("a", parse_type(TYPE)),),
            returns=parse_type("DECIMAL(5, 2)"),
            source="s",
            handler="h",
            aggregate=True,
            timeout_seconds=5,
            language="java",
            comment="c",
        ),
    ),
    (
        codec.QUERIES,
        Query(
            meta=META,
            name="q",
            kind=QueryKind.INSERT_INTO,
            sql="INSERT  INTO b SELECT * FROM a;\n",
            statement_hash="h",
            context={"database": "demo", "schema": None},
            sources=("demo.public.a",),
            sink="demo.public.b",
            desired_state=DesiredState.STOPPED,
            delete_sink_entity=True,
            comment="c",
            properties={"p": "1"},
            effective=EFFECTIVE,
            plan={"mode": "realtime", "joins": []},
            job={"sql": "SELECT 1", "conf": {"a": "b"}},
            code={"d1": "def f(): ..."},
            checkpoint_generation=2,
            origin=CheckpointOrigin(name="before", path="savepoints/x_1", whole=True),
            start=StartFrom(
                position="offsets", timestamp_ms=1, offsets={"d.s.r": {"0": 7}}, checkpoint_generation=2
            ),
            beside="qry_2",
            on_hold=True,
            hand_over={"checkpoint": "g2", "batch": 5, "offsets": [{"a": {"0": 9}}]},
            beside_relation=Relation(
                meta=META,
                fqn=Fqn("d", "s", "r"),
                kind=RelationKind.MATERIALIZED_VIEW,
                columns=(Column("a", parse_type(TYPE)),),
                store="",
                entity="",
                value_format="",
            ),
            kept_until=MOMENT,
            skipped=(SkippedRecord("orders:3:42", MOMENT, "me"),),
            deleting=True,
            own_rows=True,
            status=STATUS,
        ),
    ),
]


@pytest.mark.parametrize(("noun", "item"), OBJECTS, ids=lambda value: getattr(value, "word", ""))
def test_round_trip(noun: codec.Noun[Any], item: Any) -> None:
    """What is written reads back equal, through JSON text."""
    row = codec.to_row(noun, item)
    row["document"] = codec.decode_json(codec.encode_json(row["document"]))
    assert codec.from_row(noun, row) == item


@pytest.mark.parametrize(("noun", "item"), OBJECTS, ids=lambda value: getattr(value, "word", ""))
def test_samples_cover_every_field(noun: codec.Noun[Any], item: Any) -> None:
    """A field that is added later and not set here makes this fail: set it above."""
    for part in (item, getattr(item, "status", None)):
        for field in fields(part) if part is not None else ():
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            assert getattr(part, field.name) != default, field.name


def test_document_holds_no_meta() -> None:
    """Meta data stands in columns only."""
    for noun, item in OBJECTS:
        row = codec.to_row(noun, item)
        assert "meta" not in row["document"]
        assert json.loads(codec.encode_json(row["document"]))


def test_keys_are_exact_and_quoted_where_needed() -> None:
    """Keys tell apart what people can tell apart."""
    assert [noun.key(item) for noun, item in OBJECTS] == [
        'Ünï"code',
        '"Demo".public',
        "k",
        "s",
        "r",
        "d",
        "ann",
        "app",
        "before",
        "k/日本/t",
        'demo."Public"."日本"',
        "s",
        "f",
        "q",
    ]


def test_older_document_without_a_new_field_reads() -> None:
    """A field with a default may be absent from a stored document."""
    noun, item = OBJECTS[-1]
    row = codec.to_row(noun, item)
    del row["document"]["deleting"]
    assert codec.from_row(noun, row) == replace(item, deleting=False)


def test_msgspec_has_looked_into_every_class_before_threads_come() -> None:
    """Two threads at a class's first use end the process; in this one other tests have used them already."""
    program = (
        "from leatstream.storage import codec, query_log, secret_box as s\n"
        "from leatstream.model.objects import Meta, QueryEvent, QueryStatus, QueryVersion\n"
        "kinds = [n.type for n in codec.NOUNS] + [Meta, QueryEvent, QueryStatus, QueryVersion]\n"
        "print([k.__name__ for k in kinds if '__msgspec_cache__' not in vars(k)])\n"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"


def test_every_noun_is_looked_into() -> None:
    declared = {value.type for value in vars(codec).values() if isinstance(value, codec.Noun)}
    assert declared == {noun.type for noun in codec.NOUNS}

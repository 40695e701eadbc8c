"""Both Iceberg kinds against catalogs that answer: our own REST catalog and moto's Glue, files in moto's S3."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from aws_server import check_logins
from conformance import ConnectorConformance, Produce
from iceberg_server import TOKEN
from lakes import Lake
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import LongType, NestedField

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.iceberg import commits
from leatstream.connectors.iceberg.admin import IcebergAdmin
from leatstream.connectors.iceberg.commits import Target, alone, claim, commit_batch, progress
from leatstream.connectors.iceberg.tables import IcebergConnector
from leatstream.connectors.iceberg.types import column_type, kept_type
from leatstream.connectors.registry import open_connector
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

_TYPES = """
BOOLEAN; TINYINT; SMALLINT; INTEGER; BIGINT; FLOAT; DOUBLE; DECIMAL(20, 4); VARCHAR; VARCHAR(9); DATE; TIME;
TIMESTAMP; TIMESTAMP_LTZ; BYTES; ARRAY<BIGINT>; ARRAY<VARCHAR(9)>; MAP<VARCHAR, ARRAY<DOUBLE>>;
STRUCT<a BIGINT, b STRUCT<c VARCHAR>>
"""
_ROW = {
    "k": 1, "b": True, "i": -7, "f": 0.5, "d": 2.5, "n": "12345678901234.5678", "s": "é\"\n", "day": "2024-02-29",
    "t": "01:02:03.5", "ts": "2026-01-02 03:04:05.678901", "tz": "2026-01-02 03:04:05Z", "raw": "AAE=",
    "l": [1, None], "m": {"a": 1}, "p": {"x": "y", "z": [{"w": 1}]},
}  # fmt: skip
_COLUMNS = (
    "k BIGINT, b BOOLEAN, i INTEGER, f FLOAT, d DOUBLE, n DECIMAL(20, 4), s VARCHAR, day DATE, t TIME, "
    "ts TIMESTAMP, tz TIMESTAMP_LTZ, raw BYTES, l ARRAY<BIGINT>, m MAP<VARCHAR, BIGINT>, "
    "p STRUCT<x VARCHAR, z ARRAY<STRUCT<w BIGINT>>>"
)


def columns(text: str) -> list[Column]:
    struct = parse_type(f"STRUCT<{text}>")
    return [Column(n, t) for n, t in zip(struct.fields, struct.arguments, strict=True)]


def _admin(connector: Connector) -> IcebergAdmin:
    assert isinstance(connector, IcebergConnector)
    return connector.admin


def _one_row(target: Target, number: int) -> Callable[[Table, Transaction], None]:
    """What puts a batch of one row into a transaction."""

    def append(table: Table, transaction: Transaction) -> None:
        alone(table, target.query, "batch")
        transaction.append(pa.table({"id": pa.array([number], pa.int64())}))

    return append


class IcebergConformance(ConnectorConformance):
    size: ClassVar = {}
    configs: ClassVar = {}
    remote_calls = ("test", "list_entities", "about")
    lake_name: ClassVar[str]

    @pytest.fixture
    def lake(self, request: pytest.FixtureRequest) -> Lake:
        found: Lake = request.getfixturevalue(self.lake_name)
        return found

    @pytest.fixture
    def connector(self, lake: Lake) -> Connector:
        return lake.connector()

    @pytest.fixture
    def produce(self, connector: Connector) -> Produce:
        def send(entity: str, values: Sequence[bytes]) -> None:
            connector.write_records(entity, [NewRecord(None, value) for value in values])

        return send

    @pytest.fixture
    def entity(self, connector: Connector) -> Iterator[str]:
        name = f"conformance.t_{uuid.uuid4().hex[:8]}"
        yield name
        connector.drop_entity(name)

    def make(self, connector: Connector, entity: str) -> None:
        connector.create_table(entity, columns("k BIGINT, v VARCHAR(20), b BYTES"), ["k"])

    def rows(self, connector: Connector, entity: str) -> list[dict[str, Any]]:
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=1)
        return sorted((json.loads(r.value or b"") for r in read if r is not None), key=lambda row: row["k"])

    def test_the_life_of_an_entity(self, connector: Connector, entity: str) -> None:
        assert connector.find_entity(entity) is None
        assert connector.incarnation(entity) is None
        self.make(connector, entity)
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        assert [(c.name, str(c.type), c.not_null) for c in found.table.columns] == [
            ("k", "BIGINT", True),
            ("v", "VARCHAR", False),
            ("b", "BYTES", False),
        ]
        assert found.table.primary_key == ("k",)
        assert found.table.unique == (("k",),)
        assert found.table.details["rows"] == 0
        assert entity in [e.name for e in connector.list_entities()]
        first = connector.incarnation(entity)
        assert first
        assert connector.incarnation(entity) == first
        self.make(connector, entity)
        for other, key in (("k BIGINT, v BIGINT", ["k"]), ("k BIGINT, v VARCHAR(20), b BYTES", [])):
            with pytest.raises(StoreError) as caught:
                connector.create_table(entity, columns(other), key)
            assert caught.value.code == "entity-conflict"
        connector.update_entity(entity, {}, {})
        connector.drop_entity(entity)
        assert connector.find_entity(entity) is None
        connector.drop_entity(entity)
        self.make(connector, entity)
        assert connector.incarnation(entity) not in (None, first)

    def test_dropping_removes_the_files(self, connector: Connector, entity: str, lake: Lake) -> None:
        self.make(connector, entity)
        connector.write_records(entity, [NewRecord(None, b'{"k": 1}')])
        (file,) = lake.data_files(entity)
        connector.drop_entity(entity)
        self.make(connector, entity)
        assert file not in lake.data_files(entity)

    def test_what_the_server_refuses_is_said_in_its_words(self, connector: Connector, entity: str) -> None:
        with pytest.raises(StoreError, match="made of columns") as caught:
            connector.create_entity(entity, {}, {})
        assert caught.value.code == "store-rejected"
        for name in ("a.", ".b", "a.b/c", "a." + "x" * 256):
            with pytest.raises(StoreError, match="cannot be the name") as caught:
                self.make(connector, name)
            assert caught.value.code == "store-rejected"
            assert connector.find_entity(name) is None
        with pytest.raises(StoreError, match="cannot be in the key") as caught:
            connector.create_table(entity, columns("k DOUBLE"), ["k"])
        assert caught.value.faults[0].hint
        assert connector.find_entity(entity) is None

    def test_what_a_statement_writes_is_there(self, connector: Connector, entity: str) -> None:
        record = NewRecord(None, b'{"k": 1, "v": "one", "b": "AAE="}')
        with pytest.raises(StoreError) as caught:
            connector.write_records(entity, [record])
        assert caught.value.code == "entity-not-found"
        assert connector.find_entity(entity) is None
        self.make(connector, entity)
        connector.write_records(entity, [record, NewRecord(None, b'{"k": 2}')])
        connector.write_records(entity, [])
        connector.write_records(entity, [NewRecord(b"1", b'{"k": 1, "v": "again"}')])
        assert self.rows(connector, entity) == [
            {"k": 1, "v": "again", "b": None},
            {"k": 2, "v": None, "b": None},
        ]

    def test_every_type_is_written_and_shown(self, connector: Connector, entity: str) -> None:
        connector.create_table(entity, columns(_COLUMNS), [])
        empty = {"k": 2} | {name: None for name in _ROW if name != "k"}
        for row in (_ROW, empty):
            connector.write_records(entity, [NewRecord(None, json.dumps(row).encode())])
        assert self.rows(connector, entity) == [_ROW, empty]

    def test_a_refused_row_takes_the_others_with_it_and_no_value_is_told(
        self, connector: Connector, entity: str
    ) -> None:
        self.make(connector, entity)
        good = NewRecord(None, b'{"k": 1}')
        for bad, word in (
            ('{"k": null}', "requires a value"),
            ('{"v": "x"}', "requires a value"),
            ('{"k": "sesame"}', "cannot be read"),
            ('{"k": 1, "b": "sesame!"}', "cannot be read"),
            ('{"other": 1}', "no column other"),
            ("[]", "JSON object"),
        ):
            with pytest.raises(StoreError, match=word) as caught:
                connector.write_records(entity, [good, NewRecord(None, bad.encode())])
            assert caught.value.code == "store-rejected"
            assert "sesame" not in str(caught.value)
            assert self.rows(connector, entity) == []

    def test_printing(self, connector: Connector, entity: str, produce: Produce) -> None:
        self.make(connector, entity)
        assert self.rows(connector, entity) == []
        produce(entity, [b'{"k": %d, "v": "x"}' % n for n in (7, 3, 11)])
        read = connector.read_records(entity, from_beginning=True, limit=2, idle_timeout=None)
        found = [r for r in read if r is not None]
        assert len(found) == len({r.offset for r in found}) == 2
        for one in found:
            assert json.loads(one.key or b"") == {"k": json.loads(one.value or b"")["k"]}
            assert one.timestamp

    def test_printing_from_the_end_misses_nothing_that_comes_after(
        self, connector: Connector, entity: str, produce: Produce
    ) -> None:
        """A table has no end: what is there is shown, in any case, and then the reading ends."""
        self.make(connector, entity)
        produce(entity, [b'{"k": 1}'])
        read = connector.read_records(entity, from_beginning=False, limit=None, idle_timeout=None)
        assert [json.loads(r.value or b"")["k"] for r in read if r is not None] == [1]

    def test_printing_ends_when_the_entity_goes(
        self, connector: Connector, entity: str, produce: Produce
    ) -> None:
        self.make(connector, entity)
        reading = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=60)
        assert next(reading) is None
        connector.drop_entity(entity)
        with pytest.raises(StoreError) as caught:
            list(reading)
        assert caught.value.code == "entity-not-found"

    def test_made_columns_are_read_back_as_they_were(self, connector: Connector, entity: str) -> None:
        kinds = [parse_type(text.strip()) for text in _TYPES.strip().split(";")]
        connector.create_table(entity, [Column(f"c{i}", kind) for i, kind in enumerate(kinds)], [])
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        read = [(c.type, c.native) for c in found.table.columns]
        assert read == [(kept_type(kind), column_type(kind)) for kind in kinds]

    @pytest.mark.parametrize("retries", [False, True])
    def test_a_batch_of_two_attempts_is_there_once_without_the_librarys_retries(
        self, lake: Lake, entity: str, retries: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With them it is there twice, which is why they are switched off."""
        admins = [_admin(lake.connector()) for _ in range(2)]
        lake.connector().create_table(entity, columns("id BIGINT"), [])
        target = Target("lake", entity, ("id",), (), "q", "g1", 1)
        rows = pa.table({"id": pa.array(range(1000), pa.int64())})

        def stage(table: Table, transaction: Transaction) -> None:
            if not retries:
                alone(table, target.query, "batch")
            transaction.append(rows)

        commit, raced = Table._do_commit, list[bool]()

        def after_the_other(self: Table, updates: Any, requirements: Any) -> None:
            monkeypatch.setattr(Table, "_do_commit", commit)
            raced.append(commit_batch(admins[1], target, 0, stage))
            commit(self, updates, requirements)

        monkeypatch.setattr(Table, "_do_commit", after_the_other)
        assert commit_batch(admins[0], target, 0, stage) is retries
        assert raced == [True]
        assert len(lake.rows(entity)) == (2000 if retries else 1000)

    @pytest.mark.parametrize("theirs", [False, True])
    def test_a_query_never_makes_a_tables_first_commit_with_rows(
        self, lake: Lake, entity: str, theirs: bool
    ) -> None:
        """Neither in a table of ours nor in one of others: its batches rely on a snapshot that is there."""
        connector = lake.connector()
        self.empty(lake, connector, entity, theirs=theirs)
        assert (self.snapshot(lake, entity) is None) is theirs
        target = Target("lake", entity, ("id",), (), "q", "g1", 1)
        assert claim(_admin(connector), target) is None
        first = self.snapshot(lake, entity)
        assert first is not None
        assert first.summary is not None
        assert first.summary["total-records"] == "0"
        assert claim(_admin(connector), replace(target, attempt=2)) is None
        assert self.snapshot(lake, entity) == first, "one is enough"
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        assert (found.table.details["rows"], found.table.details["files"]) == (0, 0)
        assert lake.rows(entity) == []

    def test_two_queries_that_begin_a_table_together_lose_nothing(
        self, lake: Lake, entity: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each claims the table as it is without a snapshot; which snapshot is left does not matter."""
        connectors = [lake.connector() for _ in range(2)]
        self.empty(lake, connectors[0], entity, theirs=True)
        targets = [Target("lake", entity, ("id",), (), query, "g1", 1) for query in ("p", "q")]
        commit, raced = Table._do_commit, list[int | None]()

        def after_the_other(self: Table, updates: Any, requirements: Any) -> None:
            monkeypatch.setattr(Table, "_do_commit", commit)
            raced.append(claim(_admin(connectors[1]), targets[1]))
            commit(self, updates, requirements)

        monkeypatch.setattr(Table, "_do_commit", after_the_other)
        assert claim(_admin(connectors[0]), targets[0]) is None
        assert raced == [None]
        properties = lake.catalog.load_table(tuple(entity.split("."))).properties
        assert [progress(properties, query).attempt for query in ("p", "q")] == [1, 1]
        self.race(lake, connectors, targets, monkeypatch)

    @pytest.mark.parametrize("wrote", [False, True])
    def test_a_claim_that_comes_late_takes_the_table_from_nobody(
        self, lake: Lake, entity: str, wrote: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A newer attempt claims the table, and maybe writes, while an older one's claim is under way."""
        admins = [_admin(lake.connector()) for _ in range(2)]
        self.empty(lake, lake.connector(), entity, theirs=False)
        old = Target("lake", entity, ("id",), (), "q", "g1", 1)
        new = replace(old, checkpoint="g2", attempt=2)
        commit = Table._do_commit

        def after_the_other(self: Table, updates: Any, requirements: Any) -> None:
            monkeypatch.setattr(Table, "_do_commit", commit)
            claim(admins[1], new)
            if wrote:
                assert commit_batch(admins[1], new, 0, _one_row(new, 0))
            commit(self, updates, requirements)

        monkeypatch.setattr(Table, "_do_commit", after_the_other)
        if wrote:
            with pytest.raises(AttemptBehindError):
                claim(admins[0], old)
        else:
            claim(admins[0], old)
            assert commit_batch(admins[1], new, 0, _one_row(new, 0))
        with pytest.raises(StoreError, match="A newer attempt"):
            commit_batch(admins[0], old, 7, _one_row(old, 7))
        assert lake.rows(entity) == [(0,)]

    def empty(self, lake: Lake, connector: Connector, entity: str, *, theirs: bool) -> None:
        """A table of one column, made by us or by somebody else."""
        if not theirs:
            connector.create_table(entity, columns("id BIGINT"), [])
            return
        lake.catalog.create_namespace_if_not_exists(entity.split(".")[0])
        lake.catalog.create_table(tuple(entity.split(".")), Schema(NestedField(1, "id", LongType())))

    def snapshot(self, lake: Lake, entity: str) -> Snapshot | None:
        return lake.catalog.load_table(tuple(entity.split("."))).current_snapshot()

    def race(
        self,
        lake: Lake,
        connectors: Sequence[Connector],
        targets: Sequence[Target],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Each query commits its first batch, the second one while the first one is about to."""
        commit = Table._do_commit

        def after_the_other(self: Table, updates: Any, requirements: Any) -> None:
            monkeypatch.setattr(Table, "_do_commit", commit)
            assert commit_batch(_admin(connectors[1]), targets[1], 0, _one_row(targets[1], 1))
            commit(self, updates, requirements)

        monkeypatch.setattr(Table, "_do_commit", after_the_other)
        assert commit_batch(_admin(connectors[0]), targets[0], 0, _one_row(targets[0], 0))
        assert lake.rows(targets[0].entity) == [(0,), (1,)]

    def test_a_relation_names_its_table(self, connector: Connector) -> None:
        assert connector.named_entity({"iceberg.namespace": "shop"}, "orders") == ("shop.orders", [])
        assert connector.named_entity({"iceberg.table.name": "t"}, "orders") == ("default.t", [])
        for wrong in (
            {"iceberg.catalog": "another"},
            {"iceberg.db.name": "a", "iceberg.namespace": "b"},
            {"iceberg.table.name": "a.b"},
        ):
            _, faults = connector.named_entity(wrong, "orders")
            assert [fault.name in wrong for fault in faults] == [True]
            assert faults[0].hint


class TestIcebergRest(IcebergConformance):
    lake_name: ClassVar = "iceberg_rest"

    @pytest.fixture
    def refused(self, lake: Lake) -> Connector:
        return open_connector(lake.kind, "s", lake.config, {"client_secret": "wrong-password"})

    @pytest.fixture
    def unreachable(self) -> Connector:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        config = {"uri": address, "client_id": "leat"}
        return open_connector("iceberg_rest", "s", config, {"client_secret": "x"})

    def test_a_catalog_that_is_silent_is_left_in_time(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"http://127.0.0.1:{silent.getsockname()[1]}"
            connector = open_connector("iceberg_rest", "s", {"uri": address}, {})
            with pytest.raises(StoreError, match="did not answer") as caught:
                connector.test(0.5)
        assert caught.value.code == "store-unreachable"

    def test_a_scope_and_a_warehouse_are_told_apart(self, lake: Lake) -> None:
        with pytest.raises(StoreError, match="invalid_scope") as caught:
            lake.connector(scope="other").test(5)
        assert caught.value.code == "store-auth-failed"
        with pytest.raises(StoreError, match="Warehouse other does not exist") as caught:
            lake.connector(warehouse="other").test(5)
        assert caught.value.code == "store-rejected"

    def test_a_ready_token_logs_in(self, lake: Lake) -> None:
        config = {"uri": lake.config["uri"], "warehouse": "main"}
        open_connector(lake.kind, "s", config, {"token": TOKEN}).test(5)
        with pytest.raises(StoreError) as caught:
            open_connector(lake.kind, "s", config, {"token": "another"}).test(5)
        assert caught.value.code == "store-auth-failed"
        assert "another" not in str(caught.value)

    def test_a_token_that_expires_is_renewed(self, connector: Connector, lake: Lake, entity: str) -> None:
        self.make(connector, entity)
        assert lake.server is not None
        lake.server.tokens.clear()
        assert connector.find_entity(entity) is not None

    def test_files_by_keys_of_the_store(self, lake: Lake, entity: str) -> None:
        """Of a catalog that hands out no credentials."""
        assert lake.server is not None
        given = {"endpoint_url": lake.address, "region": "eu-west-1", "access_key_id": "AKIAEXAMPLE"}
        secrets = dict(lake.secrets) | {"s3.secret_access_key": "a-secret"}
        connector = open_connector(lake.kind, "s", dict(lake.config) | {"s3": given}, secrets)
        lake.server.vends = False
        try:
            self.make(connector, entity)
            connector.write_records(entity, [NewRecord(None, b'{"k": 1}')])
            assert [row["k"] for row in self.rows(connector, entity)] == [1]
        finally:
            lake.server.vends = True

    @pytest.mark.parametrize("theirs", [False, True])
    def test_a_catalog_that_trusts_first_commits_loses_nothing(
        self, lake: Lake, entity: str, theirs: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of two commits that both take the table for one without a snapshot, the second one would win."""
        assert lake.server is not None
        connectors = [lake.connector() for _ in range(2)]
        self.empty(lake, connectors[0], entity, theirs=theirs)
        targets = [Target("lake", entity, ("id",), (), query, "g1", 1) for query in ("p", "q")]
        monkeypatch.setattr(lake.server, "trusts_first_commits", True)
        for connector, target in zip(connectors, targets, strict=True):
            claim(_admin(connector), target)
        self.race(lake, connectors, targets, monkeypatch)

    def test_claims_of_a_table_together_on_such_a_catalog(
        self, lake: Lake, entity: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second empty snapshot replaces the first one: no row is lost, and both claims hold."""
        assert lake.server is not None
        monkeypatch.setattr(lake.server, "trusts_first_commits", True)
        self.test_two_queries_that_begin_a_table_together_lose_nothing(lake, entity, monkeypatch)

    def test_a_table_is_made_though_its_files_cannot_be_written_here(self, lake: Lake, entity: str) -> None:
        """Its first snapshot is made by the job then, which may have rights that the server has not."""
        assert lake.server is not None
        unreachable = {"endpoint_url": "http://127.0.0.1:9", "region": "eu-west-1", "access_key_id": "a"}
        secrets = dict(lake.secrets) | {"s3.secret_access_key": "b"}
        connector = open_connector(lake.kind, "s", dict(lake.config) | {"s3": unreachable}, secrets)
        lake.server.vends = False
        try:
            self.empty(lake, connector, entity, theirs=False)
        finally:
            lake.server.vends = True
        assert connector.find_entity(entity) is not None
        assert self.snapshot(lake, entity) is None

    @pytest.mark.parametrize(("status", "made"), [(429, False), (502, True), (503, True), (504, False)])
    def test_a_commit_with_an_unclear_answer_is_looked_for(
        self, connector: Connector, lake: Lake, entity: str, status: int, made: bool
    ) -> None:
        """A batch is there once. A statement's rows are there once, or it says that they were not found."""
        assert lake.server is not None
        self.empty(lake, connector, entity, theirs=False)
        target = Target("lake", entity, ("id",), (), "q", "g1", 1)
        claim(_admin(connector), target)
        lake.server.broken = ((status, made),) * 2
        assert commit_batch(_admin(connector), target, 0, _one_row(target, 1))
        assert lake.rows(entity) == [(1,)]
        lake.server.broken = ((status, made),)
        record = NewRecord(None, b'{"id": 2}')
        if made:
            connector.write_records(entity, [record])
        else:
            with pytest.raises(StoreError, match="not found in the table afterwards") as caught:
                connector.write_records(entity, [record])
            assert caught.value.code == "store-unreachable"
            assert "before you repeat" in str(caught.value.faults[0].hint)
        assert lake.rows(entity) == ([(1,), (2,)] if made else [(1,)])
        assert not lake.server.broken

    def test_a_catalog_that_stays_disturbed_is_said_in_its_words(
        self, connector: Connector, lake: Lake, entity: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That others commit there would be wrong."""
        assert lake.server is not None
        monkeypatch.setattr(commits, "_PAUSE", 0.001)
        self.empty(lake, connector, entity, theirs=False)
        target = Target("lake", entity, ("id",), (), "q", "g1", 1)
        claim(_admin(connector), target)
        monkeypatch.setattr(lake.server, "broken", ((504, False),) * 100)
        with pytest.raises(StoreError, match="The catalog is disturbed") as caught:
            commit_batch(_admin(connector), target, 0, _one_row(target, 1))
        assert caught.value.code == "store-unreachable"

    def test_nested_namespaces(self, connector: Connector) -> None:
        name = f"a.b_{uuid.uuid4().hex[:6]}.c.orders"
        self.make(connector, name)
        try:
            assert name in [e.name for e in connector.list_entities()]
            assert connector.canonical_entity("orders") == "default.orders"
            found = connector.find_entity(name)
            assert found is not None
            assert found.name == name
        finally:
            connector.drop_entity(name)


class TestIcebergGlue(IcebergConformance):
    lake_name: ClassVar = "iceberg_glue"

    @pytest.fixture
    def refused(self, lake: Lake) -> Iterator[Connector]:
        check_logins(lake.address, 0)
        yield open_connector(lake.kind, "s", lake.config, {"secret_access_key": "wrong-password"})
        check_logins(lake.address, -1)

    @pytest.fixture
    def unreachable(self, lake: Lake) -> Connector:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        return lake.connector(endpoint_url=address)

    def test_tables_of_other_formats_are_none(self, connector: Connector, lake: Lake, entity: str) -> None:
        self.make(connector, entity)
        database, _ = entity.split(".")
        glue = getattr(lake.catalog, "glue")  # noqa: B009 - of Glue's catalog alone
        glue.create_table(DatabaseName=database, TableInput={"Name": "csv_files", "Parameters": {}})
        try:
            assert f"{database}.csv_files" not in [e.name for e in connector.list_entities()]
            assert connector.find_entity(f"{database}.csv_files") is None
        finally:
            glue.delete_table(DatabaseName=database, Name="csv_files")

    def test_names_that_glue_cannot_have(self, connector: Connector) -> None:
        for name in ("a.b.c", "Shop.orders", "shop.my-orders"):
            with pytest.raises(StoreError, match="cannot be the name"):
                self.make(connector, name)

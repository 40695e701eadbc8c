"""Databricks' workspace by the real SDK, against a facade; files by delta-rs on moto's S3."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from conformance import ConnectorConformance, Produce
from databricks_server import DatabricksServer
from deltalake import write_deltalake

from leatstream.connectors.base import Connector
from leatstream.connectors.databricks.errors import LostStatementError
from leatstream.connectors.databricks.statements import Warehouse
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type


def columns(text: str) -> list[Column]:
    struct = parse_type(f"STRUCT<{text}>")
    return [Column(n, t) for n, t in zip(struct.fields, struct.arguments, strict=True)]


class TestDatabricks(ConnectorConformance):
    size: ClassVar = {}
    configs: ClassVar = {}
    remote_calls = ("test", "list_entities", "about")
    writes = False
    kind_of_table: ClassVar[str] = "EXTERNAL"

    @pytest.fixture
    def connector(self, databricks: DatabricksServer) -> Connector:
        return open_connector("databricks", "s", databricks.config(), databricks.secrets)

    @pytest.fixture
    def refused(self, databricks: DatabricksServer) -> Connector:
        wrong = databricks.secrets | {"token": "wrong-password"}
        return open_connector("databricks", "s", databricks.config(), wrong)

    @pytest.fixture
    def unreachable(self, databricks: DatabricksServer) -> Iterator[Connector]:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            config = databricks.config(host=f"http://127.0.0.1:{nobody.getsockname()[1]}")
            yield open_connector("databricks", "s", config, databricks.secrets)

    @pytest.fixture
    def entity(self, connector: Connector) -> Iterator[str]:
        name = f"e_{uuid.uuid4().hex[:8]}"
        yield name
        connector.drop_entity(name)

    @pytest.fixture
    def produce(self, databricks: DatabricksServer) -> Produce:
        def send(entity: str, values: Sequence[bytes]) -> None:
            table = databricks.delta(entity)
            rows = pa.Table.from_pylist([{"k": int(value)} for value in values], pa.schema(table.schema()))
            write_deltalake(table, rows, mode="append")

        return send

    def make(self, connector: Connector, entity: str) -> None:
        connector.create_table(
            entity, columns("k BIGINT, v VARCHAR, d DECIMAL(10, 2), l ARRAY<VARCHAR>"), ["k"]
        )

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
            ("d", "DECIMAL(10, 2)", False),
            ("l", "ARRAY<VARCHAR>", False),
        ]
        assert found.table.primary_key == ("k",)
        assert found.table.details["type"] == self.kind_of_table
        assert entity in [e.name for e in connector.list_entities()]
        first = connector.incarnation(entity)
        assert first
        assert connector.incarnation(entity) == first
        self.make(connector, entity)
        with pytest.raises(StoreError) as caught:
            connector.create_table(entity, columns("k BIGINT, v BIGINT"), ["k"])
        assert caught.value.code == "entity-conflict"
        connector.update_entity(entity, {}, {})
        connector.drop_entity(entity)
        assert connector.find_entity(entity) is None
        connector.drop_entity(entity)
        self.make(connector, entity)
        assert connector.incarnation(entity) not in (None, first)
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=1)
        assert [r for r in read if r is not None] == []

    def test_what_the_server_refuses_is_said_in_its_words(self, connector: Connector, entity: str) -> None:
        with pytest.raises(StoreError, match="made of columns"):
            connector.create_entity(entity, {}, {})
        for name in ("a b", "a/b", "a.b.c.d", "", "x" * 256):
            with pytest.raises(StoreError) as caught:
                self.make(connector, name)
            assert caught.value.code == "store-rejected"
            assert connector.find_entity(name) is None
        assert isinstance(connector, Connector)
        with pytest.raises(StoreError, match="Syntax error") as caught:
            connector.admin.warehouse.run("SELEC 1", "trying", 10)  # type: ignore[attr-defined]
        assert caught.value.code == "store-rejected"

    def test_what_a_statement_writes_is_there(self, connector: Connector, entity: str) -> None:
        with pytest.raises(StoreError, match="cannot be written"):
            connector.write_records(entity, [NewRecord(None, b"{}")])

    def test_printing(self, connector: Connector, entity: str, produce: Produce) -> None:
        self.make(connector, entity)
        produce(entity, [b"7", b"3", b"11"])
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=None)
        found = [r for r in read if r is not None]
        assert sorted(json.loads(r.key or b"")["k"] for r in found) == [3, 7, 11]
        assert json.loads(found[0].value or b"").keys() == {"k", "v", "d", "l"}
        some = connector.read_records(entity, from_beginning=True, limit=2, idle_timeout=None)
        assert len([r for r in some if r is not None]) == 2

    def test_printing_from_the_end_misses_nothing_that_comes_after(
        self, connector: Connector, entity: str, produce: Produce
    ) -> None:
        """A table has no end: what is there is shown, in any case, and then the reading ends."""
        self.make(connector, entity)
        produce(entity, [b"1"])
        read = connector.read_records(entity, from_beginning=False, limit=None, idle_timeout=None)
        assert len([r for r in read if r is not None]) == 1

    def test_printing_ends_when_the_entity_goes(
        self, connector: Connector, entity: str, produce: Produce
    ) -> None:
        self.make(connector, entity)
        connector.drop_entity(entity)
        with pytest.raises(StoreError) as caught:
            list(connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=60))
        assert caught.value.code == "entity-not-found"

    def test_tables_of_the_workspace_itself_are_not_touched(
        self, connector: Connector, databricks: DatabricksServer
    ) -> None:
        databricks.register("main.default.managed", "s3://databricks-own/t", kind="MANAGED")
        found = connector.find_entity("managed")
        assert found is not None
        assert found.table is not None
        (misfit,) = connector.table_misfits(found.table, [], [])
        assert "managed by the workspace" in misfit.detail
        assert "'databricks.volume'" in misfit.hint
        connector.drop_entity("managed")

    def test_a_schema_is_made_and_named(self, connector: Connector, databricks: DatabricksServer) -> None:
        schema = f"s_{uuid.uuid4().hex[:8]}"
        self.make(connector, f"{schema}.orders")
        assert f"{schema}.orders" in [e.name for e in connector.list_entities()]
        location = str(databricks.tables[f"main.{schema}.orders"]["storage_location"])
        assert location.startswith(f"s3://delta-lake/leatstream/{schema}/orders-")
        connector.drop_entity(f"{schema}.orders")

    def test_a_warehouse_that_starts_is_waited_for(
        self, connector: Connector, entity: str, databricks: DatabricksServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("leatstream.connectors.databricks.statements._POLLS", (0.01, 0.01))
        monkeypatch.setattr(databricks, "slow", 3)
        self.make(connector, entity)
        assert connector.find_entity(entity) is not None

    def test_what_is_wrong_with_the_store_is_told_apart(
        self, databricks: DatabricksServer, entity: str
    ) -> None:
        files: dict[str, Any] = databricks.config()["s3"]
        for config, word in (
            ({"s3": None}, "neither a volume nor a bucket"),
            ({"s3": files | {"bucket": "no-such-bucket"}}, "bucket does not exist"),
        ):
            given = {k: v for k, v in databricks.config(**config).items() if v is not None}
            secrets = databricks.secrets if "s3" in given else {"token": databricks.secrets["token"]}
            connector = open_connector("databricks", "s", given, secrets)
            with pytest.raises(StoreError, match=word):
                connector.create_table(entity, columns("k BIGINT"), [])
            assert connector.find_entity(entity) is None
        other = open_connector("databricks", "s", databricks.config(warehouse_id="nope"), databricks.secrets)
        with pytest.raises(StoreError, match="no SQL warehouse nope") as caught:
            other.test(5)
        assert caught.value.code == "store-rejected"

    def test_a_busy_workspace_is_asked_again(
        self, connector: Connector, databricks: DatabricksServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("leatstream.connectors.databricks.statements._BUSY", 0.01)
        monkeypatch.setattr(databricks, "busy", 2)
        assert warehouse(connector).run(NOTHING, "trying", 30) == []
        assert databricks.busy == 0

    def test_a_statement_whose_answer_is_lost_is_not_sent_again(
        self, connector: Connector, databricks: DatabricksServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(databricks, "lost", 1)
        sent = len(databricks.statements)
        with pytest.raises(LostStatementError) as caught:
            warehouse(connector).run(NOTHING, "trying", 30)
        assert caught.value.code == "store-unreachable"
        assert databricks.statements[sent:] == [NOTHING]

    def test_a_statement_is_asked_for_by_its_id_after_a_fault(
        self, connector: Connector, databricks: DatabricksServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(databricks, "slow", 2)
        sent, plain = len(databricks.statements), Warehouse._outcome

        def break_off(self: Warehouse, answer: Any, what: str, end: float) -> Any:
            databricks.busy = 1  # the next request is a look at the statement
            return plain(self, answer, what, end)

        monkeypatch.setattr(Warehouse, "_outcome", break_off)
        assert warehouse(connector).run(NOTHING, "trying", 30) == []
        assert databricks.statements[sent:] == [NOTHING]

    def test_a_statement_that_takes_too_long_is_cancelled(
        self, connector: Connector, databricks: DatabricksServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(databricks, "slow", 1_000_000)
        with pytest.raises(StoreError, match="did not finish trying within") as caught:
            warehouse(connector).run(NOTHING, "trying", 0.3)
        assert caught.value.code == "store-unreachable"
        assert "CANCELED" in [answer["state"] for answer in databricks.answers.values()]


NOTHING = "CREATE SCHEMA IF NOT EXISTS `main`.`default`"


def warehouse(connector: Connector) -> Warehouse:
    found = connector.admin.warehouse  # type: ignore[attr-defined]
    assert isinstance(found, Warehouse)
    return found

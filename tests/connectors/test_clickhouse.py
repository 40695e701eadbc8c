"""ClickHouse's engine behind its HTTP interface; see ``clickhouse_server``."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
from clickhouse_server import PASSWORD, ClickHouseServer
from conformance import ConnectorConformance, Produce

from leatstream.connectors.base import Connector
from leatstream.connectors.clickhouse.connector import ClickHouseConnector
from leatstream.connectors.clickhouse.types import column_type
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.registry import open_connector
from leatstream.errors import RequestError, StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

SECRET = {"password": PASSWORD}


def columns(text: str) -> list[Column]:
    struct = parse_type(f"STRUCT<{text}>")
    return [Column(n, t) for n, t in zip(struct.fields, struct.arguments, strict=True)]


class TestClickHouse(ConnectorConformance):
    size: ClassVar = {}
    configs: ClassVar = {}
    remote_calls = ("test", "list_entities", "about")

    @pytest.fixture
    def connector(self, clickhouse: ClickHouseServer) -> Connector:
        return open_connector("clickhouse", "s", clickhouse.config(), SECRET)

    @pytest.fixture
    def refused(self, clickhouse: ClickHouseServer) -> Connector:
        return open_connector("clickhouse", "s", clickhouse.config(), {"password": "wrong-password"})

    @pytest.fixture
    def unreachable(self) -> Iterator[Connector]:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            config = {"host": "127.0.0.1", "port": nobody.getsockname()[1], "secure": False, "username": "u"}
            yield open_connector("clickhouse", "s", config)

    @pytest.fixture
    def produce(self, connector: Connector) -> Produce:
        def send(entity: str, values: Sequence[bytes]) -> None:
            connector.write_records(entity, [NewRecord(None, value) for value in values])

        return send

    def make(self, connector: Connector, entity: str) -> None:
        connector.create_table(entity, columns("k BIGINT, v VARCHAR(20), b BYTES"), ["k"])

    def rows(self, connector: Connector, entity: str) -> list[dict[str, Any]]:
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=1)
        return [json.loads(r.value or b"") for r in read if r is not None]

    def test_the_life_of_an_entity(self, connector: Connector, entity: str) -> None:
        assert connector.find_entity(entity) is None
        assert connector.incarnation(entity) is None
        self.make(connector, entity)
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        assert [(c.name, str(c.type), c.native) for c in found.table.columns] == [
            ("k", "BIGINT", "Int64"),
            ("v", "VARCHAR(20)", "String"),
            ("b", "BYTES", "String"),
        ]
        assert (found.table.primary_key, found.table.unique) == (("k",), (("k",),))
        assert found.table.details["engine"] == "ReplacingMergeTree"
        assert entity in [e.name for e in connector.list_entities()]
        first = connector.incarnation(entity)
        assert first
        assert connector.incarnation(entity) == first
        self.make(connector, entity)
        for other, key in (("k BIGINT, v VARCHAR", ["k"]), ("k BIGINT, v VARCHAR(20), b BYTES", [])):
            with pytest.raises(StoreError) as caught:
                connector.create_table(entity, columns(other), key)
            assert caught.value.code == "entity-conflict"
        connector.update_entity(entity, {}, {})
        with pytest.raises(RequestError):
            connector.update_entity(entity, {}, {"ttl": "1"})
        connector.drop_entity(entity)
        assert connector.find_entity(entity) is None
        connector.drop_entity(entity)
        self.make(connector, entity)
        assert connector.incarnation(entity) not in (None, first)

    def test_what_the_server_refuses_is_said_in_its_words(self, connector: Connector, entity: str) -> None:
        with pytest.raises(StoreError, match="made of columns") as caught:
            connector.create_entity(entity, {}, {})
        assert caught.value.code == "store-rejected"
        for name in ("x" * 201, "a.", ".b", "system.t", "leatstream_batches", "a\nb"):
            with pytest.raises(StoreError) as caught:
                self.make(connector, name)
            assert caught.value.code == "store-rejected"
            assert connector.find_entity(name) is None
        with pytest.raises(StoreError, match="leat_twice") as caught:
            connector.create_table(entity, columns("leat_twice BIGINT, leat_twice BIGINT"), [])
        assert caught.value.code == "store-rejected"
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
        # A row is replaced whole.
        assert self.rows(connector, entity) == [
            {"k": 1, "v": "again", "b": None},
            {"k": 2, "v": None, "b": None},
        ]
        connector.write_records(entity, [NewRecord(None, b'{"k": 3, "b": "//4="}')])
        assert self.rows(connector, entity)[2] == {"k": 3, "v": None, "b": "//4="}

    def test_names_are_quoted(self, connector: Connector, entity: str) -> None:
        odd = f"{entity} `%s\\'\""
        connector.create_table(odd, columns('`a,\' \\ ``b` BIGINT, "50%%" BIGINT'), ["a,' \\ `b"])
        try:
            found = connector.find_entity(odd)
            assert found is not None
            assert found.table is not None
            assert found.table.primary_key == ("a,' \\ `b",)
            for n in (2, 3):
                value = json.dumps({"a,' \\ `b": 1, "50%%": n}).encode()
                connector.write_records(odd, [NewRecord(None, value)])
            assert self.rows(connector, odd) == [{"a,' \\ `b": 1, "50%%": 3}]
        finally:
            connector.drop_entity(odd)

    def test_a_refused_row_takes_the_others_with_it_and_no_value_is_told(
        self, connector: Connector, entity: str
    ) -> None:
        text = "k SMALLINT, day DATE, at TIMESTAMP, d DECIMAL(4, 2), b BYTES, l ARRAY<INTEGER>"
        connector.create_table(entity, columns(text), [])
        good = NewRecord(None, b'{"k": 1}')
        for bad, word in (
            ('{"k": "sesame"}', "column k: it cannot be read"),
            ('{"k": 32768}', "column k: it cannot be read"),
            ('{"k": true}', "column k: it cannot be read"),
            ('{"day": "1899-12-31"}', "column day: it is out of the range of Date32"),
            ('{"day": "2300-01-01"}', "column day: it is out of the range"),
            ('{"at": "1899-12-31 23:59:59"}', "column at: it is out of the range"),
            ('{"d": 1.005}', "column d: it cannot be read"),
            ('{"d": 100}', "column d: it cannot be read"),
            ('{"b": "sesame!"}', "column b: it cannot be read"),
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
        assert [json.loads(r.key or b"") for r in found] == [{"k": 3}, {"k": 7}]
        assert [json.loads(r.value or b"")["k"] for r in found] == [3, 7]
        assert len({r.offset for r in found}) == 2

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

    def test_a_text_that_is_none_is_not_shown_as_another_one(
        self, connector: Connector, entity: str, clickhouse: ClickHouseServer
    ) -> None:
        connector.create_table(entity, columns("v VARCHAR"), [])
        clickhouse.run(f"INSERT INTO shop.`{entity}` SELECT unhex('FF')")
        with pytest.raises(StoreError, match="not UTF-8"):
            self.rows(connector, entity)

    def test_it_tells_version_and_time_zone(self, connector: Connector) -> None:
        told = connector.about(5)
        assert int(told["server_version"].split(".")[0]) >= 25
        assert told["timezone"]

    def test_faults_of_the_address_are_told_apart(self, clickhouse: ClickHouseServer) -> None:
        for config, code, word in (
            ({"database": "nowhere"}, "store-rejected", "no such database"),
            ({"username": "nobody"}, "store-auth-failed", "login"),
            ({"secure": True}, "store-unreachable", "encryption"),
        ):
            with pytest.raises(StoreError, match=word) as caught:
                open_connector("clickhouse", "s", clickhouse.config(**config), SECRET).test(5)
            assert caught.value.code == code
            assert caught.value.faults[0].hint

    def test_databases_are_made_and_named(self, connector: Connector, clickhouse: ClickHouseServer) -> None:
        database = f"d_{uuid.uuid4().hex[:8]}"
        self.make(connector, f"{database}.orders")
        try:
            assert f"{database}.orders" in [e.name for e in connector.list_entities()]
            assert connector.canonical_entity("shop.orders") == "orders"
            assert connector.canonical_entity(f"{database}.orders") == f"{database}.orders"
            assert connector.canonical_entity("shop.a.b") == "shop.a.b"
        finally:
            clickhouse.run(f"DROP DATABASE {database}")

    @pytest.mark.parametrize(
        "text",
        """
        BOOLEAN; TINYINT; SMALLINT; INTEGER; BIGINT; FLOAT; DOUBLE; DECIMAL(20, 4); VARCHAR; VARCHAR(9); DATE; TIME;
        TIMESTAMP; TIMESTAMP_LTZ; BYTES; ARRAY<BIGINT>; MAP<VARCHAR, DOUBLE>; STRUCT<a BIGINT, "B" VARCHAR>
        """.strip().split(";"),
    )
    def test_a_made_column_is_read_back_as_it_was(self, connector: Connector, entity: str, text: str) -> None:
        kind = parse_type(text.strip())
        connector.create_table(entity, [Column("c", kind), Column("n", kind, not_null=True)], [])
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        made = [(c.type, c.native, c.not_null) for c in found.table.columns]
        assert made == [(kind, column_type(kind), False), (kind, column_type(kind), True)]
        assert connector.kept_type(kind) == kind

    def test_columns_of_other_types_and_kinds(
        self, connector: Connector, entity: str, clickhouse: ClickHouseServer
    ) -> None:
        clickhouse.run(
            f"CREATE TABLE shop.`{entity}` (a UUID, b LowCardinality(Nullable(String)), c UInt64, d Enum8('x' = 1),"
            " e DateTime('Europe/Berlin'), f Array(Nullable(Int32)), g Map(String, UInt8), h Decimal(50, 2),"
            " i Int64 MATERIALIZED c + 1, j Int64 DEFAULT 4, k Int64 EPHEMERAL, l Tuple(Int8, String))"
            " ENGINE = MergeTree ORDER BY (a, toDate(e))"
        )
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        read = {c.name: c for c in found.table.columns}
        assert {name: str(c.type) for name, c in read.items()} == {
            "a": "VARCHAR",
            "b": "VARCHAR",
            "c": "DECIMAL(20, 0)",
            "d": "VARCHAR",
            "e": "TIMESTAMP_LTZ",
            "f": "ARRAY<INTEGER>",
            "g": "MAP<VARCHAR, SMALLINT>",
            "h": "VARCHAR",
            "i": "BIGINT",
            "j": "BIGINT",
            "l": "VARCHAR",
        }
        assert (read["b"].not_null, read["a"].not_null, read["d"].enum) == (False, True, True)
        assert (read["i"].generated, read["j"].filled) == (True, True)
        assert found.table.primary_key == ()
        row = {"a": str(uuid.UUID(int=7)), "b": "x", "c": 2**64 - 1, "d": "x", "e": "2026-01-02T03:04:05Z"}
        row |= {"f": [1, None], "g": {"y": 255}, "h": "1.50"}
        connector.write_records(entity, [NewRecord(None, json.dumps(row).encode())])
        (there,) = self.rows(connector, entity)
        assert there == row | {
            "c": 2**64 - 1,
            "e": "2026-01-02 03:04:05Z",
            "h": "1.5",
            "i": 0,
            "j": 4,
            "l": '[0, ""]',
        }
        for bad, word in (
            ({"a": "sesame"}, "column a: it is no UUID"),
            ({"d": "sesame"}, "column d: it is none of the column's Enum"),
            ({"e": "2026-01-02T03:04:05.5Z"}, "column e: it has more digits of a second"),
            ({"e": "2107-01-01T00:00:00Z"}, "column e: it is out of the range"),
            ({"g": {"sesame": 256}}, "column g: it cannot be read"),
            ({"b": None, "c": None}, "column c: it is NULL"),
        ):
            with pytest.raises(StoreError, match=word) as caught:
                connector.write_records(entity, [NewRecord(None, json.dumps(bad).encode())])
            assert "sesame" not in str(caught.value)

    def test_the_client_can_be_missing(self, connector: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "clickhouse_connect", None)
        with pytest.raises(StoreError) as caught:
            connector.test(5)
        assert "[clickhouse]" in (caught.value.faults[0].hint or "")

    def test_a_query_is_forgotten(self, connector: Connector, clickhouse: ClickHouseServer) -> None:
        from leatstream.connectors.clickhouse import batches

        assert isinstance(connector, ClickHouseConnector)
        with connector.admin.client("a test", 5) as client:
            batches.make(client, "shop")
            for query, attempt, batch in (("q1", 2, 7), ("q1", 1, 9), ("q2", 1, 1)):
                batches.note(client, "shop", batches.Progress(query, "g1", attempt, batch, 5))
            # A later row of an older attempt does not count.
            assert batches.read(client, "shop", "q1") == batches.Progress("q1", "g1", 2, 7, 5)
            connector.forget_batches("q1", 5)
            assert batches.read(client, "shop", "q1") is None
            assert batches.read(client, "shop", "q2") is not None
            connector.forget_batches("q2", 5)

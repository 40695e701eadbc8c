"""Oracle against a double (``oracle_double``), and its client's refusals against listeners that say only no."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from conformance import ConnectorConformance, Produce
from oracle_double import PASSWORD, OracleDouble

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.oracle.lookup import OracleTableReader, look_up
from leatstream.connectors.oracle.types import column_type
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, LookupSpec, StoreRef

SECRET = {"password": PASSWORD}


def columns(text: str) -> list[Column]:
    struct_type = parse_type(f"STRUCT<{text}>")
    return [Column(n, t) for n, t in zip(struct_type.fields, struct_type.arguments, strict=True)]


def rows(connector: Connector, entity: str) -> list[dict[str, Any]]:
    read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=1)
    return [json.loads(r.value or b"") for r in read if r is not None]


class TestOracle(ConnectorConformance):
    size: ClassVar = {}
    configs: ClassVar = {}
    remote_calls = ("test", "list_entities", "about")

    @pytest.fixture
    def connector(self, oracle: OracleDouble) -> Connector:
        return open_connector("oracle", "s", oracle.config(), SECRET)

    @pytest.fixture
    def refused(self, oracle: OracleDouble) -> Connector:
        return open_connector("oracle", "s", oracle.config(), {"password": "wrong-password"})

    @pytest.fixture
    def unreachable(self) -> Iterator[Connector]:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            config = {"host": "127.0.0.1", "port": nobody.getsockname()[1], "service": "d", "username": "u"}
            yield open_connector("oracle", "s", config, SECRET)

    @pytest.fixture
    def produce(self, connector: Connector) -> Produce:
        def send(entity: str, values: Sequence[bytes]) -> None:
            records = [NewRecord(None, b'{"k": %s}' % value) for value in values]
            connector.write_records(entity, records)

        return send

    def make(self, connector: Connector, entity: str) -> None:
        connector.create_table(entity, columns("k BIGINT, v VARCHAR(20), b BYTES"), ["k"])

    def test_the_life_of_an_entity(self, connector: Connector, entity: str) -> None:
        assert connector.find_entity(entity) is None
        assert connector.incarnation(entity) is None
        self.make(connector, entity)
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        assert [(c.name, str(c.type), c.not_null) for c in found.table.columns] == [
            ("k", "BIGINT", True),
            ("v", "VARCHAR(20)", False),
            ("b", "BYTES", False),
        ]
        assert found.table.primary_key == ("k",)
        assert found.table.unique == (("k",),)
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
        connector.drop_entity(entity)
        assert connector.find_entity(entity) is None
        connector.drop_entity(entity)
        self.make(connector, entity)
        assert connector.incarnation(entity) not in (None, first)

    def test_what_the_server_refuses_is_said_in_its_words(self, connector: Connector, entity: str) -> None:
        with pytest.raises(StoreError, match="made of columns") as caught:
            connector.create_entity(entity, {}, {})
        assert caught.value.code == "store-rejected"
        for name in ("x" * 129, "a.", ".b", 'a"b', "leatstream_batches"):
            with pytest.raises(StoreError) as caught:
                self.make(connector, name)
            assert caught.value.code == "store-rejected"
            assert connector.find_entity(name) is None
        with pytest.raises(StoreError, match="LEAT_TWICE") as caught:
            connector.create_table(entity, columns("leat_twice BIGINT, leat_twice BIGINT"), [])
        assert caught.value.code == "store-rejected"
        with pytest.raises(StoreError, match="no schema") as caught:
            self.make(connector, "nobody.orders")
        assert connector.find_entity(entity) is None

    def test_what_a_statement_writes_is_there(self, connector: Connector, entity: str) -> None:
        record = NewRecord(None, b'{"k": 1, "v": "one", "b": "AAE="}')
        with pytest.raises(StoreError) as caught:
            connector.write_records(entity, [record])
        assert caught.value.code == "entity-not-found"
        self.make(connector, entity)
        connector.write_records(entity, [record, NewRecord(None, b'{"k": 2}')])
        connector.write_records(entity, [])
        connector.write_records(entity, [NewRecord(b"1", b'{"k": 1, "v": "again"}')])
        connector.write_records(entity, [NewRecord(b"3", b'{"k": 3}'), NewRecord(b"3", b'{"k": 3}')])
        assert rows(connector, entity) == [
            {"k": 1, "v": "again", "b": "AAE="},
            {"k": 2, "v": None, "b": None},
            {"k": 3, "v": None, "b": None},
        ]

    def test_a_refused_row_takes_the_others_with_it_and_no_value_is_told(
        self, connector: Connector, entity: str
    ) -> None:
        self.make(connector, entity)
        good = NewRecord(None, b'{"k": 1}')
        for bad, word in (
            ('{"k": 1}', "unique"),
            ('{"k": null}', "column k: it is NULL"),
            ('{"k": 3, "v": "sesame, and twenty letters"}', "column v: it is too long"),
            ('{"k": 3, "v": ""}', "column v: it is an empty text"),
            ('{"k": "sesame"}', "cannot be read"),
            ('{"other": 1}', "no column other"),
            ("[]", "JSON object"),
        ):
            with pytest.raises(StoreError, match=word) as caught:
                connector.write_records(entity, [good, NewRecord(None, bad.encode())])
            assert caught.value.code == "store-rejected"
            assert "sesame" not in str(caught.value)
            assert rows(connector, entity) == []

    def test_printing(self, connector: Connector, entity: str, produce: Produce) -> None:
        self.make(connector, entity)
        assert rows(connector, entity) == []
        produce(entity, [b"7", b"3", b"11"])
        read = connector.read_records(entity, from_beginning=True, limit=2, idle_timeout=None)
        found = [r for r in read if r is not None]
        assert [json.loads(r.key or b"") for r in found] == [{"k": 3}, {"k": 7}]
        assert len({r.offset for r in found}) == 2

    def test_printing_from_the_end_misses_nothing_that_comes_after(
        self, connector: Connector, entity: str, produce: Produce
    ) -> None:
        """A table has no end: what is there is shown, in any case, and then the reading ends."""
        self.make(connector, entity)
        produce(entity, [b"1"])
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

    @pytest.mark.parametrize(
        "text",
        [
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(20, 4)",
            "VARCHAR",
            "VARCHAR(9)",
            "TIMESTAMP",
            "TIMESTAMP_LTZ",
            "BYTES",
        ],
    )
    def test_a_made_column_is_read_back_as_it_was(self, connector: Connector, entity: str, text: str) -> None:
        kind = parse_type(text)
        connector.create_table(entity, [Column("c", kind)], [])
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        assert [(c.type, c.native) for c in found.table.columns] == [(kind, column_type(kind))]
        assert connector.kept_type(kind) == kind

    def test_names_fold_to_upper_case(self, connector: Connector, oracle: OracleDouble) -> None:
        entity = f"t_{uuid.uuid4().hex[:8]}"
        connector.create_table(entity, columns("`order` BIGINT, `Mixed` BIGINT"), ["order"])
        connector.write_records(entity, [NewRecord(None, b'{"order": 1, "Mixed": 2}')])
        try:
            assert oracle.run(f'SELECT "ORDER", "Mixed" FROM LEAT.{entity.upper()}') == [(1, 2)]
            assert rows(connector, entity) == [{"order": 1, "Mixed": 2}]
        finally:
            connector.drop_entity(entity)

    def test_a_column_that_oracle_fills_may_be_left_out(
        self, connector: Connector, oracle: OracleDouble
    ) -> None:
        oracle.run(
            "CREATE TABLE LEAT.FILLED (A NUMBER(9) GENERATED ALWAYS AS IDENTITY, B NUMBER(9) DEFAULT 4 NOT NULL,"
            " C NUMBER, D VARCHAR2(9) NOT NULL, UNIQUE (D))"
        )
        found = connector.find_entity("filled")
        assert found is not None
        assert found.table is not None
        read = {c.name: c for c in found.table.columns}
        assert (read["a"].generated, read["b"].filled, read["d"].filled) == (True, True, False)
        assert str(read["c"].type) == "VARCHAR"
        assert found.table.unique == (("d",),)
        connector.drop_entity("filled")


@pytest.mark.parametrize(("ttl", "numbered"), [(0, False), (60_000, True)])
def test_rows_are_looked_up_by_key(oracle: OracleDouble, ttl: int, numbered: bool) -> None:
    connector = open_connector("oracle", "s", oracle.config(), SECRET)
    entity = f"t_{uuid.uuid4().hex[:8]}"
    kinds = {"k": "BIGINT", "v": "VARCHAR", "z": "TIMESTAMP_LTZ"}
    connector.create_table(entity, columns(", ".join(f"{n} {t}" for n, t in kinds.items())), ["k"])
    moment = "2026-01-02T03:04:05Z"
    connector.write_records(
        entity,
        [NewRecord(None, json.dumps({"k": i, "v": f"n{i % 3}", "z": moment}).encode()) for i in range(1200)],
    )
    spec = LookupSpec(
        view="v",
        relation="r",
        store=StoreRef(name="s", kind="oracle", config={}),
        entity=entity,
        columns=[ColumnSpec(name=n, type=t) for n, t in kinds.items()],
        left="",
        keys=["k", "v"],
        values=[],
        cache_ttl_ms=ttl,
    )
    try:
        reader = connector.table_reader(spec)
        assert isinstance(reader, OracleTableReader)
        wanted = [(i, f"n{i % 3}") for i in range(0, 1100)] + [(5, "other"), (7, ""), (5000, "n0")]
        batch = pa.record_batch({"k0": [k for k, _ in wanted], "k1": [v for _, v in wanted]})
        for _ in range(2 if numbered else 1):
            found = [
                json.loads(text)
                for part in look_up(reader.target, iter([batch]))
                for text in part["value"].to_pylist()
            ]
            assert sorted(row["k"] for row in found) == list(range(1100))
            assert {row["z"] for row in found} == {"2026-01-02 03:04:05Z"}
    finally:
        connector.drop_entity(entity)


def test_rows_are_not_looked_up_by_a_large_object(oracle: OracleDouble) -> None:
    connector = open_connector("oracle", "s", oracle.config(), SECRET)
    entity = f"t_{uuid.uuid4().hex[:8]}"
    connector.create_table(entity, columns("v VARCHAR(5000)"), [])
    spec = LookupSpec(
        view="v",
        relation="r",
        store=StoreRef(name="s", kind="oracle", config={}),
        entity=entity,
        columns=[ColumnSpec(name="v", type="VARCHAR")],
        left="",
        keys=["v"],
        values=[],
    )
    with pytest.raises(StoreError, match="a CLOB is not compared"):
        connector.table_reader(spec)
    connector.drop_entity(entity)

"""Snowflake against its double: the connector, the protocol and the login are real, the engine is DuckDB."""

from __future__ import annotations

import json
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
from conformance import ConnectorConformance, Produce
from snowflake_server import PASSWORD, SnowflakeServer, new_key, pem

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type


def columns(text: str) -> list[Column]:
    struct = parse_type(f"STRUCT<{text}>")
    return [Column(n, t) for n, t in zip(struct.fields, struct.arguments, strict=True)]


class TestSnowflake(ConnectorConformance):
    size: ClassVar = {}
    configs: ClassVar = {}
    remote_calls = ("test", "list_entities", "about")

    @pytest.fixture
    def connector(self, snowflake: SnowflakeServer) -> Connector:
        return open_connector("snowflake", "s", snowflake.config(), snowflake.secrets)

    @pytest.fixture
    def refused(self, snowflake: SnowflakeServer) -> Connector:
        return open_connector("snowflake", "s", snowflake.config(), {"password": "wrong-password"})

    @pytest.fixture
    def unreachable(self) -> Iterator[Connector]:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            config = {"account": "a", "host": f"http://127.0.0.1:{nobody.getsockname()[1]}", "username": "u"}
            config |= {"warehouse": "w", "database": "d"}
            yield open_connector("snowflake", "s", config, {"password": "p"})

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
        """The double gives every table the same time of creation, which tells a table from a later one."""
        assert connector.find_entity(entity) is None
        assert connector.incarnation(entity) is None
        self.make(connector, entity)
        found = connector.find_entity(entity)
        assert found is not None
        assert found.name == entity
        assert found.table is not None
        assert [(c.name, str(c.type), c.not_null) for c in found.table.columns] == [
            ("k", "BIGINT", True),
            ("v", "VARCHAR(20)", False),
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
        for other, key in (("k BIGINT, v VARCHAR", ["k"]), ("k BIGINT, v VARCHAR(20), b BYTES", [])):
            with pytest.raises(StoreError) as caught:
                connector.create_table(entity, columns(other), key)
            assert caught.value.code == "entity-conflict"
        connector.update_entity(entity, {}, {})
        connector.drop_entity(entity)
        assert connector.find_entity(entity) is None
        assert connector.incarnation(entity) is None
        connector.drop_entity(entity)
        connector.drop_entity("no_such_schema.t")

    def test_what_the_server_refuses_is_said_in_its_words(self, connector: Connector, entity: str) -> None:
        with pytest.raises(StoreError, match="made of columns") as caught:
            connector.create_entity(entity, {}, {})
        assert caught.value.code == "store-rejected"
        for name in (
            "x" * 256,
            "a.",
            ".b",
            "a.b.c.d",
            'a"b',
            "information_schema.tables",
            "leatstream_batches",
        ):
            with pytest.raises(StoreError) as caught:
                self.make(connector, name)
            assert caught.value.code == "store-rejected"
            assert connector.find_entity(name) is None
        with pytest.raises(StoreError, match="cannot be called K"):
            connector.create_table(entity, columns('"K" BIGINT'), [])
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
        assert self.rows(connector, entity) == [
            {"k": 1, "v": "again", "b": None},
            {"k": 2, "v": None, "b": None},
        ]
        connector.write_records(entity, [NewRecord(b"2", b'{"k": 2, "b": "/w=="}')])
        assert self.rows(connector, entity)[1] == {"k": 2, "v": None, "b": "/w=="}

    def test_a_refused_row_takes_the_others_with_it_and_no_value_is_told(
        self, connector: Connector, entity: str
    ) -> None:
        """A NULL in a NOT NULL column and a text that is too long are not here: the double takes the latter."""
        self.make(connector, entity)
        good = NewRecord(None, b'{"k": 1}')
        for bad, word in (
            ('{"k": "sesame"}', "cannot be read"),
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

    def test_it_tells_its_version(self, connector: Connector) -> None:
        assert connector.about(5)["server_version"]

    def test_logins(self, snowflake: SnowflakeServer) -> None:
        locked = {"private_key": pem(snowflake.key, "pass"), "private_key_passphrase": "pass"}
        stale = {"private_key": pem(new_key()), "password": PASSWORD}
        for config, secrets in (
            ({}, locked),
            ({}, {"password": PASSWORD}),
            ({"login": "password"}, stale),
            ({"login": "key_pair"}, snowflake.secrets | {"password": "former"}),
        ):
            open_connector("snowflake", "s", snowflake.config(**config), secrets).test(10)
        for config, secrets, word in (
            ({}, {"private_key": pem(new_key())}, "refused the login"),
            ({"username": "eve"}, snowflake.secrets, "refused the login"),
            ({"role": "nobody"}, snowflake.secrets, "role nobody"),
            ({}, {}, "neither"),
            ({"login": "password"}, snowflake.secrets, "no password"),
        ):
            began = time.monotonic()
            with pytest.raises(StoreError, match=word) as caught:
                open_connector("snowflake", "s", snowflake.config(**config), secrets).test(5)
            assert caught.value.code == "store-auth-failed"
            assert caught.value.faults[0].hint
            assert "PRIVATE" not in str(caught.value)
            assert time.monotonic() - began < 15

    def test_names_fold(self, connector: Connector, snowflake: SnowflakeServer) -> None:
        schema = f"s_{uuid.uuid4().hex[:8]}"
        # A name of its own: the double mixes up the keys of tables of one name in several schemas.
        table = f"orders_{schema}"
        plain, mixed = f"{schema}.{table}", f"{schema}.Mixed Case"
        try:
            for name in (plain, mixed):
                connector.create_table(name, columns("`order` BIGINT, `Mixed` BIGINT"), ["order"])
            shown = snowflake.run(f"SHOW TERSE TABLES IN SCHEMA SHOP.{schema.upper()}")
            assert {row[1] for row in shown} == {table.upper(), "Mixed Case"}
            listed = [e.name for e in connector.list_entities()]
            assert plain in listed
            assert mixed in listed
            for name in (plain, plain.upper(), f"SHOP.{plain}", mixed):
                found = connector.find_entity(name)
                assert found is not None, name
                assert found.name == connector.canonical_entity(name)
                assert found.table is not None
                assert [c.name for c in found.table.columns] == ["order", "Mixed"]
            assert connector.canonical_entity("shop.PUBLIC.orders") == "orders"
            assert connector.canonical_entity("other.public.orders") == "other.public.orders"
        finally:
            snowflake.run(f"DROP SCHEMA IF EXISTS SHOP.{schema.upper()} CASCADE")

    def test_a_store_without_a_database(self, snowflake: SnowflakeServer, entity: str) -> None:
        config = {k: v for k, v in snowflake.config().items() if k != "database"}
        connector = open_connector("snowflake", "s", config, snowflake.secrets)
        with pytest.raises(StoreError, match="without its database"):
            connector.find_entity("orders")
        name = f"shop.public.t_{uuid.uuid4().hex[:8]}"
        connector.create_table(name, columns("a BIGINT"), [])
        assert name in [e.name for e in connector.list_entities()]
        connector.drop_entity(name)
        _, faults = connector.named_entity({}, "orders")
        assert [fault.name for fault in faults] == ["snowflake.db.name"]

    @pytest.mark.parametrize(
        "text",
        """
        BOOLEAN; TINYINT; SMALLINT; INTEGER; BIGINT; DOUBLE; DECIMAL(20, 4); VARCHAR; VARCHAR(9); DATE; TIME;
        TIMESTAMP; TIMESTAMP_LTZ; BYTES
        """.strip().split(";"),
    )
    def test_a_made_column_is_read_back_as_it_was(self, connector: Connector, entity: str, text: str) -> None:
        kind = parse_type(text.strip())
        connector.create_table(entity, [Column("c", kind)], [])
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        assert [c.type for c in found.table.columns] == [kind]

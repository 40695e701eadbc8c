"""PostgreSQL against a real server."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
from conformance import ConnectorConformance, Produce
from postgres_server import PASSWORD, PostgresServer

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.postgres.types import column_type
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

SECRET = {"password": PASSWORD}


def columns(text: str) -> list[Column]:
    struct = parse_type(f"STRUCT<{text}>")
    return [Column(n, t) for n, t in zip(struct.fields, struct.arguments, strict=True)]


class TestPostgres(ConnectorConformance):
    size: ClassVar = {}
    configs: ClassVar = {"replica.identity": "full"}
    remote_calls = ("test", "list_entities", "about")

    @pytest.fixture
    def connector(self, postgres: PostgresServer) -> Connector:
        return open_connector("postgres", "s", postgres.config(), SECRET)

    @pytest.fixture
    def refused(self, postgres: PostgresServer) -> Connector:
        return open_connector("postgres", "s", postgres.config(), {"password": "wrong-password"})

    @pytest.fixture
    def unreachable(self) -> Iterator[Connector]:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            config = {"host": "127.0.0.1", "port": nobody.getsockname()[1], "database": "d", "username": "u"}
            yield open_connector("postgres", "s", config)

    @pytest.fixture
    def produce(self, postgres: PostgresServer) -> Produce:
        def send(entity: str, values: Sequence[bytes]) -> None:
            with postgres.connect() as connection:
                for value in values:
                    connection.execute(f'INSERT INTO "{entity}" (v) VALUES (%s)', (value.decode(),))

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
        assert found.configs == {"replica.identity": "default"}
        assert found.table.details["bytes"]
        assert entity in [e.name for e in connector.list_entities()]
        first = connector.incarnation(entity)
        assert first
        assert connector.incarnation(entity) == first
        self.make(connector, entity)
        for other, key in (("k BIGINT, v VARCHAR", ["k"]), ("k BIGINT, v VARCHAR(20), b BYTES", [])):
            with pytest.raises(StoreError) as caught:
                connector.create_table(entity, columns(other), key)
            assert caught.value.code == "entity-conflict"
        connector.update_entity(entity, {}, self.configs)
        found = connector.find_entity(entity)
        assert found is not None
        assert found.configs == self.configs
        connector.update_entity(entity, {}, {})
        found = connector.find_entity(entity)
        assert found is not None
        assert found.configs == {"replica.identity": "default"}
        connector.drop_entity(entity)
        assert connector.find_entity(entity) is None
        connector.drop_entity(entity)
        self.make(connector, entity)
        assert connector.incarnation(entity) not in (None, first)

    def test_what_the_server_refuses_is_said_in_its_words(self, connector: Connector, entity: str) -> None:
        with pytest.raises(StoreError, match="made of columns") as caught:
            connector.create_entity(entity, {}, {})
        assert caught.value.code == "store-rejected"
        for name in ("x" * 64, "a.", ".b", "pg_catalog.t", "leatstream_batches"):
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
        assert self.rows(connector, entity) == [
            {"k": 1, "v": "again", "b": "\\x0001"},
            {"k": 2, "v": None, "b": None},
        ]

    def test_a_percent_sign_in_a_name_is_a_part_of_it(self, connector: Connector, entity: str) -> None:
        connector.create_table(f"{entity}%s", columns("`off %` BIGINT, `50%%` BIGINT"), ["off %"])
        for value in (b'{"off %": 1, "50%%": 2}', b'{"off %": 1, "50%%": 3}'):
            connector.write_records(f"{entity}%s", [NewRecord(b"1", value)])
        assert self.rows(connector, f"{entity}%s") == [{"off %": 1, "50%%": 3}]

    def test_a_refused_row_takes_the_others_with_it_and_no_value_is_told(
        self, connector: Connector, entity: str
    ) -> None:
        self.make(connector, entity)
        good = NewRecord(None, b'{"k": 1}')
        for bad, word in (
            ('{"k": 1}', "constraint"),
            ('{"k": null}', "column k"),
            ('{"k": 3, "v": "sesame, and twenty letters"}', "too long"),
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
        numbers = [7, 3, 11]
        connector.write_records(entity, [NewRecord(None, b'{"k": %d, "v": "x"}' % n) for n in numbers])
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
        connector.write_records(entity, [NewRecord(None, b'{"k": 1}')])
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

    def test_it_tells_version_and_log_level(self, connector: Connector) -> None:
        told = connector.about(5)
        assert told["wal_level"] == "logical"
        assert int(told["server_version"].split(".")[0]) >= 13

    def test_an_unknown_database_is_told_apart(self, postgres: PostgresServer) -> None:
        for config, code, word in (
            ({"database": "nowhere"}, "store-rejected", "no database nowhere"),
            ({"username": "nobody"}, "store-auth-failed", "login"),
            ({"ssl_mode": "require"}, "store-unreachable", "SSL"),
        ):
            with pytest.raises(StoreError, match=word) as caught:
                open_connector("postgres", "s", postgres.config(**config), SECRET).test(5)
            assert caught.value.code == code
            assert caught.value.faults[0].hint

    def test_schemas_are_made_and_named(self, connector: Connector, postgres: PostgresServer) -> None:
        schema = f"s_{uuid.uuid4().hex[:8]}"
        self.make(connector, f"{schema}.orders")
        try:
            assert f"{schema}.orders" in [e.name for e in connector.list_entities()]
            assert connector.canonical_entity("public.orders") == "orders"
            assert connector.canonical_entity(f"{schema}.orders") == f"{schema}.orders"
            assert connector.canonical_entity("public.a.b") == "public.a.b"
        finally:
            with postgres.connect() as connection:
                connection.execute(f"DROP SCHEMA {schema} CASCADE")

    def test_a_user_without_rights_is_told_so(self, connector: Connector, postgres: PostgresServer) -> None:
        with postgres.connect() as connection:
            connection.execute("CREATE TABLE secret_plans (k bigint)")
        try:
            with pytest.raises(StoreError, match="permission denied") as caught:
                connector.write_records("secret_plans", [NewRecord(None, b'{"k": 1}')])
            assert caught.value.code == "store-auth-failed"
        finally:
            with postgres.connect() as connection:
                connection.execute("DROP TABLE secret_plans")

    @pytest.mark.parametrize(
        "text",
        """
        BOOLEAN; SMALLINT; INTEGER; BIGINT; FLOAT; DOUBLE; DECIMAL(20, 4); VARCHAR; VARCHAR(9); DATE; TIME;
        TIMESTAMP; TIMESTAMP_LTZ; BYTES; ARRAY<BIGINT>; ARRAY<VARCHAR(9)>
        """.strip().split(";"),
    )
    def test_a_made_column_is_read_back_as_it_was(self, connector: Connector, entity: str, text: str) -> None:
        kind = parse_type(text.strip())
        connector.create_table(entity, [Column("c", kind)], [])
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        assert [(c.type, c.native) for c in found.table.columns] == [(kind, column_type(kind))]

    def test_columns_of_other_types_are_told_as_text(
        self, connector: Connector, entity: str, postgres: PostgresServer
    ) -> None:
        text = (
            "a uuid, b jsonb, c numeric, d inet, e mood, f cents NOT NULL, g bigint GENERATED ALWAYS AS IDENTITY,"
            " h bigint DEFAULT 4, i timestamptz(3), j int[][], k char(3)"
        )
        with postgres.connect() as connection:
            connection.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
            connection.execute("CREATE DOMAIN cents AS numeric(12, 2) CHECK (VALUE > 0)")
            connection.execute(f'CREATE TABLE "{entity}" ({text})')
        found = connector.find_entity(entity)
        assert found is not None
        assert found.table is not None
        read = {c.name: c for c in found.table.columns}
        assert {name: str(c.type) for name, c in read.items()} == {
            "a": "VARCHAR",
            "b": "VARCHAR",
            "c": "VARCHAR",
            "d": "VARCHAR",
            "e": "VARCHAR",
            "f": "DECIMAL(12, 2)",
            "g": "BIGINT",
            "h": "BIGINT",
            "i": "TIMESTAMP_LTZ",
            "j": "ARRAY<INTEGER>",
            "k": "VARCHAR",
        }
        assert (read["e"].enum, read["f"].not_null, read["g"].generated, read["h"].filled) == (True,) * 4
        with postgres.connect() as connection:
            connection.execute(f'DROP TABLE "{entity}"')
            connection.execute("DROP TYPE mood")
            connection.execute("DROP DOMAIN cents")

    def rows(self, connector: Connector, entity: str) -> list[dict[str, Any]]:
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=1)
        return [json.loads(r.value or b"") for r in read if r is not None]

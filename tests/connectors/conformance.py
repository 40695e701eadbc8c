"""What every store kind must do, against a real server. A kind subclasses it and provides the fixtures."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import NewRecord
from leatstream.errors import StoreError

Produce = Callable[[str, Sequence[bytes]], None]


class ConnectorConformance:
    """The suite. ``size`` and ``bigger`` are two legal sets of entity properties, one after growth."""

    size: Mapping[str, int]
    bigger: Mapping[str, int]
    configs: Mapping[str, str]
    other_configs: Mapping[str, str]
    impossible: tuple[Mapping[str, int], str] | None
    """Properties that the server refuses, and a word of its reason; None where entities have none."""
    illegal_name: str
    remote_calls: Sequence[str] = ("test", "list_entities", "property_limits")
    """Calls that ask the server."""
    shrinks: bool = False
    """Whether the kind can go back from ``bigger`` to ``size``."""
    identities: bool = True
    """Whether an entity can be told from a later one of the same name."""
    keyless: bool = True
    """Whether a record can have no key, and no value; else it gets a key of its own and an empty value."""
    writes: bool = True
    """Whether a statement can write records; else it is refused in words."""

    @pytest.fixture
    def connector(self) -> Connector:
        """A connector that may do everything."""
        raise NotImplementedError

    @pytest.fixture
    def refused(self) -> Connector:
        """The same server with wrong credentials."""
        raise NotImplementedError

    @pytest.fixture
    def unreachable(self) -> Connector:
        """A connector to an address where nothing listens."""
        raise NotImplementedError

    @pytest.fixture
    def produce(self) -> Produce:
        """Writes values to an entity."""
        raise NotImplementedError

    @pytest.fixture
    def entity(self, connector: Connector) -> Iterator[str]:
        name = f"e-{uuid.uuid4().hex[:8]}"
        yield name
        connector.drop_entity(name)

    def test_the_class_says_what_it_can_do(self, connector: Connector) -> None:
        declared = {p.name for p in connector.entity_properties}
        assert set(self.size) == declared
        assert connector.kind
        assert connector.capabilities.source or connector.capabilities.sink

    @pytest.mark.core
    def test_it_can_be_reached(self, connector: Connector) -> None:
        connector.test(10)

    def test_a_refused_login_is_told_apart_and_in_time(self, refused: Connector) -> None:
        begin = time.monotonic()
        with pytest.raises(StoreError) as caught:
            refused.test(8)
        assert caught.value.code == "store-auth-failed"
        assert time.monotonic() - begin < 20
        for secret in ("wrong-password", "Traceback"):
            assert secret not in str(caught.value)

    def test_an_unreachable_server_is_said_in_time(self, unreachable: Connector) -> None:
        for call in self.remote_calls:
            begin = time.monotonic()
            with pytest.raises(StoreError) as caught:
                getattr(unreachable, call)(1.0)
            assert caught.value.code == "store-unreachable"
            assert caught.value.retryable
            assert caught.value.faults[0].hint
            assert time.monotonic() - begin < 15

    @pytest.mark.core
    def test_the_life_of_an_entity(self, connector: Connector, entity: str) -> None:
        assert connector.find_entity(entity) is None
        assert connector.incarnation(entity) is None
        connector.create_entity(entity, self.size, self.configs)
        found = connector.find_entity(entity)
        assert found is not None
        assert (found.name, dict(found.properties), dict(found.configs)) == (entity, self.size, self.configs)
        assert entity in [e.name for e in connector.list_entities()]
        first = connector.incarnation(entity)
        assert first
        assert connector.incarnation(entity) == first

        connector.create_entity(entity, self.size, self.configs)
        if self.bigger != self.size:
            with pytest.raises(StoreError) as caught:
                connector.create_entity(entity, self.bigger, self.configs)
            assert caught.value.code == "entity-conflict"

        connector.update_entity(entity, self.bigger, self.other_configs)
        found = connector.find_entity(entity)
        assert found is not None
        assert (dict(found.properties), dict(found.configs)) == (self.bigger, self.other_configs)
        connector.update_entity(entity, self.bigger, self.other_configs)
        if self.shrinks:
            connector.update_entity(entity, self.size, self.other_configs)
            shrunk = connector.find_entity(entity)
            assert shrunk is not None
            assert dict(shrunk.properties) == self.size
        else:
            with pytest.raises(StoreError) as caught:
                connector.update_entity(entity, self.size, self.other_configs)
            assert caught.value.code == "store-rejected"

        connector.drop_entity(entity)
        assert connector.find_entity(entity) is None
        connector.drop_entity(entity)
        connector.create_entity(entity, self.size, {})
        later = connector.incarnation(entity)
        assert later
        assert (later != first) is self.identities

    def test_what_the_server_refuses_is_said_in_its_words(self, connector: Connector, entity: str) -> None:
        if self.impossible is not None:
            properties, word = self.impossible
            with pytest.raises(StoreError) as caught:
                connector.create_entity(entity, properties, {})
            assert caught.value.code == "store-rejected"
            assert word in caught.value.detail.lower()
            assert connector.find_entity(entity) is None
        with pytest.raises(StoreError) as caught:
            connector.create_entity(self.illegal_name, self.size, {})
        assert caught.value.code == "store-rejected"
        assert connector.find_entity(self.illegal_name) is None

    def test_limits_are_the_servers_own(self, connector: Connector) -> None:
        for name, limit in connector.property_limits().items():
            assert name in self.size
            assert limit >= self.size[name]

    def test_changing_what_is_not_there(self, connector: Connector) -> None:
        with pytest.raises(StoreError) as caught:
            connector.update_entity("not-there", self.size, {})
        assert caught.value.code == "entity-not-found"
        with pytest.raises(StoreError) as caught:
            list(connector.read_records("not-there", from_beginning=True, limit=1, idle_timeout=1))
        assert caught.value.code == "entity-not-found"

    @pytest.mark.core
    def test_what_a_statement_writes_is_there(self, connector: Connector, entity: str) -> None:
        records = [NewRecord(b"k%d" % (i % 3), b"%d" % i) for i in range(50)] + [NewRecord(None, None)]
        if not self.writes:
            connector.create_entity(entity, self.size, {})
            with pytest.raises(StoreError, match="cannot be written") as refused:
                connector.write_records(entity, records)
            assert refused.value.code == "store-rejected"
            return
        with pytest.raises(StoreError) as caught:
            connector.write_records(entity, records)
        assert caught.value.code == "entity-not-found"
        assert connector.find_entity(entity) is None
        connector.create_entity(entity, self.size, {})
        connector.write_records(entity, records)
        connector.write_records(entity, [])
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=1)
        found = [r for r in read if r is not None]
        if not self.keyless:
            (bare,) = [r for r in found if not r.value]
            assert bare.key
            found.remove(bare)
            records = records[:-1]
        assert sorted((r.key or b"", r.value or b"") for r in found) == sorted(
            (r.key or b"", r.value or b"") for r in records
        )
        for key in (b"k0", b"k1", b"k2"):
            mine = [r for r in found if r.key == key]
            assert len({r.partition for r in mine}) == 1
            assert [int(r.value or b"") for r in mine] == sorted(int(r.value or b"") for r in mine)

    def test_writing_to_what_does_not_answer_ends(self, unreachable: Connector) -> None:
        with pytest.raises(StoreError) as caught:
            unreachable.write_records("anything", [NewRecord(None, b"x")], 1.0)
        assert caught.value.code == ("store-unreachable" if self.writes else "store-rejected")

    @pytest.mark.core
    def test_printing(self, connector: Connector, entity: str, produce: Produce) -> None:
        connector.create_entity(entity, self.size, {})
        empty = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=0.5)
        assert [r for r in empty if r is not None] == []
        produce(entity, [b"%d" % i for i in range(20)])
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=1)
        found = [r for r in read if r is not None]
        assert sorted(int(r.value or b"") for r in found) == list(range(20))
        assert all(r.timestamp for r in found)
        assert len({(r.partition, r.offset) for r in found}) == 20
        some = connector.read_records(entity, from_beginning=True, limit=3, idle_timeout=5)
        assert len([r for r in some if r is not None]) == 3

    def test_printing_from_the_end_misses_nothing_that_comes_after(
        self, connector: Connector, entity: str, produce: Produce
    ) -> None:
        connector.create_entity(entity, self.size, {})
        produce(entity, [b"before"])
        reading = connector.read_records(entity, from_beginning=False, limit=2, idle_timeout=20)
        assert next(reading) is None
        produce(entity, [b"after", b"later"])
        assert {r.value for r in reading if r is not None} == {b"after", b"later"}

    def test_printing_ends_when_the_entity_goes(
        self, connector: Connector, entity: str, produce: Produce
    ) -> None:
        connector.create_entity(entity, self.size, {})
        reading = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=60)
        assert next(reading) is None
        connector.drop_entity(entity)
        with pytest.raises(StoreError) as caught:
            list(reading)
        assert caught.value.code == "entity-not-found"

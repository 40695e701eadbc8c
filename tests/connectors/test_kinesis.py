"""Kinesis against moto's server."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import boto3
import pytest
from aws_server import REGION, aws_server, check_logins
from conformance import ConnectorConformance, Produce
from kinesis_aggregate import aggregate

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.connectors.kinesis import records as kinesis_records
from leatstream.connectors.kinesis.connector import KinesisConnector
from leatstream.connectors.registry import open_connector
from leatstream.errors import RequestError, StoreError
from leatstream.plan.job_spec import SourceSpec, StoreRef


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        yield address


def config(address: str, **more: Any) -> dict[str, Any]:
    return {"region": REGION, "endpoint_url": address, "access_key_id": "AKIAEXAMPLE"} | more


SECRET = {"secret_access_key": "a-secret"}


class TestKinesis(ConnectorConformance):
    size: ClassVar = {"topic.shards": 2}
    bigger: ClassVar = {"topic.shards": 3}
    configs: ClassVar = {"retention.hours": "48"}
    other_configs: ClassVar = {"retention.hours": "36"}
    impossible = ({"topic.shards": 0}, "shardcount")
    illegal_name = "no stream / name"
    # Limits are not asked for: AWS tells its quota when it is reached.
    remote_calls = ("test", "list_entities", "find_entity_e")
    shrinks = True
    keyless = False

    @pytest.fixture
    def connector(self, aws: str) -> Connector:
        return open_connector("kinesis", "s", config(aws), SECRET)

    @pytest.fixture
    def refused(self, aws: str) -> Iterator[Connector]:
        check_logins(aws, 0)
        yield open_connector("kinesis", "s", config(aws), {"secret_access_key": "wrong-password"})
        check_logins(aws, -1)

    @pytest.fixture
    def unreachable(self) -> Connector:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        connector = open_connector("kinesis", "s", config(address), SECRET)
        connector.find_entity_e = lambda timeout: connector.find_entity("e", timeout)  # type: ignore[attr-defined]
        return connector

    @pytest.fixture
    def produce(self, aws: str) -> Produce:
        client = boto3.client(
            "kinesis",
            region_name=REGION,
            endpoint_url=aws,
            aws_access_key_id="x",
            aws_secret_access_key="y",
        )

        def send(entity: str, values: Sequence[bytes]) -> None:
            entries = [{"PartitionKey": f"k{i}", "Data": value} for i, value in enumerate(values)]
            answer = client.put_records(StreamName=entity, Records=entries)
            assert answer["FailedRecordCount"] == 0

        return send

    def test_a_stream_on_demand_has_no_fixed_number_of_shards(
        self, connector: Connector, entity: str
    ) -> None:
        assert isinstance(connector, KinesisConnector)
        assert connector.needed_properties({"stream.mode": "ON_DEMAND"}) == ()
        connector.create_entity(entity, {}, {"stream.mode": "ON_DEMAND"})
        found = connector.find_entity(entity)
        assert found is not None
        assert (found.properties, found.configs) == ({"topic.shards": None}, {"stream.mode": "ON_DEMAND"})
        connector.create_entity(entity, {}, {"stream.mode": "ON_DEMAND"})
        with pytest.raises(StoreError) as caught:
            connector.create_entity(entity, {"topic.shards": 1}, {})
        assert caught.value.code == "entity-conflict"
        connector.update_entity(entity, {}, {})
        found = connector.find_entity(entity)
        assert found is not None
        assert (found.properties, found.configs) == ({"topic.shards": 4}, {})

    def test_too_great_a_step_is_refused_before_anything_changes(
        self, connector: Connector, entity: str
    ) -> None:
        connector.create_entity(entity, {"topic.shards": 4}, {})
        for wanted, first in ((9, "8"), (1, "2")):
            with pytest.raises(StoreError) as caught:
                connector.update_entity(entity, {"topic.shards": wanted}, {"retention.hours": "48"})
            assert caught.value.code == "store-rejected"
            assert first in str(caught.value.faults[0].hint)
        found = connector.find_entity(entity)
        assert found is not None
        assert not found.configs

    def test_settings_of_other_kinds_are_refused_all_at_once(self, connector: Connector) -> None:
        with pytest.raises(RequestError) as caught:
            connector.create_entity("e", {"topic.shards": 1}, {"retention.ms": "5", "retention.hours": "2"})
        assert len(caught.value.faults) == 2

    def test_printing_goes_on_in_the_shards_of_a_split(
        self, connector: Connector, entity: str, produce: Produce
    ) -> None:
        connector.create_entity(entity, {"topic.shards": 1}, {})
        produce(entity, [b"%d" % i for i in range(10)])
        connector.update_entity(entity, {"topic.shards": 2}, {})
        produce(entity, [b"%d" % i for i in range(10, 20)])
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=0.5)
        values = {int(r.value or b"") for r in read if r is not None}
        assert values >= set(range(10, 20))

    def test_a_record_is_found_again(self, connector: Connector, entity: str, produce: Produce) -> None:
        connector.create_entity(entity, {"topic.shards": 1}, {})
        produce(entity, [b"first", aggregate([("k", b"one"), ("k", b"two")]), b"last"])
        read = connector.read_records(entity, from_beginning=True, limit=4, idle_timeout=5)
        wanted = [record for record in read if record is not None]
        found = [connector.find_record(entity, str(r.partition), str(r.offset), 5.0) for r in wanted]
        assert [r.value for r in found if r is not None] == [b"first", b"one", b"two", b"last"]
        assert connector.find_record(entity, str(wanted[1].partition), f"{wanted[1].offset}9", 5.0) is None

    def test_reading_begins_at_a_time_and_in_one_shard(
        self, connector: Connector, entity: str, produce: Produce, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And the newest records are found without reading those of the beginning."""
        begun: list[str] = []
        ask = kinesis_records._iterator

        def asked(admin: Any, stream: str, shard: str, place: dict[str, Any]) -> str:
            begun.append(place["ShardIteratorType"])
            return ask(admin, stream, shard, place)

        monkeypatch.setattr(kinesis_records, "_iterator", asked)
        connector.create_entity(entity, {"topic.shards": 2}, {})
        produce(entity, [b"old %d" % i for i in range(20)])
        time.sleep(0.05)  # so that no two records of both have one millisecond
        since = int(time.time() * 1000)
        produce(entity, [b"new %d" % i for i in range(20)])

        def read(start: RecordsFrom) -> list[Record]:
            found = connector.read_part(entity, start, limit=None, idle_timeout=0.5)
            return [record for record in found if record is not None]

        fresh = read(RecordsFrom(since=since))
        assert {r.value for r in fresh} == {b"new %d" % i for i in range(20)}
        shard = str(fresh[0].partition)
        alone = read(RecordsFrom(since=since, partition=shard))
        assert alone == [r for r in fresh if r.partition == shard]
        store = StoreRef(name="s", kind="kinesis", config={})
        source = SourceSpec(
            view="v", relation="d.s.r", store=store, entity=entity, columns=[], value_format="json"
        )
        found = connector.sample_records(source, newest=True, limit=10, timeout=20.0)
        assert found.whole
        assert len(found.records) == 10
        assert all((r.value or b"").startswith(b"new") for r in found.records)
        assert set(begun) == {"AT_TIMESTAMP"}

    def test_a_role_is_taken_on_with_its_external_id(
        self, aws: str, entity: str, connector: Connector, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws)
        role = "arn:aws:iam::123456789012:role/leatstream"
        other = open_connector("kinesis", "s", config(aws, role_arn=role, external_id="agreed"), SECRET)
        connector.create_entity(entity, self.size, {})
        assert other.find_entity(entity) is not None

    def test_without_any_credentials_it_says_so(self, aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        begin = time.monotonic()
        with pytest.raises(StoreError) as caught:
            open_connector("kinesis", "s", {"region": REGION, "endpoint_url": aws}).test(3)
        assert caught.value.code == "store-auth-failed"
        assert "access_key_id" in str(caught.value.faults[0].hint)
        assert time.monotonic() - begin < 15

    def test_a_reader_replays_a_batch_exactly_with_and_without_its_files(
        self, connector: Connector, entity: str, produce: Produce, tmp_path: Path
    ) -> None:
        from leatstream.connectors.kinesis.source import KinesisReader, SourcePlan

        assert isinstance(connector, KinesisConnector)
        connector.create_entity(entity, {"topic.shards": 2}, {})
        produce(entity, [b"%d" % i for i in range(400)])
        plan = SourcePlan("s", connector.settings, entity, "earliest", None, 300, str(tmp_path))
        reader = KinesisReader(plan)
        first = reader.initialOffset()
        middle = reader.latestOffset(first, reader.getDefaultReadLimit())
        produce(entity, [b"%d" % i for i in range(400, 500)])
        last = reader.latestOffset(middle, reader.getDefaultReadLimit())
        ends = [first, middle, last, reader.latestOffset(last, reader.getDefaultReadLimit())]

        def read(by: KinesisReader, start: Any, end: Any) -> list[int]:
            batches = [b for p in by.partitions(start, end) for b in by.read(p)]
            return [int(v) for batch in batches for v in batch.column("value").to_pylist()]

        from_files = [read(reader, *ends[i : i + 2]) for i in range(3)]
        assert all(len(numbers) <= 300 for numbers in from_files)
        assert sorted(n for numbers in from_files for n in numbers) == list(range(500))
        again = KinesisReader(plan)
        assert [read(again, *ends[i : i + 2]) for i in range(3)] == from_files
        assert list(tmp_path.rglob("*.arrow"))
        reader.commit(ends[1])
        assert read(reader, *ends[1:3]) == from_files[1]
        reader.commit(ends[3])
        assert not list(tmp_path.rglob("*.arrow"))
        reader.stop()
        again.stop()
        assert not list(tmp_path.iterdir())

    def test_a_reader_says_that_its_stream_was_made_anew(
        self, connector: Connector, entity: str, produce: Produce, tmp_path: Path
    ) -> None:
        from leatstream.connectors.kinesis.source import KinesisReader, SourcePlan

        assert isinstance(connector, KinesisConnector)
        connector.create_entity(entity, self.size, {})
        plan = SourcePlan("s", connector.settings, entity, "latest", None, 300, str(tmp_path))
        start = KinesisReader(plan).initialOffset()
        connector.drop_entity(entity)
        connector.create_entity(entity, self.size, {})
        reader = KinesisReader(plan)
        with pytest.raises(RuntimeError, match=r"LEAT_STORE source entity-not-found .* created again"):
            reader.latestOffset(start, reader.getDefaultReadLimit())

"""S3 against moto's server."""

from __future__ import annotations

import gzip
import io
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aws_server import REGION, aws_server, bucket, check_logins, s3_of
from botocore.exceptions import ClientError
from conformance import ConnectorConformance, Produce

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import open_connector
from leatstream.connectors.s3 import admin as s3_admin
from leatstream.connectors.s3 import source as s3_source
from leatstream.connectors.s3.connector import S3Connector
from leatstream.errors import RequestError, StoreError
from leatstream.formats.record_rows import RowReader
from leatstream.plan.job_spec import ColumnSpec, SourceSpec, StoreRef


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        bucket(address, "data")
        yield address


def config(address: str, **more: Any) -> dict[str, Any]:
    return {
        "region": REGION,
        "endpoint_url": address,
        "access_key_id": "AKIAEXAMPLE",
        "bucket": "data",
        "prefix": "team/raw",
    } | more


SECRET = {"secret_access_key": "a-secret"}


class TestS3(ConnectorConformance):
    size: ClassVar = {}
    bigger: ClassVar = {}
    configs: ClassVar = {}
    other_configs: ClassVar = {}
    impossible = None
    illegal_name = "no/directory"
    # Limits are not asked for: there are none.
    remote_calls = ("test", "list_entities", "find_entity_e")
    shrinks = True
    writes = False
    identities = False

    @pytest.fixture
    def connector(self, aws: str) -> Connector:
        return open_connector("s3", "s", config(aws), SECRET)

    @pytest.fixture
    def refused(self, aws: str) -> Iterator[Connector]:
        check_logins(aws, 0)
        yield open_connector("s3", "s", config(aws), {"secret_access_key": "wrong-password"})
        check_logins(aws, -1)

    @pytest.fixture
    def unreachable(self) -> Connector:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        connector = open_connector("s3", "s", config(address), SECRET)
        connector.find_entity_e = lambda timeout: connector.find_entity("e", timeout)  # type: ignore[attr-defined]
        return connector

    @pytest.fixture
    def produce(self, aws: str) -> Produce:
        def send(entity: str, values: Sequence[bytes]) -> None:
            put(aws, f"{entity}/{uuid.uuid4().hex}.json", b"\n".join(values) + b"\n")

        return send

    def test_a_sample_is_read_as_the_relation_says(self, aws: str, connector: Connector, entity: str) -> None:
        """From the newest file back, or from the oldest on; with the reason where a row is none."""
        put(aws, f"{entity}/a.csv", b"id;price\n1;1,5\n2;2.5\n")
        put(aws, f"{entity}/b.csv", b"id;price\n3;3,5\n")
        source = SourceSpec(
            view="v",
            relation="d.s.r",
            store=StoreRef(name="s", kind="s3", config={}),
            entity=entity,
            columns=[ColumnSpec(name="id", type="BIGINT"), ColumnSpec(name="price", type="DECIMAL(4, 2)")],
            value_format="csv",
            options={"s3.csv.delimiter": ";", "s3.csv.decimal.comma": "true"},
        )

        def sampled(newest: bool, limit: int) -> list[str]:
            reader = RowReader(source, "json", None, True)
            found = connector.sample_records(source, newest=newest, limit=limit, timeout=20.0)
            assert found.whole
            rows = [one.fault or reader.row(None, one.value, (), None, 0)["price"] for one in found.records]
            return [str(one) for one in rows]

        point = "column price: a fraction has a point and no decimal comma"
        assert sampled(newest=False, limit=2)[0] == "1.5"
        assert sampled(newest=True, limit=1) == ["3.5"]
        assert sampled(newest=True, limit=9) == ["1.5", point, "3.5"]

    def test_what_a_directory_holds_is_told(self, aws: str, connector: Connector, entity: str) -> None:
        put(aws, f"{entity}/a.parquet", b"123")
        put(aws, f"{entity}/day=1/b.parquet", b"45")
        put(aws, f"{entity}/day=1/_SUCCESS", b"x")
        put(aws, f"{entity}/.hidden/c.json", b"x")
        found = connector.find_entity(entity)
        assert found is not None
        assert found.details == {"files": 2, "bytes": 5, "format": "parquet"}
        assert not found.properties
        assert not found.configs

    def test_every_format_prints_as_json(self, aws: str, connector: Connector, entity: str) -> None:
        table = pa.table({"id": pa.array([1, 2]), "name": pa.array(["ä", None])})
        out = io.BytesIO()
        pq.write_table(table, out)
        lines = b'{"id": 1, "name": "\xc3\xa4"}\n\n{"id": 2, "name": null}\n'
        put(aws, f"{entity}/1.json", lines)
        put(aws, f"{entity}/2.jsonl.gz", gzip.compress(lines))
        put(aws, f"{entity}/3.csv", 'id,name\n1,"ä"\n2,\n'.encode())
        put(aws, f"{entity}/4.parquet", out.getvalue())
        put(aws, f"{entity}/5.parquet", out.getvalue()[:-9])
        put(aws, f"{entity}/6.json.gz", gzip.compress(lines)[:-12])
        avro = io.BytesIO()
        record = {
            "type": "record",
            "name": "R",
            "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
        }
        fastavro.writer(avro, record, [{"id": 1, "name": "ä"}, {"id": 2, "name": None}], codec="deflate")
        put(aws, f"{entity}/4.avro", avro.getvalue())
        put(aws, f"{entity}/7.avro", avro.getvalue()[:-3])
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=0.1)
        found: dict[str, list[Any]] = {}
        for record in read:
            if record is not None:
                found.setdefault(str(record.partition), []).append(record.value)
        names = {name: [json.loads(v).get("name") for v in found[name]] for name in sorted(found)[:5]}
        assert list(names) == ["1.json", "2.jsonl.gz", "3.csv", "4.avro", "4.parquet"]
        assert all(read == ["ä", None] for read in names.values())
        for name in ("5.parquet", "6.json.gz", "7.avro"):
            assert found[name][-1].startswith(b"the file cannot be read: "), found[name]

    def test_a_large_directory_is_deleted_whole(
        self, aws: str, connector: Connector, entity: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(s3_admin, "_PAGE", 3)
        for i in range(10):
            put(aws, f"{entity}/{i}.json", b"{}")
        put(aws, f"{entity}-not/1.json", b"{}")
        found = connector.find_entity(entity)
        assert found is not None
        assert found.details["files"] == 10
        connector.drop_entity(entity)
        assert connector.find_entity(entity) is None
        assert connector.find_entity(f"{entity}-not") is not None
        connector.drop_entity(f"{entity}-not")

    def test_a_missing_bucket_is_told_apart(self, aws: str) -> None:
        store = open_connector("s3", "s", config(aws, bucket="not-there"), SECRET)
        for call in (store.test, store.list_entities):
            with pytest.raises(StoreError) as caught:
                call(5)
            assert caught.value.code == "store-rejected"
            assert "no bucket not-there" in caught.value.detail

    def test_a_server_that_is_not_s3_is_told_apart(self) -> None:
        class Page(BaseHTTPRequestHandler):
            status = 200

            def do_GET(self) -> None:
                self.send_response(self.status)
                self.end_headers()
                self.wfile.write(b"<html><p>hello")

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            store = open_connector("s3", "s", config(f"http://127.0.0.1:{server.server_address[1]}"), SECRET)
            for status in (200, 404):
                Page.status = status
                with pytest.raises(StoreError, match="is not S3") as caught:
                    store.test(5)
                assert caught.value.code == "store-unreachable"
        finally:
            server.shutdown()
            server.server_close()

    def test_without_any_credentials_it_says_so(self, aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        begin = time.monotonic()
        with pytest.raises(StoreError) as caught:
            open_connector("s3", "s", {"region": REGION, "endpoint_url": aws, "bucket": "data"}).test(3)
        assert caught.value.code == "store-auth-failed"
        assert time.monotonic() - begin < 15

    def test_a_role_is_taken_on_with_its_external_id(
        self, aws: str, entity: str, connector: Connector, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws)
        role = "arn:aws:iam::123456789012:role/leatstream"
        other = open_connector("s3", "s", config(aws, role_arn=role, external_id="agreed"), SECRET)
        connector.create_entity(entity, {}, {})
        assert other.find_entity(entity) is not None

    def test_directories_have_no_settings(self, connector: Connector) -> None:
        with pytest.raises(RequestError) as caught:
            connector.create_entity("e", {}, {"retention.ms": "5", "cleanup.policy": "delete"})
        assert len(caught.value.faults) == 2

    def test_a_reader_reads_each_file_once_and_repeats_a_batch_exactly(
        self, aws: str, connector: Connector, entity: str
    ) -> None:
        for i in range(10):
            put(aws, f"{entity}/{i}.json", b'{"id": %d}\n' % i * (i + 1))
        start = reader(connector, entity, files=4).initialOffset()
        ends = [start]
        one = reader(connector, entity, files=4)
        for _ in range(3):
            ends.append(one.latestOffset(ends[-1], one.getDefaultReadLimit()))
        assert ends[-1][entity] == {"files": "10"}
        first = [ids(one, *ends[i : i + 2]) for i in range(3)]
        assert sorted(n for numbers in first for n in numbers) == sorted(
            i for i in range(10) for _ in range(i + 1)
        )
        again = reader(connector, entity, files=4)
        ends = json.loads(json.dumps(ends))
        assert [ids(again, *ends[i : i + 2]) for i in range(3)] == first
        put(aws, f"{entity}/0.json", b'{"id": 99}\n')
        assert again.latestOffset(ends[3], again.getDefaultReadLimit()) == ends[3]
        assert again.partitions(ends[3], ends[3]) == []
        put(aws, f"{entity}/day=2/new.json", b'{"id": 10}\n')
        fresh = reader(connector, entity)
        end = fresh.latestOffset(ends[3], fresh.getDefaultReadLimit())
        assert ids(fresh, ends[3], end) == [10]

    def test_a_row_is_found_again(self, aws: str, connector: Connector, entity: str) -> None:
        """What a job reads of a file's row, by its rowmeta(); nothing where the reader said what is wrong."""
        out = io.BytesIO()
        pq.write_table(pa.table({"id": pa.array(["1", "x"])}), out)
        put(aws, f"{entity}/day=2026-01-01/p.parquet", out.getvalue())
        put(aws, f"{entity}/c.csv", b'id;name\n1;a\n;"b"\n3;c;d\n')
        columns = [
            ColumnSpec(name=n, type=t) for n, t in (("id", "BIGINT"), ("name", "VARCHAR"), ("day", "DATE"))
        ]
        store = StoreRef(name="s", kind="s3", config={})

        def values(file: str, row: int) -> list[bytes | None]:
            source = SourceSpec(
                view="v",
                relation="d.s.r",
                store=store,
                entity=entity,
                columns=columns[: 3 if "day" in file else 2],
                value_format=file.rsplit(".", 1)[1],
                options={"s3.csv.delimiter": ";"} if file == "c.csv" else {},
            )
            position = {"topic": entity, "file": file, "offset": row}
            return [record.value for record in connector.records_at(source, position, 5.0)]

        assert values("day=2026-01-01/p.parquet", 1) == [b'{"day":"2026-01-01","id":"x"}']
        assert values("c.csv", 1) == [b'{"name":"b"}']
        assert (values("c.csv", 2), values("c.csv", 9), values("gone.csv", 0)) == ([], [], [])

    def test_latest_passes_over_what_is_there(self, aws: str, connector: Connector, entity: str) -> None:
        put(aws, f"{entity}/1.json", b'{"id": 1}\n')
        one = reader(connector, entity, position="latest")
        start = one.initialOffset()
        # A batch without files fixes where the query begins.
        first = one.latestOffset(start, one.getDefaultReadLimit())
        assert first != start
        assert one.partitions(start, first) == []
        start = json.loads(json.dumps(first))
        assert one.latestOffset(start, one.getDefaultReadLimit()) == start
        one = reader(connector, entity, position="latest")
        put(aws, f"{entity}/0.json", b'{"id": 2}\n')
        end = one.latestOffset(start, one.getDefaultReadLimit())
        assert ids(one, start, end) == [2]

    def test_a_file_that_went_or_was_replaced_is_a_fault_of_its_own(
        self, aws: str, connector: Connector, entity: str
    ) -> None:
        assert isinstance(connector, S3Connector)
        for i in range(3):
            put(aws, f"{entity}/{i}.json", b'{"id": %d}\n' % i)
        one = reader(connector, entity)
        start = one.initialOffset()
        end = one.latestOffset(start, one.getDefaultReadLimit())
        s3_of(aws).delete_object(Bucket="data", Key=f"team/raw/{entity}/0.json")
        put(aws, f"{entity}/1.json", b'{"id": 7}\n')
        batches = [b for p in one.partitions(start, end) for b in one.read(p)]
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert [(r["file"], r["fault"]) for r in rows] == [
            ("0.json", "it was deleted before it was read"),
            ("1.json", "it was replaced before it was read"),
            ("2.json", None),
        ]

    def test_an_upload_that_is_not_complete_is_no_file_yet(
        self, aws: str, connector: Connector, entity: str
    ) -> None:
        put(aws, f"{entity}/0.json", b'{"id": 0}\n')
        client, place = s3_of(aws), {"Bucket": "data", "Key": f"team/raw/{entity}/1.json"}
        upload = client.create_multipart_upload(**place)["UploadId"]
        sent = client.upload_part(**place, UploadId=upload, PartNumber=1, Body=b'{"id": 1}\n')
        one = reader(connector, entity)
        start = one.initialOffset()
        end = one.latestOffset(start, one.getDefaultReadLimit())
        assert ids(one, start, end) == [0]
        parts = {"Parts": [{"PartNumber": 1, "ETag": sent["ETag"]}]}
        client.complete_multipart_upload(**place, UploadId=upload, MultipartUpload=parts)
        fresh = reader(connector, entity)
        later = fresh.latestOffset(end, fresh.getDefaultReadLimit())
        assert ids(fresh, end, later) == [1]

    def test_a_file_that_may_not_be_read_is_no_fault_of_its_records(
        self, aws: str, connector: Connector, entity: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its batch fails with the file's name, whatever is done with bad records, and is whole once it may."""
        for i in range(3):
            put(aws, f"{entity}/{i}.json", b'{"id": %d}\n' % i)
        one = reader(connector, entity)
        start = one.initialOffset()
        end = one.latestOffset(start, one.getDefaultReadLimit())
        plain, allowed = s3_source.s3_client, threading.Event()

        def denied(*settings: Any) -> Any:
            client = plain(*settings)

            def refuse(params: dict[str, Any], **_more: Any) -> None:
                if params["url_path"].endswith("1.json") and not allowed.is_set():
                    told = {"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}
                    raise ClientError(told | {"ResponseMetadata": {"HTTPStatusCode": 403}}, "GetObject")

            client.meta.events.register("before-call.s3.GetObject", refuse)
            return client

        monkeypatch.setattr(s3_source, "s3_client", denied)
        with pytest.raises(RuntimeError, match=r"store-auth-failed .* reading .*/1\.json.*AccessDenied"):
            ids(one, start, end)
        allowed.set()
        again = reader(connector, entity)
        assert ids(again, *json.loads(json.dumps([start, end]))) == [0, 1, 2]


def put(address: str, key: str, body: bytes) -> None:
    s3_of(address).put_object(Bucket="data", Key=f"team/raw/{key}", Body=body)


def reader(connector: Connector, entity: str, files: int = 100, position: str = "earliest") -> Any:
    from leatstream.connectors.s3.layout import Layout
    from leatstream.connectors.s3.positions import Bounds
    from leatstream.connectors.s3.source import S3Reader, SourcePlan

    assert isinstance(connector, S3Connector)
    bounds = Bounds(files, 1 << 20, 3_600_000)
    return S3Reader(SourcePlan("s", connector.settings, entity, Layout("json"), position, None, bounds))


def ids(by: Any, start: Any, end: Any) -> list[int]:
    batches = [b for p in by.partitions(start, end) for b in by.read(p)]
    return [json.loads(v)["id"] for batch in batches for v in batch.column("value").to_pylist()]

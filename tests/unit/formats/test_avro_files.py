"""Avro's container files: what this product writes, what other writers write, and damage."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zlib
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leatstream.formats.avro_columns import schema_text
from leatstream.formats.avro_files import AvroFileWriter, UnreadableFile, json_rows
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

FIELDS: dict[str, Any] = {
    "i": "int",
    "l": "long",
    "f": "float",
    "s": "string",
    "b": "bytes",
    "e": {"type": "enum", "name": "E", "symbols": ["X", "Y"]},
    "d": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "day": {"type": "int", "logicalType": "date"},
    "tm": {"type": "int", "logicalType": "time-millis"},
    "ms": {"type": "long", "logicalType": "timestamp-millis"},
    "us": {"type": "long", "logicalType": "local-timestamp-micros"},
    "n": ["null", {"type": "array", "items": ["null", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "double"}]}]}],
    "m": {"type": "map", "values": "long"},
    "either": ["int", "string"],
}  # fmt: skip
SCHEMA = {
    "type": "record",
    "name": "other.R",
    "fields": [{"name": n, "type": t} for n, t in FIELDS.items()],
}
VALUES = {
    "i": 7, "l": 2**40, "f": 0.5, "s": "ä", "b": b"\x00\xff", "e": "Y", "d": Decimal("-1.20"),
    "day": date(2026, 1, 2), "tm": 1_500, "ms": datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC),
    "us": datetime(2026, 1, 2, 3, 4, 5, 6), "n": [{"x": float("inf")}, None], "m": {"k": 1}, "either": "t",
}  # fmt: skip


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(n, parse_type(t)) for n, t in types.items())


def written(records: Any, schema: Any = SCHEMA, codec: str = "null", interval: int = 16_000) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), records, codec=codec, sync_interval=interval)
    return out.getvalue()


def read(data: bytes, wanted: tuple[Column, ...] = ()) -> list[Any]:
    found = list(json_rows(io.BytesIO(data), wanted))
    return [json.loads(row) if row.startswith(b"{") else row.decode() for row in found]


def numbers(codec: str = "null", count: int = 300) -> bytes:
    record = {"type": "record", "name": "N", "fields": [{"name": "id", "type": "long"}]}
    return written([{"id": i} for i in range(count)], record, codec, interval=100)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_files_of_other_writers(codec: str) -> None:
    """Every field that a column type can hold is shown; a union of two types is none."""
    (row,) = read(written([VALUES | {"tm": datetime(2026, 1, 1, 0, 0, 1, 500_000).time()}], codec=codec))
    assert row == {
        "i": 7,
        "l": 2**40,
        "f": 0.5,
        "s": "ä",
        "b": "AP8=",
        "e": "Y",
        "d": -1.2,
        "day": "2026-01-02",
        "tm": "00:00:01.5",
        "ms": "2026-01-02 03:04:05.006Z",
        "us": "2026-01-02 03:04:05.000006",
        "n": [{"x": "Infinity"}, None],
        "m": {"k": 1},
    }


def test_declared_columns_decide() -> None:
    wanted = columns(
        f="DOUBLE", i="BIGINT", l="DECIMAL(20, 0)", absent="DATE", b="VARCHAR", s="BYTES", ms="BIGINT"
    )
    moment = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    fine = VALUES | {"tm": moment.time(), "b": b"text", "ms": moment}
    assert read(written([fine, fine | {"b": b"\xff"}, fine]), wanted) == [
        {"f": 0.5, "i": 7, "l": 2**40, "b": "text", "s": "w6Q=", "ms": 1000},
        "bytes for a VARCHAR are not UTF-8",
        {"f": 0.5, "i": 7, "l": 2**40, "b": "text", "s": "w6Q=", "ms": 1000},
    ]
    large = {"type": "record", "name": "R", "fields": [{"name": "f", "type": "double"}]}
    assert read(written([{"f": 1e300}], large), columns(f="FLOAT")) == [{"f": "Infinity"}]


def test_what_arrow_packs() -> None:
    """Snappy and Zstandard, which fastavro packs with other libraries only."""
    plain = numbers()
    head = plain.index(b"avro.codec")
    start, sync = plain.index(plain[-16:], head) + 16, plain[-16:]
    for codec, packed in (
        ("snappy", lambda data: pa.Codec("snappy").compress(data, asbytes=True) + zlib.crc32(data).to_bytes(4, "big")),
        ("zstandard", lambda data: pa.Codec("zstd").compress(data, asbytes=True)),
    ):  # fmt: skip
        name = codec.encode()
        front = plain[:start].replace(b"avro.codec\x08null", b"avro.codec" + bytes([len(name) * 2]) + name)
        body = packed(b"\x02\x04\x06")
        block = b"\x06" + bytes([len(body) * 2]) + body + sync
        assert read(front + block) == [{"id": 1}, {"id": 2}, {"id": 3}]
        with pytest.raises(UnreadableFile, match="damaged"):
            read(front + b"\x06" + bytes([len(body) * 2 - 4]) + body[:-2] + sync)


@pytest.mark.parametrize(
    ("data", "wanted", "why"),
    [
        (b"", (), "it is no Avro"),
        (b"PAR1", (), "it is no Avro"),
        (b"Obj\x01", (), "it is cut off"),
        (b"Obj\x01" + b"\xff" * 20, (), "a number is too long"),
        (b"Obj\x01\x02\xfe\xff\xff\xff\x0f", (), "more than 64 MiB"),
        (numbers().replace(b"\x08null", b"\x06lz4"), (), "packed with 'lz4'"),
        (numbers().replace(b'"long"', b'"lung"'), (), "speaks of a type lung"),
        (numbers(), columns(id="VARCHAR"), "field id is long and its column VARCHAR"),
        (written([{}], {"type": "record", "name": "R", "fields": []}), (), "take no bytes"),
    ],
)
def test_files_that_are_refused(data: bytes, wanted: tuple[Column, ...], why: str) -> None:
    with pytest.raises(UnreadableFile, match=why):
        read(data, wanted)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_the_rows_before_the_damage_are_read(codec: str) -> None:
    data = numbers(codec)
    for broken, why in (
        (data[:-1], "cut off"),
        (data[:-30], "cut off"),
        (data[:-16] + os.urandom(16), "does not end where it says"),
    ):
        found: list[Any] = []
        rows = (json.loads(row)["id"] for row in json_rows(io.BytesIO(broken), columns(id="BIGINT")))
        with pytest.raises(UnreadableFile, match=why):
            found.extend(rows)
        assert found
        assert found == list(range(len(found)))
        assert len(found) < 300


@given(at=st.integers(0, 600), damage=st.binary(max_size=12), cut=st.booleans(), packed=st.booleans())
@example(at=4, damage=b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", cut=False, packed=False)
@settings(max_examples=120, deadline=None)
def test_damage_is_told_or_reads_as_something(at: int, damage: bytes, cut: bool, packed: bool) -> None:
    data = DEFLATED if packed else PLAIN
    broken = data[:at] + damage + (b"" if cut else data[at + len(damage) :])
    with contextlib.suppress(UnreadableFile):
        for row in json_rows(io.BytesIO(broken), ()):
            assert isinstance(json.loads(row)["id"], int)


PLAIN, DEFLATED = numbers(), numbers("deflate")


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_what_is_written_others_read(codec: str) -> None:
    declared = (
        Column("id", parse_type("BIGINT"), not_null=True),
        Column("name", parse_type("VARCHAR")),
        Column("price", parse_type("DECIMAL(9, 2)")),
        Column("at", parse_type("TIMESTAMP_LTZ")),
        Column("inner", parse_type("STRUCT<a ARRAY<INTEGER>, t TIME>")),
    )
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    rows = [(i, None if i % 2 else "x" * 50, Decimal("1.10"), moment, ([i, None], "00:00:01")) for i in range(5_000)]  # fmt: skip
    sent: list[bytes] = []
    writer = AvroFileWriter(sent.append, schema_text(declared, "demo.public.out"), declared, codec)
    for row in rows:
        writer.write(row)
    assert len(sent) > 2, "whole blocks are sent as they fill"
    writer.close()
    reader = fastavro.reader(io.BytesIO(b"".join(sent)))
    assert reader.codec == codec
    assert reader.writer_schema["name"] == "demo.public.out"
    found = [(r["id"], r["name"], r["price"], r["at"], r["inner"]["a"], str(r["inner"]["t"])) for r in reader]
    assert found == [(*row[:4], *row[4]) for row in rows]
    assert [r["id"] for r in read(b"".join(sent), columns(id="BIGINT"))] == list(range(5_000))
    (again,) = read(b"".join(sent[:1]) + sent[1], declared)[:1]
    assert again["inner"] == {"a": [0, None], "t": "00:00:01"}


def test_a_file_without_rows() -> None:
    sent: list[bytes] = []
    declared = columns(id="BIGINT")
    AvroFileWriter(sent.append, schema_text(declared, "x.y"), declared, "deflate").close()
    assert read(b"".join(sent), declared) == []

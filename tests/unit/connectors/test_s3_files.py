"""What files of text hold, as records."""

from __future__ import annotations

import gzip
import io
import json
import random
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from leatstream.connectors.s3 import json_lines
from leatstream.connectors.s3.files import rows
from leatstream.connectors.s3.layout import Layout, Row
from leatstream.connectors.s3.objects import StoreAway
from leatstream.connectors.s3.settings import S3Config
from leatstream.connectors.s3.source import said
from leatstream.model.types import parse_type


def read(data: bytes, layout: Layout, name: str = "f") -> list[Row]:
    return [row for chunk in rows(name, io.BytesIO(data), layout) for row in chunk]


def values(data: bytes, layout: Layout, name: str = "f") -> list[bytes]:
    return [row.value for row in read(data, layout, name)]


def layout(format_: str, columns: dict[str, str] | None = None, **more: Any) -> Layout:
    return Layout(format_, {name: parse_type(kind) for name, kind in (columns or {}).items()}, **more)


def csv(text: str | bytes, kinds: dict[str, str], name: str = "f", **more: Any) -> list[Any]:
    data = text if isinstance(text, bytes) else text.encode()
    found = read(data, layout("csv", kinds, **more), name)
    return [json.loads(row.value) if row.value.startswith(b"{") else row.value for row in found]


KINDS = {"id": "BIGINT", "name": "VARCHAR", "ok": "BOOLEAN", "at": "TIMESTAMP", "tags": "ARRAY<VARCHAR>"}


def test_csv_takes_columns_by_name() -> None:
    text = 'name,unknown,id,ok,at,tags\n"a,\nb",x,1,TRUE,2026-01-01 00:00:00,"[1, ""two""]"\n,,,,,\n""," ", 7 ,,,\n'
    assert csv(text, KINDS) == [
        {"id": 1, "name": "a,\nb", "ok": True, "at": "2026-01-01 00:00:00", "tags": [1, "two"]},
        {},
        {"id": 7, "name": ""},
    ]


def test_csv_without_header_and_with_another_delimiter() -> None:
    found = csv("1;x\n2;y\n", {"id": "BIGINT", "name": "VARCHAR"}, header=False, delimiter=";")
    assert found == [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]


def test_csv_of_which_nothing_is_known() -> None:
    assert csv("id,name,ok\n1,x,true\n2.5,,no\n", {}) == [
        {"id": 1, "name": "x", "ok": True},
        {"id": 2.5, "ok": "no"},
    ]
    assert csv("", {}) == []


def test_what_does_not_fit_stays_undecodable() -> None:
    found = csv(b"id,name\nfive,x\n1,\xff\n1\n3,z\n", {"id": "BIGINT", "name": "VARCHAR"})
    assert {"id": "five", "name": "x"} in found
    assert {"id": 3, "name": "z"} in found
    assert b"1,\xff" in found
    assert b"1" in found


@pytest.mark.parametrize("text", ["", "id,name\n"])
def test_csv_files_without_rows(text: str) -> None:
    assert csv(text, {"id": "BIGINT", "name": "VARCHAR"}) == []


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.50", "DECIMAL", 1.5),
        ("1e3", "DOUBLE", 1000.0),
        ("NaN", "DOUBLE", "NaN"),
        ("007", "BIGINT", "007"),
        ("+1", "BIGINT", "+1"),
        ("yes", "BOOLEAN", "yes"),
        ("1", "VARCHAR", "1"),
        ('"{""a"": 1}"', "STRUCT<a INTEGER>", {"a": 1}),
        ("{a", "MAP<VARCHAR, INTEGER>", "{a"),
    ],
)
def test_csv_values(text: str, kind: str, value: Any) -> None:
    assert csv(f"v\n{text}\n", {"v": kind}) == [{"v": value}]


@pytest.mark.parametrize("format_", ["json", "csv", "parquet", "avro"])
@pytest.mark.parametrize("data", [b"\x00\xff\x1f\x8b" * 50, b"PAR1", b"Obj\x01", b'"', b"{}\n\n"])
def test_garbage_is_no_exception(format_: str, data: bytes) -> None:
    for name in ("f", "f.gz"):
        for row in read(data, layout(format_, {"id": "BIGINT"}), name):
            assert isinstance(row.value, bytes)


def test_rows_come_in_chunks_with_their_numbers() -> None:
    data = b"".join(b'{"i": %d}\n' % i for i in range(12_345))
    chunks = list(rows("f", io.BytesIO(data), layout("json")))
    assert [len(chunk) for chunk in chunks] == [5000, 5000, 2345]
    assert [row.number for chunk in chunks for row in chunk] == list(range(12_345))


def test_objects_one_behind_the_other_are_rows() -> None:
    """As Amazon Firehose writes them: without line ends."""
    data = b'{"id":1}{"id":2} {"t":"}{\\"}{"}\n{"id":3}\n{"id":9}{"oops"}{"id":10}garbage}\n{"id":11}'
    assert values(data, layout("json")) == [
        b'{"id":1}',
        b'{"id":2}',
        b'{"t":"}{\\"}{"}',
        b'{"id":3}',
        b'{"id":9}',
        b'{"oops"}',
        b'{"id":10}',
        b"garbage}",
        b'{"id":11}',
    ]


def test_what_is_damaged_between_objects_is_a_row_that_is_none() -> None:
    found = values(b'{"id":1}{"na{"id":2}{"id":3}\n{"id":4}{"id":5\n\n{"id":6}', layout("json"))
    assert found == [b'{"id":1}', b'{"na{"id":2}{"id":3}', b'{"id":4}', b'{"id":5', b'{"id":6}']


@pytest.mark.parametrize("part", [8, 9, 13, 64])
def test_a_long_line_is_taken_apart_while_it_is_read(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_PART", part)
    objects = [json.dumps({"i": i, "t": '\\}{"' * (i % 5), "in": {"x": [{}]}}).encode() for i in range(50)]
    assert values(b"".join(objects), layout("json")) == objects
    assert values(b"\n".join(objects), layout("json")) == objects


def test_a_row_that_is_too_long_ends_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_PART", 16)
    monkeypatch.setattr(json_lines, "LONGEST", 100)
    (one, two) = read(b'{"id": 1}\n{"t": "' + b"x" * 200, layout("json"))
    assert (one.value, one.fault) == (b'{"id": 1}', None)
    assert two.fault == "it has a row of more than 64 MiB"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_a_byte_order_mark_takes_no_record_along(packed: bool, name: str) -> None:
    """Nor is a packed file taken for an unpacked one by its name."""

    def made(data: bytes) -> bytes:
        return gzip.compress(data) if packed or name.endswith("gz") else data

    mark = b"\xef\xbb\xbf"
    assert values(made(mark + b'{"id":1}\n' + mark + b'{"id":2}'), layout("json"), name) == [
        b'{"id":1}',
        b'{"id":2}',
    ]
    kinds = {"id": "BIGINT", "name": "VARCHAR"}
    assert csv(made(mark + b"id,name\n1,x\n"), kinds, name) == [{"id": 1, "name": "x"}]
    assert csv(made(mark + b"1,x\n"), kinds, name, header=False) == [{"id": 1, "name": "x"}]
    assert csv(made(mark + b"id,name\n1,x\n"), {}, name) == [{"id": 1, "name": "x"}]


@pytest.mark.parametrize("format_", ["json", "csv"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_utf_16_is_named(format_: str, encoding: str) -> None:
    (row,) = read("id,name\n".encode(encoding), layout(format_, {"id": "BIGINT"}))
    assert row.fault is not None
    assert "UTF-16" in row.fault


HEADERS = [
    ("id;name\n1;x\n", "'s3.csv.delimiter'=';'"),
    ("id\tname\n1\tx\n", "'s3.csv.delimiter'='\\t'"),
    ("ID,Name\n1,x\n", 'declare the column as "ID"'),
    ("id,NAME\n1,x\n", 'declare the column as "NAME"'),
    (" id, name\n1,x\n", 'declare the column as " id"'),
    ("a,b\n1,x\n", "none of the declared columns (id, name), but 2 other columns (a, b)"),
    ("17,a secret of 4711!\n1,x\n", "but 2 other columns; a file without a line of names is read with"),
    ("id,name,id\n1,x,2\n", "the column id twice"),
    ("i\x00d\x00,\x00n\x00\n1,x\n", "UTF-16"),
]


@pytest.mark.parametrize(("text", "said"), HEADERS)
def test_a_header_without_the_columns_is_a_fault_of_the_file(text: str, said: str) -> None:
    (row,) = read(text.encode(), layout("csv", {"id": "BIGINT", "name": "VARCHAR"}))
    assert row.fault is not None
    assert said in row.fault
    assert "secret" not in row.fault


def test_a_header_may_lack_some_columns_and_have_others() -> None:
    assert csv("b,id\nx,1\n", {"id": "BIGINT", "name": "VARCHAR"}) == [{"id": 1}]


def test_a_csv_row_may_be_as_long_as_a_json_line() -> None:
    long = "x" * 20_000_000
    found = csv(f"id,name\n1,a\n2\n3,{long}\n4,b\n", {"id": "BIGINT", "name": "VARCHAR"})
    assert found == [
        {"id": 1, "name": "a"},
        b"2",
        {"id": 3, "name": long},
        {"id": 4, "name": "b"},
    ]
    assert csv(f"{long}\nb\n", {"name": "VARCHAR"}, header=False) == [{"name": long}, {"name": "b"}]


@pytest.mark.parametrize("rest", ["x\n2,y\n3,z\n", "x", "x\n2,y,z\n", 'x""'])
def test_a_quoted_field_that_does_not_end_takes_no_rows_along_in_silence(rest: str) -> None:
    found = read(f'id,name\n1,a\n7,"{rest}'.encode(), layout("csv", {"id": "BIGINT", "name": "VARCHAR"}))
    assert [json.loads(row.value) for row in found[:-1]] == [{"id": 1, "name": "a"}]
    assert found[-1].fault == "a quoted field does not end"


def test_a_file_of_one_column_has_its_nulls() -> None:
    """As this product writes them: a line without anything is a row whose field is empty."""
    for text in ("v\na\n\nb\n\n", "\nv\na\n\nb\n\n", "v\r\na\r\n\r\nb\r\n\r\n"):
        assert csv(text, {"v": "VARCHAR"}) == [{"v": "a"}, {}, {"v": "b"}, {}]
    assert csv("\na", {"v": "VARCHAR"}, header=False) == [{}, {"v": "a"}]
    assert csv("v\n", {"v": "VARCHAR"}) == []


def test_rows_that_are_none_stand_where_they_are_in_the_file() -> None:
    text = b"id,name\n1,a\n\n2\n3,c,\xff\n4,d\n5\n"
    found = read(text, layout("csv", {"id": "BIGINT", "name": "VARCHAR"}))
    # For a log of such records they are kept as they stand.
    assert [(row.number, row.value[:9]) for row in found] == [
        (0, b'{"id":1,"'),
        (1, b"2"),
        (2, b"3,c,\xff"),
        (3, b'{"id":4,"'),
        (4, b"5"),
    ]
    reasons = ["a row of 1 fields, not 2", "a row of 3 fields, not 2", None, "a row of 1 fields, not 2"]
    assert [row.reason for row in found] == [None, *reasons]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12,34", "DECIMAL(10,2)", "12.34"),
        ("-1234567890123456789012345678,01", "DECIMAL(38,2)", "-1234567890123456789012345678.01"),
        ("12", "DECIMAL(10,2)", "12"),
        ("1,5e3", "DOUBLE", "1.5e3"),
        ("1.234,56", "DECIMAL(10,2)", None),
        ("12.34", "DECIMAL(10,2)", None),
        ("1,2,3", "DECIMAL(10,2)", '"1.2.3"'),
        ("12,34", "VARCHAR", '"12,34"'),
        ("12,34", "BIGINT", '"12,34"'),
    ],
)
def test_decimal_commas(text: str, kind: str, value: str | None) -> None:
    given = layout("csv", {"v": kind}, delimiter=";", decimal_comma=True)
    (row,) = read(f"v\n{text}\n".encode(), given)
    assert row.value == (f'{{"v":{value}}}' if value else text).encode()
    assert row.reason == (None if value else "column v: a fraction has a point and no decimal comma")


@pytest.mark.parametrize("text", ["12,34", "1.234,56", "1_000", "0x10", "½", "12 34", "١٢"])
def test_without_decimal_commas_such_texts_are_no_numbers(text: str) -> None:
    """They stay the texts that they are; the decoder refuses them for a DECIMAL."""
    given = layout("csv", {"v": "DECIMAL(10,2)"}, delimiter=";")
    assert values(f"v\n{text}\n".encode(), given) == [f'{{"v":{json.dumps(text)}}}'.encode()]


PLACED = {"id": "BIGINT", "dt": "DATE", "n": "INTEGER", "city": "VARCHAR"}
DIRECTORIES = "dt=2026-01-01/n=7/city=S%C3%A3o%20Paulo%2F1/other=x/f"


def test_directories_give_columns_to_json() -> None:
    placed = {"dt": "2026-01-01", "n": 7, "city": "São Paulo/1"}
    found = values(b'{"id":1}\n{ }\n{"dt":null,"n":8,"id":2}\nno object', layout("json", PLACED), DIRECTORIES)
    assert [json.loads(value) for value in found[:3]] == [
        placed | {"id": 1},
        placed,
        placed | {"dt": None, "n": 8, "id": 2},
    ]
    assert found[3] == b"no object"


def test_directories_give_columns_to_csv() -> None:
    placed = {"dt": "2026-01-01", "n": 7, "city": "São Paulo/1"}
    assert csv("id\n1\n", PLACED, DIRECTORIES) == [placed | {"id": 1}]
    # What stands in the file counts, also where it is NULL there.
    assert csv("n,id\n8,1\n,2\n", PLACED, DIRECTORIES) == [
        placed | {"id": 1, "n": 8},
        placed | {"id": 2, "n": None},
    ]
    assert csv("1\n2\n", PLACED, DIRECTORIES, header=False) == [placed | {"id": 1}, placed | {"id": 2}]
    assert csv("1,2026-02-02,8,x\n", PLACED, DIRECTORIES, header=False) == [
        {"id": 1, "dt": "2026-02-02", "n": 8, "city": "x"}
    ]
    assert "none of the declared columns (id)" in str(csv("dx\n1\n", PLACED, DIRECTORIES)[0])


@pytest.mark.parametrize(
    ("directory", "value"),
    [
        ("v=__HIVE_DEFAULT_PARTITION__", None),
        ("v=007", "007"),
        ("v=1.5", 1.5),
        ("v=", ""),
        ("v=1%3D1", "1=1"),
        ("v=a+b", "a+b"),
        ("%76=1", 1),
        ("V=1", ...),
        ("w=1", ...),
        ("v", ...),
    ],
)
def test_what_a_directory_says(directory: str, value: Any) -> None:
    (found,) = values(b'{"id":1}', layout("json", {"id": "BIGINT", "v": "BIGINT"}), f"{directory}/f.json")
    assert json.loads(found) == {"id": 1} | ({} if value is ... else {"v": value})


@pytest.mark.parametrize(
    ("path", "said"),
    [("v=1/v=1/f", "two of its directories"), ("v=%ff/f", "not UTF-8"), ("%c3=1/f", "not UTF-8")],
)
def test_directories_that_cannot_be_read(path: str, said: str) -> None:
    (row,) = read(b'{"id":1}', layout("json", {"id": "BIGINT", "v": "BIGINT"}), path)
    assert row.fault is not None
    assert said in row.fault


class _Away(io.BytesIO):
    """A file whose store does not answer from a place on; botocore says that by an OSError."""

    def __init__(self, data: bytes, there: int) -> None:
        super().__init__(data)
        self._there = there

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() + (1 << 30 if size is None or size < 0 else size) > self._there:
            raise StoreAway(ReadTimeoutError(endpoint_url="http://s3"))
        return super().read(size)

    def readline(self, size: int | None = -1) -> bytes:
        if self.tell() >= self._there:
            raise StoreAway(ReadTimeoutError(endpoint_url="http://s3"))
        return super().readline(size)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@pytest.mark.parametrize("format_", ["json", "csv", "parquet", "avro"])
@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_a_store_that_is_away_damages_no_file(format_: str, name: str) -> None:
    text = b"id\n" + random.Random(1).randbytes(20_000).hex().encode()
    start = {"parquet": b"PAR1", "avro": b"Obj\x01\x02"}.get(format_, b"")
    data = gzip.compress(text) if name == "f.gz" and not start else start + text
    with pytest.raises(StoreAway):
        list(rows(name, _Away(data, 4), layout(format_, {"id": "BIGINT"})))


def test_a_store_that_is_away_is_said_to_be_so() -> None:
    config = S3Config(region="eu-west-1", bucket="data", endpoint_url="http://127.0.0.1:1")
    away = StoreAway(ReadTimeoutError(endpoint_url="http://127.0.0.1:1"))
    with (
        pytest.raises(RuntimeError, match="LEAT_STORE source store-unreachable"),
        said("lake", config, "reading"),
    ):
        raise away

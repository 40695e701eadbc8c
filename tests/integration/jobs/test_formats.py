"""JSON and primitive formats as Spark really computes them, and failures as Spark really throws them."""

from __future__ import annotations

import json as plain_json
import random
import struct
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deadlines import patient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.errors import JobError
from leatstream.formats import json, json_writing, primitive
from leatstream.formats.values import json_record, primitive_bytes
from leatstream.model.objects import Column
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import ColumnSpec, JobSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt import run_query
from leatstream_jobs.attempt.failed_values import with_record
from leatstream_jobs.attempt.failures import chain_of, classify
from leatstream_jobs.reading import scans

ALL_TYPES = (
    "b BOOLEAN, t TINYINT, sm SMALLINT, i INTEGER, l BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(8, 2), dt DATE, "
    "tm TIME, ntz TIMESTAMP, ltz TIMESTAMP_LTZ, bin VARBINARY, s VARCHAR, arr ARRAY<INTEGER>, "
    "m MAP<VARCHAR, INTEGER>, st STRUCT<x INTEGER, at TIMESTAMP>, ats ARRAY<TIMESTAMP_LTZ>"
)
NESTED = "ts ARRAY<TINYINT>, deep MAP<VARCHAR, ARRAY<STRUCT<t TINYINT, d DECIMAL(3, 1), at TIMESTAMP_LTZ, tm TIME>>>"
GOOD = (
    '{"b":true,"t":-128,"sm":32767,"i":-5,"l":9007199254740993,"f":1.5,"d":-0.1,"dec":12.34,"dt":"2024-02-29",'
    '"tm":"23:59:59.5","ntz":"2024-01-02 03:04:05.678901","ltz":"2024-01-02 03:04:05.678Z","bin":"aGk=",'
    '"s":"a\\"b\\\\ü\\n","arr":[1,null],"m":{"k":1},"st":{"x":1,"at":"2024-01-02 03:04:05"},'
    '"ats":["2024-01-02 03:04:05Z"]}'
)


def column_specs(text: str) -> list[ColumnSpec]:
    found, depth, at = [], 0, 0
    for end, c in enumerate(text + ","):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            name, kind = text[at:end].strip().split(" ", 1)
            not_null = kind.endswith(" NOT NULL")
            found.append(ColumnSpec(name=name, type=kind.removesuffix(" NOT NULL"), not_null=not_null))
            at = end + 1
    return found


@pytest.fixture(scope="module")
def read(spark: SparkSession) -> Callable[..., list[Any]]:
    """Decodes texts; gives (row or None if undecodable) for each."""

    def decode(columns: str, *values: bytes | str, timestamp: str | None = None) -> list[Any]:
        frame = spark.createDataFrame(
            [(i, bytearray(v if isinstance(v, bytes) else v.encode())) for i, v in enumerate(values)],
            "n INT, v BINARY",
        )
        decoder = json.decoder(column_specs(columns))
        parsed = decoder.over(frame.select("n", F.col("v").cast("string").alias(json.TEXT)))
        rows = parsed.select("n", decoder.undecodable.alias("bad"), F.struct(*decoder.fields).alias("row"))
        found = rows.orderBy("n").collect()
        assert all(r.bad is not None for r in found)
        return [None if r.bad else tuple(r.row) for r in found]

    return decode


@pytest.mark.core
def test_undecodable(read: Any) -> None:
    misfits: list[bytes | str] = [
        '{"l":"1"}',
        '{"l":1.0}',
        '{"l":99999999999999999999}',
        '{"l":true}',
        '{"i":2147483648}',
        '{"t":200}',
        '{"sm":70000}',
        '{"b":"true"}',
        '{"b":1}',
        '{"d":"1.5"}',
        '{"dec":123456789.1}',
        '{"dt":"2024-13-02"}',
        '{"dt":5}',
        '{"tm":"24:00:00"}',
        '{"tm":"12:00"}',
        '{"ntz":5}',
        '{"ntz":"2024-01-02"}',
        '{"ltz":1700000000000}',
        '{"ltz":"soon"}',
        '{"bin":"!!"}',
        '{"arr":1}',
        '{"arr":[1,"x"]}',
        '{"m":{"k":"x"}}',
        '{"st":{"x":"y"}}',
        b'{"s":"\xff\xfe"}',
        '{"dec":12.345}',
        '{"dec":1e-3}',
        '{"ts":[1,200]}',
        '{"deep":{"k":[{"t":-129}]}}',
        '{"deep":{"k":[null,{"d":1.25}]}}',
        '{"deep":{"k":[{"at":1700000000}]}}',
        '{"deep":{"k":[{"tm":"25:00:00"}]}}',
    ]
    misfits += ["", " ", "null", "5", '"x"', "[]", '[{"l":1}]', '{"l":1', "{'l':1}", '{"l":1} more']
    found = read(f"{ALL_TYPES}, {NESTED}", *misfits)
    assert [text for text, row in zip(misfits, found, strict=True) if row is not None] == []
    assert read("l BIGINT NOT NULL", "{}", '{"l":null}', '{"L":1}', '{"l":0}') == [None, None, None, (0,)]


def test_decodable(read: Any) -> None:
    assert read("l BIGINT", "{}", '{"l":null}', '{"l":-1} \n', '{"x":[{}],"l":2}', '{"l":1,"l":3}') == [
        (None,), (None,), (-1,), (2,), (3,)
    ]  # fmt: skip
    assert read("s VARCHAR", '{"s":5}', '{"s":{"q":[1, 2]}}', '{"s":"5"}') == [
        ("5",),
        ('{"q":[1, 2]}',),
        ("5",),
    ]
    assert read("dec DECIMAL(8, 2)", '{"dec":1.25}', '{"dec":3}') == [(Decimal("1.25"),), (Decimal("3.00"),)]
    assert read("a BIGINT, A BIGINT, `a.b` BIGINT".replace("`", ""), '{"a":1,"A":2,"a.b":3}') == [(1, 2, 3)]
    assert read("dec DECIMAL(38, 38)", '{"dec":0.5}', '{"dec":"0.25"}', '{"dec":1}')[:2] == [
        (Decimal("0.5"),),
        (Decimal("0.25"),),
    ]
    (nested,) = read(
        NESTED, '{"ts":[1,null],"deep":{"a":null,"b":[null,{},{"t":-128,"d":12.0,"tm":"01:02:03"}]}}'
    )
    assert nested[0] == [1, None]
    assert [None if r is None else tuple(r) for r in nested[1]["b"]] == [
        None,
        (None, None, None, None),
        (-128, Decimal("12.0"), None, "01:02:03"),
    ]
    texts = ("2024-01-02 03:04:05.5", "2024-01-02T03:04:05.5Z", "2024-01-02T04:04:05.5+01:00")
    assert read("ntz TIMESTAMP", *(f'{{"ntz":"{text}"}}' for text in texts)) == [
        (datetime(2024, 1, 2, 3, 4, 5, 500_000),)
    ] * len(texts)
    zones = read(
        "ltz TIMESTAMP_LTZ",
        '{"ltz":"2024-01-02 03:04:05Z"}',
        '{"ltz":"2024-01-02T04:04:05+01:00"}',
        '{"ltz":"2024-01-02 03:04:05"}',
    )
    assert zones[0] == zones[1] == zones[2]


@pytest.mark.core
def test_what_is_written_reads_back_as_itself(spark: SparkSession, read: Any) -> None:
    columns = column_specs(ALL_TYPES)
    once = read(ALL_TYPES, GOOD)
    assert once[0] is not None
    decoder = json.decoder(columns)
    nulls = "{" + ",".join(f'"{c.name}":null' for c in columns) + "}"
    frame = decoder.over(spark.createDataFrame([(GOOD,), ("{}",)], f"{json.TEXT} STRING"))
    row = frame.select(*decoder.fields)
    written = row.select(json_writing.encode(columns, [row[c.name] for c in columns]).alias("v"))
    texts = [bytes(r.v).decode() for r in written.collect()]
    assert texts[0] == GOOD
    assert texts[1] == nulls
    assert read(ALL_TYPES, *texts)[0] == once[0]


VALUES: dict[str, list[Any]] = {
    "b BOOLEAN": [True, False],
    "t TINYINT": [-128, 127, 0],
    "l BIGINT": [-(2**63), 2**63 - 1],
    "f FLOAT": [0.1, 1e7, 16777216.0, 3.4028235e38, 1.4e-45, 1e-3, 9.999e-4, float("nan"), 0.3333333, -0.0],
    "d DOUBLE": [
        1.0,
        1e7,
        9999999.0,
        1e-3,
        9.99e-4,
        5e-324,
        1.7976931348623157e308,
        float("-inf"),
        1 / 3,
    ],
    "dec DECIMAL(20, 10)": [
        Decimal("1.5000000000"),
        Decimal("1E-10"),
        Decimal("0E-10"),
        Decimal("-12.3400000000"),
    ],
    "dt DATE": [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)],
    "ntz TIMESTAMP": [
        datetime(2024, 1, 2, 3, 4, 5, 678900),
        datetime(1900, 1, 1),
        datetime(2024, 1, 2, 10, 20),
    ],
    "ltz TIMESTAMP_LTZ": [datetime(2024, 1, 2, 3, 4, 5, 100000, UTC), datetime(1970, 1, 1, tzinfo=UTC)],
    "bin VARBINARY": [b"", b"hi", bytes(range(256))],
    "s VARCHAR": ["", "".join(map(chr, range(0x20))), 'a"b\\c/d', "ü€😀\u2028\x7f"],
    'st STRUCT<x INTEGER, "y Z" ARRAY<DOUBLE>>': [(1, [1e10, None]), (None, None)],
    "m MAP<VARCHAR, TIMESTAMP>": [{'k"': datetime(2024, 1, 1)}, {"n": None}, {}],
}


def test_a_statement_writes_the_bytes_that_a_job_writes(spark: SparkSession) -> None:
    for text, given in VALUES.items():
        name, kind = text.split(" ", 1)
        columns = [ColumnSpec(name=name, type=kind)]
        data_type = parse_type(kind)
        rows = spark.createDataFrame(
            [(i, v) for i, v in enumerate([*given, None])], f"n INT, {name} {data_type.spark()}"
        )
        coded = rows.orderBy("n").select(json_writing.encode(columns, [F.col(name)]).alias("v")).collect()
        ours = [json_record([Column(name, data_type)], [v]) for v in [*given, None]]
        assert ours == [bytes(r.v) for r in coded], text


def test_random_doubles_are_written_as_java_writes_them(spark: SparkSession) -> None:
    seed = random.Random(11)
    doubles = [struct.unpack(">d", seed.randbytes(8))[0] for _ in range(3_000)]
    doubles += [seed.uniform(-1e8, 1e8) for _ in range(1_000)]
    floats = [struct.unpack(">f", seed.randbytes(4))[0] for _ in range(3_000)]
    gateway: Any = spark.sparkContext._jvm
    exact = int(str(gateway.java.lang.System.getProperty("java.specification.version"))) >= 19
    for kind, values in (("DOUBLE", doubles), ("FLOAT", floats)):
        frame = spark.createDataFrame([(i, v) for i, v in enumerate(values)], f"n INT, v {kind}")
        value = json_writing.encode([ColumnSpec(name="v", type=kind)], [F.col("v")])
        coded = [bytes(r.v) for r in frame.orderBy("n").select(value.alias("v")).collect()]
        ours = [json_record([Column("v", parse_type(kind))], [v]) for v in values]
        # Before 19, Java sometimes wrote more digits than the value needs: then only the values are equal.
        unlike = [(o, c) for o, c in zip(ours, coded, strict=True) if o != c]
        assert not (exact and unlike)
        for one, other in unlike:
            a, b = (plain_json.loads(text)["v"] for text in (one, other))
            assert a == b if kind == "DOUBLE" else struct.pack("f", a) == struct.pack("f", b)


def test_random_documents_decode_as_plain_from_json_does(spark: SparkSession, read: Any) -> None:
    seed = random.Random(7)
    texts = []
    for _ in range(300):
        document = {
            "l": seed.choice([seed.randint(-(2**63), 2**63 - 1), None]),
            "s": seed.choice(["", "ü\u2028x", "a" * seed.randint(0, 50), None, '\\"/']),
            "d": seed.choice([seed.uniform(-1e300, 1e300), 0.1, None]),
            "b": seed.choice([True, False, None]),
        }
        texts.append(plain_json.dumps({k: v for k, v in document.items() if seed.random() < 0.9}))
    frame = spark.createDataFrame([(i, t) for i, t in enumerate(texts)], "n INT, v STRING")
    simple = frame.select("n", F.from_json("v", "l BIGINT, s STRING, d DOUBLE, b BOOLEAN").alias("j"))
    expected = [tuple(r.j) for r in simple.orderBy("n").collect()]
    assert read("l BIGINT, s VARCHAR, d DOUBLE, b BOOLEAN", *texts) == expected


def random_type(seed: random.Random, depth: int = 0) -> DataType:
    simple = [
        *(
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DATE",
            "TIME",
            "VARCHAR",
        ),
        *("VARBINARY", "TIMESTAMP", "TIMESTAMP_LTZ", "DECIMAL"),
    ]
    kind = seed.choice(simple if depth > 2 else [*simple, "ARRAY", "MAP", "STRUCT", "ARRAY", "STRUCT"])
    if kind == "DECIMAL":
        precision = seed.randint(1, 38)
        return DataType(kind, (precision, seed.randint(0, precision)))
    if kind == "ARRAY":
        return DataType(kind, arguments=(random_type(seed, depth + 1),))
    if kind == "MAP":
        return DataType(kind, arguments=(DataType("VARCHAR"), random_type(seed, depth + 1)))
    if kind == "STRUCT":
        count = seed.randint(1, 4)
        fields = tuple(seed.choice(["a", "B b", "ü`"]) + str(i) for i in range(count))
        return DataType(kind, arguments=tuple(random_type(seed, depth + 1) for _ in fields), fields=fields)
    return DataType(kind)


def random_value(seed: random.Random, kind: DataType) -> Any:
    """A value as ``sql.constants`` gives it; FLOAT and DOUBLE only such as every Java writes alike."""
    if seed.random() < 0.15:
        return None
    word, bits = kind.kind, {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
    if word in bits:
        limit = 1 << bits[word]
        return seed.choice([-limit, limit - 1, 0, seed.randrange(-limit, limit)])
    if word == "DECIMAL":
        precision, scale = kind.parameters
        digits = seed.randrange(-(10**precision) + 1, 10**precision)
        return Decimal((digits < 0, tuple(map(int, str(abs(digits)))), -scale))
    if word in ("FLOAT", "DOUBLE"):
        return seed.choice([seed.randint(-80, 80) / 8, float("nan"), float("inf"), float("-inf")])
    if word in ("TIMESTAMP", "TIMESTAMP_LTZ", "DATE", "TIME"):
        # Before the Gregorian calendar texts and moments are no longer one to one in every time zone.
        moment = datetime(1600, 1, 1) + timedelta(microseconds=seed.randrange(800 * 365 * 86_400 * 10**6))
        if word == "DATE":
            return moment.date()
        if word == "TIME":
            return moment.time().isoformat()
        return moment.replace(tzinfo=UTC) if word == "TIMESTAMP_LTZ" else moment
    if word == "ARRAY":
        return [random_value(seed, kind.arguments[0]) for _ in range(seed.randint(0, 3))]
    if word == "MAP":
        keys = seed.sample(["a", "b c", 'q"', "ü"], seed.randint(0, 3))
        return {key: random_value(seed, kind.arguments[1]) for key in keys}
    if word == "STRUCT":
        return tuple(random_value(seed, part) for part in kind.arguments)
    simple: dict[str, Any] = {
        "BOOLEAN": seed.random() < 0.5,
        "VARBINARY": seed.randbytes(seed.randint(0, 9)),
        "VARCHAR": "".join(seed.choices('aé\u20ac𝒳"\\/\n\t\x00{}', k=seed.randint(0, 6))),
    }
    return simple[word]


def test_random_values_of_random_types_go_round(spark: SparkSession) -> None:
    """What INSERT INTO … VALUES writes, a job reads and writes again: the same bytes, for any type."""
    seed = random.Random(23)
    columns = [Column(f"c{i}", random_type(seed)) for i in range(60)]
    specs = [ColumnSpec(name=c.name, type=str(c.type)) for c in columns]
    records = [json_record(columns, [random_value(seed, c.type) for c in columns]) for _ in range(25)]
    decoder = json.decoder(specs)
    frame = spark.createDataFrame(
        [(i, r.decode()) for i, r in enumerate(records)], f"n INT, {json.TEXT} STRING"
    )
    rows = decoder.over(frame).select("n", decoder.undecodable.alias("bad"), *decoder.fields)
    coded = rows.select("n", "bad", json_writing.encode(specs, [rows[c.name] for c in columns]).alias("v"))
    found = coded.orderBy("n").collect()
    assert [r.bad for r in found] == [False] * len(records)
    for record, row in zip(records, found, strict=True):
        if record != bytes(row.v):
            one, other = plain_json.loads(record), plain_json.loads(bytes(row.v))
            assert [
                (n, str(k), one[n], other[n])
                for n, k in ((c.name, c.type) for c in columns)
                if one[n] != other[n]
            ] == []
        assert record == bytes(row.v)


def test_a_map_with_other_keys_is_refused() -> None:
    with pytest.raises(JobError, match="VARCHAR keys"):
        json_writing.check_type("m", parse_type("ARRAY<MAP<INTEGER, BIGINT>>"))


@pytest.mark.parametrize(
    ("kind", "values", "form"),
    [
        ("SMALLINT", [0, 1, -1, 32767, -32768], ">h"),
        ("INTEGER", [0, 1, -1, 2**31 - 1, -(2**31)], ">i"),
        ("BIGINT", [0, 1, -1, 2**63 - 1, -(2**63)], ">q"),
        ("DOUBLE", [0.0, 1.5, -2.25, 1e300, float("-inf")], ">d"),
        ("TINYINT", [0, 1, -1, 127, -128], ">b"),
        ("FLOAT", [0.0, 1.5, -2.25, 3.4028234663852886e38, float("-inf")], ">f"),
        ("BOOLEAN", [True, False], ">?"),
    ],
)
def test_primitives(spark: SparkSession, kind: str, values: list[Any], form: str) -> None:
    frame = spark.createDataFrame(
        [(v,) for v in [*values, None]], f"v {kind if kind != 'INTEGER' else 'INT'}"
    )
    coded = frame.select("v", primitive.encode(F.col("v"), kind).alias("k"))
    rows = coded.select("v", "k", primitive.decode(F.col("k"), kind).alias("back")).collect()
    assert [None if r.k is None else bytes(r.k) for r in rows] == [
        *(struct.pack(form, v) for v in values),
        None,
    ]
    assert [primitive_bytes(r.v, kind) for r in rows] == [None if r.k is None else bytes(r.k) for r in rows]
    assert [r.back for r in rows] == [r.v for r in rows]
    odd = spark.createDataFrame([(bytearray(b"abc"),), (bytearray(b""),)], "k BINARY")
    assert [r.v for r in odd.select(primitive.decode(F.col("k"), kind).alias("v")).collect()] == [None, None]


def test_text_keys(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("ü",), (None,)], "v STRING")
    rows = frame.select(primitive.encode(F.col("v"), "VARCHAR").alias("k")).collect()
    assert [None if r.k is None else bytes(r.k) for r in rows] == ["ü".encode(), None]
    with pytest.raises(JobError, match="A primitive must be one of"):
        primitive.check_plain("DATE")


def source(**more: Any) -> SourceSpec:
    store = StoreRef(name="s", kind="kafka", config={"bootstrap_servers": "localhost:1"})
    base: dict[str, Any] = {
        "view": "leat_src_0",
        "relation": "demo.public.s0",
        "store": store,
        "entity": "t",
        "columns": column_specs("id BIGINT, ts BIGINT, iso VARCHAR"),
        "value_format": "json",
    }
    return SourceSpec(**base | more)


def raw(spark: SparkSession, *values: str) -> DataFrame:
    frame = spark.createDataFrame([(bytearray(v.encode()),) for v in values], "value BINARY")
    position = F.struct(F.lit("t").alias("topic"), F.lit(0).alias("partition"), F.lit(7).alias("offset"))
    return frame.select(
        F.lit(b"k").alias("key"),
        "value",
        F.lit("2020-01-01 00:00:00").cast("timestamp").alias("timestamp"),
        position.alias("__leat_rowmeta"),
    )


def test_a_row_that_its_file_s_reader_refuses_is_none_whatever_its_text_is(spark: SparkSession) -> None:
    why = F.when(F.col("value") == b"{}", F.lit("a row of 1 fields, not 2"))
    position = F.struct(F.lit("a.csv").alias("file"), F.lit(7).alias("offset"), why.alias("reason"))
    rows = raw(spark, "{}", '{"id":1}').withColumn("__leat_rowmeta", position)
    given = source(store=StoreRef(name="s", kind="s3", config={}), value_format="csv")
    assert [row["id"] for row in scans.decoded(rows, given, "m").collect()] == [1]


def test_row_time(spark: SparkSession) -> None:
    def times(timestamp: str, *values: str, **more: Any) -> list[str]:
        found = scans.decoded(raw(spark, *values), source(timestamp=timestamp, **more), "m")
        return [str(r.t) for r in found.select(F.col("__leat_rowtime").cast("string").alias("t")).collect()]

    far = '{"ts":253402300800000}'
    assert times("ts", '{"ts":1700000000123}', '{"id":1}', far) == [
        "2023-11-14 22:13:20.123",
        "2020-01-01 00:00:00",
    ]
    iso = times("iso", '{"iso":"2024-01-02T03:04:05Z"}', '{"iso":"2024-01-02 03:04:05"}', '{"iso":"soon"}')
    assert iso == ["2024-01-02 03:04:05"] * 2
    # The raw records are of 2020. Of a TIMESTAMP too, what is more than a day ahead of them cannot be meant.
    bound, ahead = {"max_ahead_ms": 86_400_000}, '{"iso":"2020-01-02T00:00:00.001Z","ts":1577923200001}'
    good = '{"iso":"2020-01-02T00:00:00Z","ts":1577923200000}'
    assert times("iso", ahead, good, '{"id":1}', **bound) == ["2020-01-02 00:00:00", "2020-01-01 00:00:00"]
    strange = [ahead, good, '{"ts":0}', '{"ts":1577836800}', '{"ts":1577836800000000}', '{"ts":-5}']
    assert times("ts", *strange, **bound) == ["2020-01-02 00:00:00", "1969-12-31 23:59:59.995"]
    assert len(times("ts", *strange)) == 5, "only beyond the year 9999 without a bound"
    own = scans.decoded(
        raw(spark, "{}").withColumn("timestamp", F.expr("now() + INTERVAL 2 DAYS")), source(**bound), "m"
    )
    assert own.collect() == []
    for value, why in (
        (strange[3], "looks like seconds"),
        (strange[4], "microseconds"),
        (ahead, "86400000 ms ahead"),
    ):
        with pytest.raises(Exception, match=f"(?s)LEAT_UNDECODABLE .*column ts,.* {why}"):
            scans.decoded(raw(spark, value), source(timestamp="ts", **bound), None).collect()
    with pytest.raises(JobError, match="timestamp column is BIGINT"):
        scans.row_time(source(columns=column_specs("b BOOLEAN"), timestamp="b"))


def test_records_are_parsed_once(spark: SparkSession) -> None:
    scans.decoded(raw(spark, "{}"), source(), None).createOrReplaceTempView("leat_src_0")
    frame = spark.sql("SELECT upper(iso) AS u FROM leat_src_0 WHERE id > 1 AND iso <> 'x'")
    plan: Any = frame._jdf
    assert plan.queryExecution().executedPlan().toString().count("from_json(StructField(r,") == 1


def test_real_failures_are_told_apart(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    kafka: KafkaConnector,
    tmp_path: Path,
) -> None:
    entity, sink = topic(1), topic(1)
    produce(entity, *({"id": i} for i in range(5)))
    scan = {"entity": entity, "columns": "id BIGINT, n VARCHAR"}
    count = iter(range(100))

    def failure(
        sql: str, out: str = "x BIGINT", checkpoint: str | None = None, **more: Any
    ) -> dict[str, Any]:
        place = checkpoint or (tmp_path / f"c{next(count)}").as_uri()
        document = job([scan | more.pop("scan", {})], sink, sql, out, checkpoint=place, **more)
        spec = JobSpec.model_validate(document)
        try:
            query = run_query.start(spark, spec, lambda _: kafka, slots=4).query
        except JobError as error:
            return {"code": error.code, "detail": error.detail}
        except Exception as error:
            return classify(chain_of(error), spec).as_json()
        end = time.monotonic() + patient(60)
        while query.isActive:
            assert time.monotonic() < end
            time.sleep(0.05)
        java: Any = query._jsq
        chain = chain_of(java.exception().get())
        found = with_record(
            classify(chain, spec), chain, spark, spec, lambda _: kafka, lambda: None
        ).as_json()
        assert "\tat " not in found["detail"]
        return found

    end = "__leat_rowkey, __leat_rowtime FROM leat_src_0"
    assert failure(f"SELECT nope, {end}")["code"] == "job-rejected"
    assert failure(f"SELECT id, id AS id2, {end}")["code"] == "job-rejected"
    zero = failure(f"SELECT 1 / (id - 3) AS x, {end}", "x DOUBLE")
    assert (zero["code"], zero["retryable"], zero["condition"]) == ("job-failed", False, "DIVIDE_BY_ZERO")
    assert zero["span"] == [7, 18]  # 1 / (id - 3)
    assert zero["record"] == {"entity": entity, "partition": "0", "offset": "3"}
    null = failure(f"SELECT n AS x, {end}", "x VARCHAR NOT NULL")
    assert (null["code"], null["retryable"]) == ("job-failed", False)
    assert "column x" in null["detail"]
    bad = failure(f"SELECT id, {end}", scan={"columns": "id BOOLEAN"}, out="x BOOLEAN")
    assert bad["code"] == "undecodable-record"
    refused = failure(
        f"SELECT count(*) AS x, max(__leat_rowkey) AS {end.replace(', ', ', max(__leat_rowtime) AS ')}"
    )
    assert refused["code"] == "job-rejected"
    gone = failure(f"SELECT id, {end}", scan={"entity": "not-there"}, mode="realtime")
    assert gone["code"] == "source-gone"
    assert failure(f"SELECT id, {end}", scan={"entity": "not-there"})["code"] == "source-gone"
    promised = job([scan], sink, f"SELECT id, {end}", "x BIGINT", checkpoint="", delivery="exactly_once")
    promised["sink"]["store"]["kind"] = "kinesis"
    with pytest.raises(JobError, match="exactly_once is not supported"):
        run_query.check(JobSpec.model_validate(promised))

    damaged = tmp_path / "damaged"
    (damaged / "offsets").mkdir(parents=True)
    (damaged / "offsets" / "0").write_text("rubbish")
    (damaged / "commits").mkdir()
    assert failure(f"SELECT id, {end}", checkpoint=damaged.as_uri())["code"] == "checkpoint-damaged"

    # Records that the checkpoint still wants are gone: the topic was made anew while the query was stopped.
    kept = (tmp_path / "kept").as_uri()
    spec = JobSpec.model_validate(job([scan], sink, f"SELECT id, {end}", "x BIGINT", checkpoint=kept))
    query = run_query.start(spark, spec, lambda _: kafka, slots=4).query
    query.processAllAvailable()
    query.stop()
    kafka.drop_entity(entity)
    kafka.create_entity(entity, {"topic.partitions": 1, "topic.replicas": 1}, {})
    assert failure(f"SELECT id, {end}", checkpoint=kept)["code"] == "source-gone"

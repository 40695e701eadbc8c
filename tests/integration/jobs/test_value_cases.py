"""Spark's reader of JSON is held to the table of values, and to plain Python on values that nobody chose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from exact_json import NotExact, read_record
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from random_json import random_record, random_types
from value_cases import CASES, RECORDS, UNDECODABLE, alike

from leatstream.formats import json
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import ColumnSpec

Columns = Sequence[tuple[str, str]]


@pytest.fixture(scope="module")
def read(spark: SparkSession) -> Any:
    """Decodes records in Spark; gives rows as ``exact_json`` does, or ``UNDECODABLE``."""

    def decode(columns: Columns, records: Sequence[bytes]) -> list[Any]:
        types = [(name, parse_type(told.removesuffix(" NOT NULL"))) for name, told in columns]
        specs = [
            ColumnSpec(name=name, type=str(kind), not_null=told.endswith("NULL"))
            for (name, kind), (_, told) in zip(types, columns, strict=True)
        ]
        decoder = json.decoder(specs)
        frame = spark.createDataFrame([(i, bytearray(v)) for i, v in enumerate(records)], "n INT, v BINARY")
        texts = frame.coalesce(1).select("n", F.col("v").cast("string").alias(json.TEXT))
        moments = [
            F.unix_micros(field).alias(f"c{i}") if kind.kind == "TIMESTAMP_LTZ" else field.alias(f"c{i}")
            for i, (field, (_, kind)) in enumerate(zip(decoder.fields, types, strict=True))
        ]
        rows = decoder.over(texts).select("n", decoder.undecodable.alias("bad"), *moments)
        found = sorted(rows.collect(), key=lambda row: row.n)
        return [
            UNDECODABLE
            if row.bad
            else {name: _plain(row[f"c{i}"], kind) for i, (name, kind) in enumerate(types)}
            for row in found
        ]

    return decode


def _plain(value: Any, kind: DataType) -> Any:
    if value is None:
        return None
    if kind.kind == "TIMESTAMP_LTZ":
        if isinstance(value, int):
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
        return value.astimezone(UTC)
    if kind.kind == "ARRAY":
        return [_plain(item, kind.arguments[0]) for item in value]
    if kind.kind == "MAP":
        return {key: _plain(item, kind.arguments[1]) for key, item in value.items()}
    if kind.kind == "STRUCT":
        pairs = zip(kind.fields, kind.arguments, value, strict=True)
        return {name: _plain(item, part) for name, part, item in pairs}
    return bytes(value) if isinstance(value, bytearray) else value


def test_each_type_takes_what_the_table_says(read: Any) -> None:
    names = {kind: f"c{i}" for i, kind in enumerate(dict.fromkeys(case.type for case in CASES))}
    records = [f'{{"{names[case.type]}":{case.text}}}'.encode() for case in CASES]
    unlike = []
    for case, row in zip(CASES, read([(n, t) for t, n in names.items()], records), strict=True):
        found = row if row is UNDECODABLE else row[names[case.type]]
        if not alike(found, case.value):
            unlike.append((case, found))
    assert unlike == []


def test_records_are_one_object_and_nothing_else(read: Any) -> None:
    unlike = []
    for columns in dict.fromkeys(case.columns for case in RECORDS):
        cases = [case for case in RECORDS if case.columns == columns]
        rows = read(columns, [case.record for case in cases])
        unlike += [(case, row) for case, row in zip(cases, rows, strict=True) if not alike(row, case.row)]
    assert unlike == []


def test_generated_records_are_read_as_python_reads_them(read: Any) -> None:
    seed = random.Random(20)
    columns = [(f"c{i}", str(kind)) for i, kind in enumerate(random_types(seed))]
    records = [random_record(seed, columns) for _ in range(1500)]
    unlike, taken = [], 0
    for record, row in zip(records, read(columns, records), strict=True):
        try:
            exact: Any = read_record(columns, record)
            taken += 1
        except NotExact:
            exact = UNDECODABLE
        if not alike(row, exact):
            unlike.append((record, row, exact))
    assert unlike == []
    assert len(records) // 4 < taken < len(records)  # both kinds are compared

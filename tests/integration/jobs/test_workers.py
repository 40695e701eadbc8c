"""Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyspark
from pyspark.sql import SparkSession


def test_workers_read_pyspark_from_where_it_is_installed(spark: SparkSession) -> None:
    """And not from the zip that Spark gives them, of which everything would be compiled anew."""

    def shown(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow
        import pyspark.worker

        yield from (pyarrow.RecordBatch.from_pydict({"file": [pyspark.worker.__file__]}) for _ in batches)

    (row,) = spark.range(1, numPartitions=1).mapInArrow(shown, "file string").collect()
    assert row.file == pyspark.__file__.replace("__init__", "worker")

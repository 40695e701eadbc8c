"""All sources of a job as one stream, so that one batch number fixes what each of them gives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from leatstream_jobs.reading.scans import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIDE = "__leat_side"
ROWS = "__leat_rows_"


def together(scans: Sequence[Scan]) -> DataFrame:
    """Rows with the number of their source, each in the column of its own source."""
    from pyspark.sql import functions as F

    tagged = [
        scan.frame.select(F.lit(i).alias(SIDE), F.struct("*").alias(f"{ROWS}{i}"))
        for i, scan in enumerate(scans)
    ]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), tagged)


def rows_of(batch: DataFrame, side: int) -> DataFrame:
    """The rows of one source, as its scan gave them."""
    return batch.where(f"{SIDE} = {side}").select(f"{ROWS}{side}.*")

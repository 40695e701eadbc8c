"""What the sink of a view makes of Spark's batches before its database has them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from leatstream.connectors.store_marks import find_mark
from leatstream.plan.job_spec import ColumnSpec, JobSpec, Mode, SinkSpec, StoreRef
from leatstream.views.base import Batch
from leatstream_jobs.writing.view_sink import Applier

STORE = StoreRef(name="", kind="view", config={})


class Writer:
    """A view's table in memory."""

    def __init__(self, *, native: bool) -> None:
        self.native = native
        self.batches: list[Batch] = []

    def apply(self, batch: Batch) -> bool:
        self.batches.append(batch)
        return True


def applier(writer: Any, kind: str) -> Applier:
    columns = [ColumnSpec(name="id", type="BIGINT"), ColumnSpec(name="seen at", type=kind)]
    spec = JobSpec(
        query_id="q",
        query_name="q",
        generation=1,
        attempt=1,
        fencing_token="f",
        sql="",
        sources=[],
        sink=SinkSpec(relation="d.s.v", store=STORE, entity="v", columns=columns, value_format="json"),
        mode=Mode.MICRO_BATCH,
        mode_reason="",
        checkpoint="file:///c",
    )
    return Applier(spec, writer)


def frame(kind: pa.DataType, value: int) -> Any:
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    table = pa.table({"c0": [1], "c1": pa.array([value], whole).cast(kind)})
    return SimpleNamespace(toArrow=lambda: table)


BEYOND = [
    ("DATE", pa.date32(), 2_932_897),
    ("TIMESTAMP", pa.timestamp("us"), 253402300800_000000),
    # Milliseconds that were read as seconds.
    ("TIMESTAMP_LTZ", pa.timestamp("us", "UTC"), 1_767_225_600_000_000_000),
]


@pytest.mark.parametrize(("kind", "arrow", "value"), BEYOND)
def test_a_time_that_the_views_database_does_not_take_is_told_with_its_column(
    kind: str, arrow: pa.DataType, value: int
) -> None:
    with pytest.raises(RuntimeError) as caught:
        applier(Writer(native=True), kind).apply(frame(arrow, value), 0)
    mark = find_mark(str(caught.value))
    assert mark is not None
    role, code, sentence = mark
    assert (role, code) == ("sink", "store-rejected")
    assert 'column "seen at"' in sentence
    assert "beyond the years 1 to 9999" in sentence


@pytest.mark.parametrize(("kind", "arrow", "value"), BEYOND)
def test_a_view_of_encoded_values_takes_every_time(kind: str, arrow: pa.DataType, value: int) -> None:
    writer = Writer(native=False)
    applier(writer, kind).apply(frame(arrow, value), 0)
    assert writer.batches[0].rows == [(1, value)]

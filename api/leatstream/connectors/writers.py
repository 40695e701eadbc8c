"""What writes a query's batches and looks rows up, as a driver uses it: one protocol for every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from leatstream.model.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


COUNTS = "rows BIGINT, size BIGINT"  # what a task that writes gives: ``Written``
Nested = Callable[[str, DataType, "SparkColumn"], "SparkColumn"]


@dataclass(frozen=True, slots=True)
class Written:
    """What a store was sent.

    Attributes:
        rows: or records; of a table or view also those that take one back.
        size: bytes, without the store's protocol's.
    """

    rows: int = 0
    size: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.rows + other.rows, self.size + other.size)


def counts(written: Written) -> pa.RecordBatch:
    """What a task reports about its writes."""
    import pyarrow as pa

    return pa.record_batch({name: pa.array([count], pa.int64()) for name, count in asdict(written).items()})


def told(tasks: DataFrame) -> Written:
    """Run the tasks that write, which give ``COUNTS``; returns what they have written."""
    # A row of each task is summed here: in Spark that would be a second stage, with a shuffle of its own.
    return sum((Written(*row) for row in tasks.collect()), Written())


class BatchWriter(Protocol):
    """Writes micro-batches, each once, for one attempt of a query."""

    def committed(self) -> int | None:
        """Number of this checkpoint's last batch that was there when the attempt began, or None."""

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch, once, whatever is repeated.

        Args:
            frame: what the kind's sinks take: records, or the rows of ``TableWriter``.
            number: of the batch.

        Returns:
            What the store was sent of it; nothing where it has the batch already.

        Raises:
            RuntimeError: with a mark of ``store_marks``: what the store says.
        """


class TableWriter(BatchWriter, Protocol):
    """Writes rows to a table, for one attempt of a query."""

    def texts(self, values: Sequence[SparkColumn], nested: Nested) -> list[SparkColumn]:
        """The sink's columns in the form that ``write`` takes: VARCHAR, or what the store needs.

        Args:
            values: one for each column of the sink.
            nested: makes JSON of an ARRAY, MAP or STRUCT, from its column's name, type and value.
        """

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch, once, whatever is repeated; see ``BatchWriter``.

        Args:
            frame: ``key`` and ``value``, structs of ``c0``, ``c1``, … by the sink's columns: the key columns
                and all columns. A row without ``value`` takes the row of its key back.
            number: of the batch.

        Raises:
            RuntimeError: with a mark of ``store_marks``: what the store says.
        """


class TableReader(Protocol):
    """Looks up a table's rows by values of some of its columns."""

    def texts(self, values: Sequence[SparkColumn], nested: Nested) -> list[SparkColumn]:
        """The keys' values, of their columns' types, in the form that ``rows`` takes."""

    def rows(self, keys: DataFrame) -> DataFrame:
        """The rows of these keys as ``value``: JSON texts, as ``formats.json`` reads them.

        Args:
            keys: a column for each key column, in their order, without NULL.

        Raises:
            RuntimeError: when it is computed, with a mark of ``store_marks``: what the store says.
        """


@dataclass(frozen=True, slots=True)
class BatchTarget:
    """Whose rows a writer of rows writes: enough to tell a batch of theirs from any other.

    Attributes:
        checkpoint: URI of the directory that is this query generation's own.
    """

    query_id: str
    query_name: str
    generation: int
    checkpoint: str

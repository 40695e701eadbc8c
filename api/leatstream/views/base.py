"""What both kinds of view store share: the columns of a view's table, a batch of rows, and the faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from leatstream.errors import AttemptBehindError, StoreError
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import JobSpec

TIME = "leat_time"
MICROSECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Table:
    """A view's table; its columns are called ``c0``, ``c1``, … so that every name is possible.

    Attributes:
        keys: indexes of the columns that identify a row; empty where every row is kept.
        retention_ms: how long a row stays; the table then has the column ``leat_time``, in microseconds.
        indexes: columns of each index by its name.
    """

    name: str
    generation: int
    types: tuple[DataType, ...]
    keys: tuple[int, ...] = ()
    retention_ms: int | None = None
    indexes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, ``leat_time`` included."""
        names = tuple(f"c{i}" for i in range(len(self.types)))
        return (*names, TIME) if self.retention_ms is not None else names

    @classmethod
    def of(cls, spec: JobSpec) -> Table:
        """The table a job writes."""
        view, sink = spec.sink.view, spec.sink
        if view is None:
            raise ValueError("the job writes to a store")
        places = {column.name: i for i, column in enumerate(sink.columns)}
        return cls(
            name=view.table,
            generation=view.generation,
            types=tuple(parse_type(column.type) for column in sink.columns),
            keys=tuple(places[name] for name in sink.key_columns),
            retention_ms=view.retention_ms,
            indexes=tuple(
                (name, tuple(places[c] for c in columns if c in places))
                for name, columns in view.indexes.items()
            ),
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """What one micro-batch does to a view.

    Attributes:
        number: Spark's batch id.
        rows: values to write, in the store's own encoding, ``leat_time`` (or None) last if the table has it.
        gone: key values of rows to delete, applied before ``rows``.
        time: when it is applied, microseconds since 1970.
        watermark: event time below which rows are late, microseconds since 1970.
    """

    number: int
    rows: Sequence[tuple[Any, ...]]
    gone: Sequence[tuple[Any, ...]]
    time: int
    watermark: int | None = None


class ViewWriter(Protocol):
    """Writes one view for one attempt of its query."""

    native: bool
    """Whether rows hold Python values as they are; else those of ``model.view_values``."""

    def open(self) -> None:
        """Claim the view for this attempt and make its table; older attempts cannot write from then on.

        Rows of another generation are dropped.

        Raises:
            AttemptBehindError: a newer attempt has claimed it.
            StoreError: the database does not answer.
        """

    def committed(self) -> int | None:
        """Number of the last batch of this generation that was there at ``open``."""

    def apply(self, batch: Batch) -> bool:
        """Apply a batch in one transaction; False if it had been applied before, and nothing was done.

        Raises:
            StoreError: a newer attempt has claimed the view, or the database does not answer.
        """

    def close(self) -> None:
        """End the connection."""


_NEWER = "A newer attempt of the query writes this materialized view now."


def fenced() -> StoreError:
    """A newer attempt writes the view."""
    return StoreError("store-rejected", _NEWER)


def behind(newest: int) -> AttemptBehindError:
    """A newer attempt has written the view before this one began."""
    return AttemptBehindError(_NEWER, newest)


def with_times(table: Table, batch: Batch) -> Sequence[tuple[Any, ...]]:
    """The rows to write; where they have no time of their own, that of the batch."""
    if table.retention_ms is None:
        return batch.rows
    return [row if row[-1] is not None else (*row[:-1], batch.time) for row in batch.rows]

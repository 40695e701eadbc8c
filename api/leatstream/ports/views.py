"""The store of materialized views, and SELECT over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from leatstream.plan.job_spec import ViewDatabase


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A SELECT over materialized views, in the words of the view store's own database.

    Attributes:
        sql: with placeholders for ``parameters``; view ``i`` of ``tables`` is called ``view_name(i, table)``.
        tables: table and generation of each view.
        limit: most rows to fetch.
        timeout: seconds.
    """

    sql: str
    parameters: Sequence[object]
    tables: Sequence[tuple[str, int]]
    limit: int
    timeout: float


@dataclass(frozen=True, slots=True)
class Freshness:
    """How new a view's rows are: its newest batch, None before the first; times in microseconds of 1970."""

    batch: int | None
    batch_time: int | None
    watermark: int | None


class ViewStore(Protocol):
    """Keeps the rows of materialized views; jobs write them.

    Attributes:
        unusable: why it keeps none; None if it does.
    """

    kind: Literal["sqlite", "postgresql"]
    database: ViewDatabase
    unusable: str | None

    @property
    def password(self) -> str | None:
        """Of the database; InternalError secret-unreadable if it keeps none."""

    def read(self, snapshot: Snapshot) -> tuple[list[tuple[object, ...]], list[Freshness]]:
        """Rows and the freshness of each view, as of one batch of each.

        Raises:
            EngineError: view-not-ready, if a view's job has not begun; statement-timeout.
            RequestError: not-computable, such as a division by zero.
        """

    def add_index(self, table: str, name: str, columns: Sequence[int]) -> None:
        """Make an index, if the table is there; the job makes it otherwise."""

    def drop_index(self, table: str, name: str) -> None:
        """Take an index away; nothing happens if it is not there."""

    def drop(self, table: str) -> None:
        """Take a view's rows away; nothing happens if they are not there."""

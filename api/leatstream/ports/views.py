"""The store of materialized views, and SELECT over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from leatstream.plan.job_spec import ViewDatabase


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A SELECT over materialized views, in the dialect of the view store's database.

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
    """How new a view's rows are: its newest batch, None before the first; microseconds since 1970."""

    batch: int | None
    batch_time: int | None
    watermark: int | None


class ViewStore(Protocol):
    """Keeps the rows of materialized views; jobs write them.

    Attributes:
        unusable: why it keeps no views; None if it does.
    """

    kind: Literal["sqlite", "postgresql"]
    database: ViewDatabase
    unusable: str | None

    @property
    def password(self) -> str | None:
        """Password of the database; InternalError secret-unreadable if it keeps no views."""

    def read(self, snapshot: Snapshot) -> tuple[list[tuple[object, ...]], list[Freshness]]:
        """Rows, and the freshness of each view; the rows of a view are those of one batch.

        Raises:
            EngineError: view-not-ready, if a view's job has not begun; statement-timeout.
            RequestError: not-computable, such as a division by zero.
        """

    def add_index(self, table: str, name: str, columns: Sequence[int]) -> None:
        """Create an index; idempotent. Where the table does not exist yet, its job creates the index.

        Args:
            table: the view's table.
            name: the index's name.
            columns: positions of its columns, from 0.
        """

    def drop_index(self, table: str, name: str) -> None:
        """Remove an index; idempotent."""

    def drop(self, table: str) -> None:
        """Remove a view's table; called after its query has ended. Idempotent."""

"""Batches that are processed in Python: what all of them share."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from leatstream.connectors.writers import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(slots=True)
class BatchSink:
    """A job's sink, opened for its batches.

    Attributes:
        shape: makes of the SQL's rows what the sink takes, such as records (``key``, ``value``).
        put: writes a batch of that, with its number; returns what it has sent once it is stored; None where
            it does not know.
        written: what all batches have sent; None once it is not known.
    """

    shape: Callable[[DataFrame], DataFrame]
    put: Callable[[DataFrame, int], Written | None]
    written: Written | None = field(default_factory=Written)

    def write(self, frame: DataFrame, number: int) -> None:
        """Write a batch of what ``shape`` gives; returns when it is stored."""
        sent = self.put(frame, number)
        self.written = None if sent is None or self.written is None else self.written + sent


class Closed(Exception):
    """No batch begins any more."""


class Batches(ABC):
    """What Spark calls for each batch.

    Attributes:
        error: what a batch failed with; Spark itself only says that Python code failed.
        number: of the batch at work; None between two.
        begun: the newest number that was worked at.
        adaptive: whether Spark may plan a batch's frames again between their stages. The frames are small:
            where the SQL runs batch by batch, that costs more than it saves.
    """

    adaptive: ClassVar[bool] = False

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.number: int | None = None
        self.begun: int | None = None
        self._turn = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Let no further batch begin; the one at work ends."""
        with self._turn:
            self._closed = True

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Process one batch."""
        with self._turn:
            if self._closed:
                raise Closed(f"batch {number} is left to the next attempt")
            self.number = self.begun = number
        try:
            if not self.adaptive:
                batch.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
            self._run(batch, number)
        except Exception as error:
            self.error = error
            raise
        finally:
            self.number = None

    @abstractmethod
    def _run(self, batch: DataFrame, number: int) -> None:
        """Process one batch; it may be the repetition of one that failed."""


@contextmanager
def keeping(batch: DataFrame) -> Iterator[None]:
    """Meanwhile the batch is read and decoded once, however often its rows are used."""
    batch.persist()
    try:
        yield
    finally:
        batch.unpersist()

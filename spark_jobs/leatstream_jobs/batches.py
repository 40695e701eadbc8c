"""Batches that are worked off in Python: what all of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class BatchSink:
    """A job's sink, opened for its batches.

    Attributes:
        shape: makes of the SQL's rows what the sink takes, such as records (``key``, ``value``).
        write: writes a batch of that, with its number; returns when it is there.
    """

    shape: Callable[[DataFrame], DataFrame]
    write: Callable[[DataFrame, int], None]

"""Bytes that a store's own clients count in a driver's JVM, and how a job's are told from others'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

# Set on the session by the job: whom its sources read for.
READER = "leatstream.reader"


def reader_of(query_id: str) -> str:
    """The value of ``READER`` for a query."""
    return f"leatstream-{query_id}"


class Traffic(Protocol):
    """What is counted, by the client's name, since each client was made."""

    def read(self, reader: str) -> Mapping[str, int]:
        """Bytes that were read for a reader (``READER``)."""

    def sent(self, entity: str) -> Mapping[str, int]:
        """Bytes that were sent to an entity, by whomever."""

    def records_sent(self, entity: str) -> Mapping[str, int]:
        """Records that were sent to an entity, by whomever."""

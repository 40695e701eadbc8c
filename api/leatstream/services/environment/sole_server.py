"""A server that shares its catalog with no other."""

from __future__ import annotations

from collections.abc import Collection


class SoleServer:
    """Looks after every query (``ports.Leases``)."""

    def renew(self) -> None:
        """All queries are this server's."""

    def hand_over(self, query_id: str) -> None:
        """There is nobody to take it."""

    def close(self, kept: Collection[str] = ()) -> None:
        """Nothing was taken."""

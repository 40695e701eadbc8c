"""What a query's metrics say of its progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def known_lag(metrics: Mapping[str, Any]) -> int | None:
    """Records that a query has not read yet, over all sources; None if none of them reports it.

    Args:
        metrics: of the query's status, as the server keeps them and as REST shows them.
    """
    lags = [source["lag"] for source in metrics.get("sources") or () if source.get("lag") is not None]
    return sum(lags) if lags else None

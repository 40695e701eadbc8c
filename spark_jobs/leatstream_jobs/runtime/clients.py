"""Who counts the bytes of a kind of store, in this driver's JVM."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from leatstream.connectors.registry import connector_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from leatstream.connectors.traffic import Traffic as Clients

_LOG = logging.getLogger("leatstream_jobs")


def clients_of(spark: SparkSession, kind: str) -> Clients | None:
    """The kind's own clients, as far as they count; None where they do not, or run in other processes."""
    try:
        found = connector_classes().get(kind)
        return found.traffic(spark) if found is not None else None
    except Exception as error:
        _LOG.debug("bytes cannot be counted: %s", type(error).__name__)
        return None

"""Constructs written by hand on top of ``l1``: what to reach for first."""

from __future__ import annotations

from leatstream_cdktf.l1 import LeatstreamProvider
from leatstream_cdktf.l2._statement import Sink
from leatstream_cdktf.l2.application import Application
from leatstream_cdktf.l2.changelog import Changelog
from leatstream_cdktf.l2.clickhouse_store import ClickHouseStore
from leatstream_cdktf.l2.databricks_store import DatabricksStore
from leatstream_cdktf.l2.iceberg_store import IcebergGlueStore, IcebergRestStore
from leatstream_cdktf.l2.namespaces import Database, Schema
from leatstream_cdktf.l2.oracle_store import OracleStore
from leatstream_cdktf.l2.query import Query
from leatstream_cdktf.l2.snowflake_store import SnowflakeStore
from leatstream_cdktf.l2.stores import KafkaStore, KinesisStore, S3Store
from leatstream_cdktf.l2.stream import Stream
from leatstream_cdktf.l2.table import Table

__all__ = [
    "Application",
    "Changelog",
    "ClickHouseStore",
    "Database",
    "DatabricksStore",
    "IcebergGlueStore",
    "IcebergRestStore",
    "KafkaStore",
    "KinesisStore",
    "LeatstreamProvider",
    "OracleStore",
    "Query",
    "S3Store",
    "Schema",
    "Sink",
    "SnowflakeStore",
    "Stream",
    "Table",
]

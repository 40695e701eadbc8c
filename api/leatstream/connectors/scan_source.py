"""Spark's Python data source of one scan, for kinds of store that Spark does not read itself.

Imported where a connector reads a stream and by Spark's Python workers only. What a reader needs to know
travels inside the pickled class, not as options: options end up in plans and logs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceStreamReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_scan(
    spark: SparkSession, name: str, ddl: str, reader: Callable[[Any], DataSourceStreamReader], plan: object
) -> DataFrame:
    """A streaming frame that a reader fills.

    Args:
        spark: the session, in which the source is registered.
        name: of the source, its own in the session.
        ddl: columns of the frame.
        reader: class of the module that Spark's workers import.
        plan: what one is made of; pickled, with the secrets in it.
    """
    # No attribute of this module, so that it is pickled as a whole, with the plan in it.
    members = {"plan": plan, "format": name, "ddl": ddl, "reader": reader, "__module__": __name__}
    spark.dataSource.register(type("PlannedScan", (_ScanSource,), members))
    return spark.readStream.format(name).load()


class _ScanSource(DataSource):
    plan: ClassVar[Any]
    format: ClassVar[str]
    ddl: ClassVar[str]
    reader: ClassVar[Any]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> str:
        return self.ddl

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        found: DataSourceStreamReader = type(self).reader(self.plan)
        return found

"""Bytes as Kafka's clients in the JVM count them, read from their management beans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READ = "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=consumer-{}-*"
_SENT = "kafka.producer:type=producer-topic-metrics,client-id=*,topic={}"


class KafkaTraffic:
    """What Spark's consumers and producers count (``connectors.traffic.Traffic``).

    Consumers count the records that they have handed out: keys, values, headers and their framing, unpacked.
    Producers count the record batches that they send: packed if they pack, and again when they repeat.

    Args:
        spark: whose tasks run in the driver's own JVM.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        # The server's class is none of those that may be called from outside; its interface is.
        self._names = self._method("queryNames", "javax.management.ObjectName", "javax.management.QueryExp")
        self._value = self._method("getAttribute", "javax.management.ObjectName", "java.lang.String")

    def read(self, reader: str) -> dict[str, int]:
        """Bytes that the consumers have read whose groups' names begin with ``reader``."""
        return self._counts(_READ.format(reader), "bytes-consumed-total")

    def sent(self, entity: str) -> dict[str, int]:
        """Bytes that the producers have sent to a topic."""
        return self._counts(_SENT.format(entity), "byte-total")

    def _counts(self, pattern: str, attribute: str) -> dict[str, int]:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        wanted = self._jvm.javax.management.ObjectName(pattern)
        found: dict[str, int] = {}
        for name in self._names.invoke(self._server, self._array("java.lang.Object", wanted, None)):
            try:
                told = self._value.invoke(self._server, self._array("java.lang.Object", name, attribute))
            except Py4JJavaError:
                continue  # closed in between
            found[str(name.getKeyProperty("client-id"))] = int(told)
        return found

    def _method(self, name: str, *types: str) -> Any:
        forName = self._jvm.java.lang.Class.forName
        return forName("javax.management.MBeanServer").getMethod(
            name, self._array("java.lang.Class", *map(forName, types))
        )

    def _array(self, kind: str, *items: Any) -> Any:
        package, _, name = kind.rpartition(".")
        made = self._gateway.new_array(getattr(getattr(self._jvm, package), name), len(items))
        for place, item in enumerate(items):
            made[place] = item
        return made

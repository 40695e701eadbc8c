"""Bytes as Kafka's clients in the JVM count them, read from their management beans."""

from __future__ import annotations

from functools import cached_property
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
        self._jvm: Any = spark._jvm

    def read(self, reader: str) -> dict[str, int]:
        """Bytes that the consumers have read whose groups' names begin with ``reader``."""
        return self._counts(_READ.format(reader), "bytes-consumed-total")

    def sent(self, entity: str) -> dict[str, int]:
        """Bytes that the producers have sent to a topic."""
        return self._counts(_SENT.format(entity), "byte-total")

    def records_sent(self, entity: str) -> dict[str, int]:
        """Records that the producers have sent to a topic, those that they repeat again."""
        return self._counts(_SENT.format(entity), "record-send-total")

    def _counts(self, pattern: str, attribute: str) -> dict[str, int]:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        wanted = self._class("javax.management.ObjectName")(pattern)
        server, names, value = self._beans
        found: dict[str, int] = {}
        for name in names.invoke(server, self._array("java.lang.Object", wanted, None)):
            try:
                told = value.invoke(server, self._array("java.lang.Object", name, attribute))
            except Py4JJavaError:
                continue  # closed in between
            found[str(name.getKeyProperty("client-id"))] = int(told)
        return found

    @cached_property
    def _beans(self) -> tuple[Any, Any, Any]:
        """The server of the beans, and its methods ``queryNames`` and ``getAttribute``."""
        server = self._class("java.lang.management.ManagementFactory").getPlatformMBeanServer()
        bean, text = "javax.management.ObjectName", "java.lang.String"
        names = self._method("queryNames", bean, "javax.management.QueryExp")
        return server, names, self._method("getAttribute", bean, text)

    def _method(self, name: str, *types: str) -> Any:
        # The server's class is none of those that may be called from outside; its interface is.
        named = self._class("java.lang.Class").forName
        kinds = self._array("java.lang.Class", *map(named, types))
        return named("javax.management.MBeanServer").getMethod(name, kinds)

    def _class(self, name: str) -> Any:
        return getattr(self._jvm, name)  # as one name: each package of it would be looked for in every jar

    def _array(self, kind: str, *items: Any) -> Any:
        made = self._gateway.new_array(self._class(kind), len(items))
        for place, item in enumerate(items):
            made[place] = item
        return made

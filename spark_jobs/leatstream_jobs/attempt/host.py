"""What an attempt needs of the process that it runs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from leatstream.connectors.base import Connector
from leatstream.plan.job_spec import StoreRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream_jobs.driver.loop import LogTail
    from leatstream_jobs.runtime.protocol import Client

Open = Callable[[str, str, Mapping[str, Any], Mapping[str, str]], Connector]


class Host(Protocol):
    """What an attempt needs of the process that it runs in, alone or beside others.

    Attributes:
        client: of the API, with the contact of this attempt.
        tail: log lines of this attempt.
        stop_seconds: how long a query may take to stop, once the process is to end.
        look_seconds: between two looks at Spark.
    """

    client: Client
    work_dir: Path
    tail: LogTail
    slots: int
    stop_seconds: float
    look_seconds: float

    @property
    def heartbeat_seconds(self) -> float:
        """Between two words to the API."""

    @property
    def stop_asked(self) -> bool:
        """Whether the query is to stop in order."""

    def connector(self, store: StoreRef, secrets: Mapping[str, str], make: Open) -> Connector:
        """The connector of a store, ``secrets`` by field path; ``make`` opens one where there is none yet."""

    def is_free(self, spark: SparkSession) -> bool:
        """Once a query has stopped: whether the process could run another one, as if this had never been."""

    def cut_off(self, spark: SparkSession, query: StreamingQuery | None) -> None:
        """No further write of the query, whatever it takes."""

    def jvm_lost(self) -> None:
        """The JVM has ended; what is to be done before the attempt says so.

        Raises:
            EndsWithProcess: it need not say so.
        """

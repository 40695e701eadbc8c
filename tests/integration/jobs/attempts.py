"""Attempts in the session that all tests share: the driver's own code, without a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deadlines import patient
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from leatstream.connectors.base import Connector
from leatstream.plan.job_spec import StoreRef
from leatstream_jobs.attempt.attempt import Attempt
from leatstream_jobs.attempt.host import Open
from leatstream_jobs.driver.loop import LogTail
from leatstream_jobs.runtime.protocol import Contact


class Service:
    """The API's side: takes heartbeats and says when to stop."""

    query_name = None

    def __init__(self, enough: Callable[[Mapping[str, Any]], bool], seconds: float) -> None:
        self.enough, self.end = enough, time.monotonic() + patient(seconds)
        self.contact = Contact(3600)  # from now on: a run of all tests may last longer
        self.beats: list[dict[str, Any]] = []

    def heartbeat(self, body: dict[str, Any]) -> str:
        """The driver's report."""
        self.beats.append(body)
        assert time.monotonic() < self.end, body
        return "stop" if self.enough(body) else "continue"

    def resolve_secrets(self, references: list[str]) -> dict[str, str]:
        """No store here has any."""
        return {}

    def function_sources(self, digests: list[str]) -> dict[str, str]:
        """No job here calls any."""
        return {}


class Host:
    """What an attempt asks of its driver (``leatstream_jobs.attempt.host.Host``)."""

    heartbeat_seconds = 1.0
    look_seconds = 0.1
    stop_asked = False

    def __init__(self, service: Service) -> None:
        self.client, self.tail = service, LogTail()
        self.slots, self.stop_seconds = 2, 0.0
        self.work_dir = Path("/nowhere")  # no job here calls functions in Java

    def connector(self, store: StoreRef, secrets: Mapping[str, str], make: Open) -> Connector:
        """A new one each time."""
        return make(store.kind, store.name, store.config, secrets)

    def is_free(self, spark: SparkSession) -> bool:
        """The session is that of all tests."""
        return False

    def cut_off(self, spark: SparkSession, query: StreamingQuery | None) -> None:
        """The session is that of all tests, and goes on."""
        if query is not None:
            query.stop()

    def jvm_lost(self) -> None:
        """The tests would see it."""


def attempt(
    spark: SparkSession,
    document: Mapping[str, Any],
    enough: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    seconds: float = 60,
) -> dict[str, Any]:
    """Run an attempt until ``enough`` of a heartbeat, or until it ends; the last heartbeat."""
    service = Service(enough, seconds)
    host: Any = Host(service)
    Attempt(host, spark, document).run()
    return service.beats[-1]


def written(count: int) -> Callable[[Mapping[str, Any]], bool]:
    """Whether so many rows have been written, and the sources are known by then."""
    return lambda beat: (beat.get("progress") or {}).get("output_rows_total") == count

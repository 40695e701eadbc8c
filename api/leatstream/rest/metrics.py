"""Prometheus metrics. Those of queries are read at each scrape, so what is deleted vanishes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from starlette.types import Scope

from leatstream.model.objects import Query, QueryState
from leatstream.model.query_states import WITH_DRIVER
from leatstream.services.environment import Environment
from leatstream.services.queries.catalog import all_queries

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class RequestTimes:
    """How long requests took, by method, route and status."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "leatstream_api_request_seconds",
            "Time from a request's arrival to the end of its answer.",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self.registry,
        )

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Note one request, by its route's template and never its path: names are unbounded.

        So are methods, which any client may make up: each label stays in memory for good.

        Args:
            scope: of the request.
            status: of its answer; 0 = the client left before there was one.
            seconds: from its arrival to the end of its answer.
        """
        route = getattr(scope.get("route"), "path_format", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._seconds.labels(method, route, str(status or 499)).observe(seconds)


class QueryMetrics:
    """Collects the state and progress of every query."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def collect(self) -> Iterable[Metric]:
        """The metrics at this moment."""
        state = GaugeMetricFamily(
            "leatstream_query_state", "1 for the state a query is in, else 0.", labels=("query", "state")
        )
        restarts = CounterMetricFamily(
            "leatstream_query_restarts",
            "Starts of the query's job after its first one, after faults, stops and changes.",
            labels=("query",),
        )
        numbers = {
            name: family(f"leatstream_query_{name}", text, labels=("query",))
            for name, family, text in _NUMBERS
        }
        lag = GaugeMetricFamily(
            "leatstream_query_source_lag_records",
            "Records in the source that the query has not read yet; of one that it reads twice, the most.",
            labels=("query", "source", "partition"),
        )
        event_lag = GaugeMetricFamily(
            "leatstream_query_event_time_lag_seconds",
            "How far the watermark is behind the clock.",
            labels=("query",),
        )
        slots = {
            name: GaugeMetricFamily(f"leatstream_query_slot_{name}", text, labels=("query", "source", "slot"))
            for name, text in _SLOTS
        }
        for query in all_queries(self._env):
            for one in QueryState:
                state.add_metric((query.name, one.value), float(query.status.state is one))
            restarts.add_metric((query.name,), float(query.status.starts_again))
            if query.status.state not in WITH_DRIVER:
                continue  # its last figures are no news
            _add(event_lag, (query.name,), _behind_clock(query, self._env.clock.now()))
            for name, family in numbers.items():
                _add(family, (query.name,), _figure(query, name))
            for (relation, partition), left in _lags(query).items():
                _add(lag, (query.name, relation, partition), left)
            for source in query.status.metrics.get("sources") or ():
                relation, slot = str(source.get("relation")), source.get("slot") or {}
                for name, family in slots.items():
                    _add(family, (query.name, relation, str(slot.get("name"))), slot.get(name))
        passes = SummaryMetricFamily(
            "leatstream_reconcile_seconds",
            "Time of the passes over all queries of this server.",
            count_value=self._env.passes.count,
            sum_value=self._env.passes.seconds,
        )
        return [state, restarts, *numbers.values(), lag, event_lag, *slots.values(), passes]


_NUMBERS: tuple[tuple[str, Any, str], ...] = (
    ("input_rows", CounterMetricFamily, "Rows read by the present attempt."),
    ("output_rows", CounterMetricFamily, "Rows written by the present attempt."),
    ("input_bytes", CounterMetricFamily, "Bytes read by the present attempt, where they are counted."),
    ("output_bytes", CounterMetricFamily, "Bytes written by the present attempt, where they are counted."),
    ("skipped_rows", CounterMetricFamily, "Records skipped because they could not be decoded."),
    ("untimely_rows", CounterMetricFamily, "Of the skipped records, those with an impossible event time."),
    ("late_rows", CounterMetricFamily, "Rows left out because they came too late for their window."),
    ("input_rows_per_second", GaugeMetricFamily, "Rate of reading."),
    ("processed_rows_per_second", GaugeMetricFamily, "Rate of processing."),
    ("output_rows_per_second", GaugeMetricFamily, "Rate of writing, where rows are counted."),
    ("batch_duration_seconds", GaugeMetricFamily, "Duration of the last batch."),
    ("progress_age_seconds", GaugeMetricFamily, "Seconds since the query last did something."),
    ("batch_limit", GaugeMetricFamily, "Records of each source that the next batch takes at most."),
    (
        "memory_bytes",
        GaugeMetricFamily,
        "Resident memory of the query's driver, JVM and workers included; of one that is shared, the whole.",
    ),
    (
        "cpu_seconds",
        CounterMetricFamily,
        "Processor time of the query's driver in the present attempt; of one that is shared, the whole.",
    ),
    ("state_rows", GaugeMetricFamily, "Rows kept as state."),
    ("state_bytes", GaugeMetricFamily, "Bytes kept as state."),
)
_SLOTS = (
    ("lag_bytes", "Bytes of its log that the database has written since the query was last done with it."),
    ("kept_bytes", "Bytes of its log that the database keeps because of the query."),
)
_COUNTED = (
    "input_rows",
    "output_rows",
    "input_bytes",
    "output_bytes",
    "skipped_rows",
    "untimely_rows",
    "late_rows",
    "cpu_seconds",
)


def _figure(query: Query, name: str) -> Any:
    reported = query.status.metrics
    if name == "progress_age_seconds":
        return reported.get("age_seconds")
    if name == "batch_duration_seconds":
        took = reported.get("batch_duration_ms")
        return None if took is None else took / 1000
    return reported.get(f"{name}_total" if name in _COUNTED else name)


def _lags(query: Query) -> dict[tuple[str, str], Any]:
    """By source and partition: a source that a join reads twice appears twice."""
    found: dict[tuple[str, str], Any] = {}
    for source in query.status.metrics.get("sources") or ():
        for partition, left in (source.get("partition_lags") or {}).items():
            place = str(source.get("relation")), str(partition)
            found[place] = max(left, found.get(place, left))
    return found


def _behind_clock(query: Query, now: datetime) -> float | None:
    watermark = query.status.metrics.get("watermark")
    if not watermark:
        return None
    return max(0.0, (now - datetime.fromisoformat(str(watermark))).total_seconds())


def _add(family: Any, labels: tuple[str, ...], value: Any) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        family.add_metric(labels, float(value))


def render(env: Environment, times: RequestTimes) -> bytes:
    """Everything as Prometheus text."""
    queries = CollectorRegistry()
    queries.register(QueryMetrics(env))
    return generate_latest(queries) + generate_latest(times.registry)

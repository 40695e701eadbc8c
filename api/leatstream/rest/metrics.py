"""Prometheus metrics. Those of queries are read at each scrape, so what is deleted vanishes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.types import Scope

from leatstream.model.objects import Query, QueryState
from leatstream.services.environment import Environment

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PAGE = 1000


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
        """Note one request. The route's template is the label, never the path: names are unbounded."""
        route = getattr(scope.get("route"), "path_format", "other")
        self._seconds.labels(scope["method"], route, str(status or 499)).observe(seconds)


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
            "leatstream_query_restarts", "Restarts since the user last started it.", labels=("query",)
        )
        numbers = {
            name: family(f"leatstream_query_{name}", text, labels=("query",))
            for name, family, text in _NUMBERS
        }
        lag = GaugeMetricFamily(
            "leatstream_query_source_lag_records",
            "Records in the source that the query has not read yet.",
            labels=("query", "source"),
        )
        slots = {
            name: GaugeMetricFamily(f"leatstream_query_slot_{name}", text, labels=("query", "source", "slot"))
            for name, text in _SLOTS
        }
        for query in _all_queries(self._env):
            for one in QueryState:
                state.add_metric((query.name, one.value), float(query.status.state is one))
            restarts.add_metric((query.name,), float(query.status.restarts))
            for name, family in numbers.items():
                _add(family, (query.name,), query.status.metrics.get(_PROGRESS.get(name, name)))
            for source in query.status.metrics.get("sources") or ():
                relation, slot = str(source.get("relation")), source.get("slot") or {}
                _add(lag, (query.name, relation), source.get("lag"))
                for name, family in slots.items():
                    _add(family, (query.name, relation, str(slot.get("name"))), slot.get(name))
        return [state, restarts, *numbers.values(), lag, *slots.values()]


_NUMBERS: tuple[tuple[str, Any, str], ...] = (
    ("input_rows", CounterMetricFamily, "Rows read by the present attempt."),
    ("output_rows", CounterMetricFamily, "Rows written by the present attempt."),
    ("skipped_rows", CounterMetricFamily, "Records skipped because they could not be decoded."),
    ("late_rows", CounterMetricFamily, "Rows left out because they came too late for their window."),
    ("input_rows_per_second", GaugeMetricFamily, "Rate of reading."),
    ("processed_rows_per_second", GaugeMetricFamily, "Rate of processing."),
    ("batch_duration_ms", GaugeMetricFamily, "Duration of the last batch in milliseconds."),
    ("state_rows", GaugeMetricFamily, "Rows kept as state."),
    ("state_bytes", GaugeMetricFamily, "Bytes kept as state."),
)
_SLOTS = (
    ("lag_bytes", "Bytes of its log that the database has written since the query was last done with it."),
    ("kept_bytes", "Bytes of its log that the database keeps because of the query."),
)
_PROGRESS = {name: f"{name}_total" for name in ("input_rows", "output_rows", "skipped_rows", "late_rows")}


def _add(family: Any, labels: tuple[str, ...], value: Any) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        family.add_metric(labels, float(value))


def _all_queries(env: Environment) -> Iterator[Query]:
    after = ""
    while True:
        with env.open_unit(write=False) as unit:
            page = unit.queries.page(after=after, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].name


def render(env: Environment, times: RequestTimes) -> bytes:
    """Everything as Prometheus text."""
    queries = CollectorRegistry()
    queries.register(QueryMetrics(env))
    return generate_latest(queries) + generate_latest(times.registry)

"""Whether a running query gets on: how old its figures are, and what it waits for.

The driver says how long ago the query last did something, and what it waits for if that is too long ago
(``leatstream_jobs.attempt.pulse``). What is shown of a query is as of the moment it is asked for: figures age
between two heartbeats too, and rates of a query that stands still are no rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from leatstream.model.instants import iso, milliseconds
from leatstream.model.objects import Query, QueryState

# A heartbeat comes each second, in crowded drivers every eight.
_UNHEARD = 15.0


def with_pulse(metrics: Mapping[str, Any], pulse: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
    """The figures of a heartbeat with the time that they are of.

    Args:
        metrics: figures of the job.
        pulse: what its driver saw of its progress.
        now: the time.
    """
    if not pulse:
        return dict(metrics)
    found = {
        **metrics,
        "as_of": _before(now, float(pulse.get("age_seconds") or 0.0)),
        "rhythm_seconds": pulse.get("rhythm_seconds"),
        "waits_for": pulse.get("waits_for"),
    }
    if "lag_age_seconds" in pulse:  # drivers of earlier releases do not say it
        lag_age = pulse["lag_age_seconds"]
        found["lag_as_of"] = None if lag_age is None else _before(now, float(lag_age))
    return found


def _before(now: datetime, seconds: float) -> str:
    return iso(milliseconds(now - timedelta(seconds=seconds)))


def age_of(query: Query, now: datetime, as_of: str = "as_of") -> float | None:
    """Seconds since the query last did something; None where nobody knows.

    Args:
        query: as the catalog has it.
        now: the time.
        as_of: which time of its metrics counts, in place of that.
    """
    at = query.status.metrics.get(as_of)
    return max(0.0, (now - datetime.fromisoformat(str(at))).total_seconds()) if at else None


def waits_for(query: Query, now: datetime) -> str | None:
    """What a running query waits for, in words; None while it gets on, or does not run."""
    metrics, age = query.status.metrics, age_of(query, now)
    if query.status.state is not QueryState.RUNNING or age is None:
        return None
    if metrics.get("waits_for"):
        return str(metrics["waits_for"])
    late = age > float(metrics.get("rhythm_seconds") or 0.0) + _UNHEARD
    return "its driver has said nothing of it" if late else None


def as_seen(query: Query, now: datetime) -> Query:
    """The query with its figures' age; of one that stands still no rates, and a message that says so."""
    age = age_of(query, now)
    if age is None:
        return query
    waits = waits_for(query, now)
    metrics = {**query.status.metrics, "age_seconds": round(age, 1), "waits_for": waits}
    if "lag_as_of" in metrics:
        lag_age = age_of(query, now, "lag_as_of")
        metrics["lag_age_seconds"] = None if lag_age is None else round(lag_age, 3)
    status = replace(query.status, metrics=metrics)
    if waits is not None:
        rates = {name: None for name in metrics if name.endswith("_per_second")}
        still = f"no progress for {age:.0f} s: {waits}"
        message = f"{still}; {status.message}" if status.message else still
        status = replace(status, metrics={**metrics, **rates}, message=message)
    return replace(query, status=status)

"""Finds the record from which a value could not be computed, after the query has failed.

Spark names the expression, but no record. The driver runs the job's SQL again over halves of the batch that
has failed, until one record is left. That takes a short time, or is given up: then no record is named.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import capabilities_of
from leatstream.plan.change import keeps_state
from leatstream.plan.job_spec import JobSpec, StoreRef
from leatstream.plan.record_place import RecordPlace
from leatstream_jobs.attempt.failures import Failure, Link, chain_of, classify
from leatstream_jobs.reading import scans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger("leatstream_jobs")
_TIME = 30.0  # seconds
_COMMITTED = re.compile(r"Current Committed Offsets: (.*?)\n", re.S)
_AVAILABLE = re.compile(r"Current Available Offsets: (.*?)\n", re.S)

Part = tuple[int, int, int]  # partition, first offset, the one behind the last


class _GivenUp(Exception):
    """There is no time left."""


def with_record(
    failure: Failure,
    chain: Sequence[Link],
    spark: SparkSession,
    spec: JobSpec,
    connect: Callable[[StoreRef], Connector],
    breathe: Callable[[], None],
) -> Failure:
    """The failure of a value, with the record where it can be found; any other as it is.

    Args:
        failure: as it was classified.
        chain: it was classified from.
        spark: the query's session.
        spec: of the query.
        connect: opens its store.
        breathe: is called between two steps: the driver is to be heard meanwhile.
    """
    if failure.span is None or not _can_be_run_again(spec):
        return failure
    try:
        record = _search(failure, chain, spark, spec, connect(spec.sources[0].store), breathe)
    except Exception as error:
        _LOG.warning("the record of the failure was not found: %s", type(error).__name__)
        return failure
    if record is None:
        return failure
    where = f"At the record {record.in_words()}: "
    shown = where + failure.shown if failure.shown is not None else None
    return replace(failure, detail=where + failure.detail, shown=shown, record=record)


def _can_be_run_again(spec: JobSpec) -> bool:
    source = spec.sources[0]
    alone = len(spec.sources) == 1 and source.feed is None and capabilities_of(source.store.kind).positions
    return alone and not spec.is_batch_job and not keeps_state(spec)


def _search(
    failure: Failure,
    chain: Sequence[Link],
    spark: SparkSession,
    spec: JobSpec,
    connector: Connector,
    breathe: Callable[[], None],
) -> RecordPlace | None:
    source, end = spec.sources[0], time.monotonic() + _TIME
    ends = connector.ends(source.entity, 5.0)
    begun = _offsets(_COMMITTED, chain, source.entity) or _first_offsets(spec)
    last = _offsets(_AVAILABLE, chain, source.entity)
    parts = _parts(begun, last)
    if not parts:  # in real-time mode a batch has no end before it is over
        parts = _parts(begun, ends)

    def fails(some: Sequence[Part]) -> bool:
        if time.monotonic() > end:
            raise _GivenUp
        breathe()
        raw = connector.read_range(spark, source, some)
        skipped = f"{scans.SKIPPED}{source.view}" if source.on_error == "ignore" else None
        frame = scans.decoded(scans.without_skipped(raw, source), source, skipped)
        frame.createOrReplaceTempView(source.view)
        try:
            spark.sql(spec.sql).write.format("noop").mode("overwrite").save()
        except Exception as error:
            found = classify(chain_of(error), spec)
            return (found.condition, found.span) == (failure.condition, failure.span)
        return False

    found = narrowed(parts, fails)
    return RecordPlace(source.entity, str(found[0]), str(found[1])) if found is not None else None


def _parts(begun: Mapping[int, int], ends: Mapping[int, int]) -> list[Part]:
    return [(p, first, ends[p]) for p, first in sorted(begun.items()) if ends.get(p, first) > first]


def narrowed(parts: Sequence[Part], fails: Callable[[Sequence[Part]], bool]) -> Part | None:
    """The first record, as a part of one, that makes ``fails`` true; None where none does by itself."""
    parts = list(parts)
    while (size := sum(b - a for _, a, b in parts)) > 1:
        left, right = halves(parts, size // 2)
        parts = left if fails(left) else right
    return parts[0] if parts and fails(parts) else None


def halves(parts: Sequence[Part], size: int) -> tuple[list[Part], list[Part]]:
    """The first ``size`` records of the parts, and the others."""
    left: list[Part] = []
    right: list[Part] = []
    for partition, first, end in parts:
        cut = min(end, first + max(0, size))
        size -= cut - first
        left += [(partition, first, cut)] if cut > first else []
        right += [(partition, cut, end)] if end > cut else []
    return left, right


def _offsets(pattern: re.Pattern[str], chain: Sequence[Link], topic: str) -> dict[int, int]:
    matched = next((found for link in chain if (found := pattern.search(link.message))), None)
    found = re.search(rf'"{re.escape(topic)}":(\{{[^{{}}]*\}})', matched[1]) if matched is not None else None
    return {int(p): int(o) for p, o in json.loads(found[1]).items()} if found is not None else {}


def _first_offsets(spec: JobSpec) -> dict[int, int]:
    """Where the query has begun, of its first batch: Spark keeps that in the checkpoint."""
    address = urlsplit(spec.checkpoint)
    if address.scheme not in ("", "file"):
        return {}
    text = (Path(unquote(address.path)) / "sources" / "0" / "0").read_bytes().decode(errors="replace")
    kept = json.loads(text[text.index("{") :]).get(spec.sources[0].entity, {})
    return {int(partition): int(offset) for partition, offset in kept.items()}

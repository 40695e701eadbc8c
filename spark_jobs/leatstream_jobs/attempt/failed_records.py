"""Looks at the record that a query has failed at, after it has failed: which column is to blame, and why.

Nothing is computed for this while records flow. The driver reads the one record again and decodes it in
Python; where it cannot be had, or Python finds nothing wrong with it, the engine's own words stand.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Record
from leatstream.connectors.registry import connector_classes
from leatstream.formats.json_faults import RecordFault, faults_of, in_words, key_faults_of, no_time
from leatstream.plan.job_spec import JobSpec, SourceSpec, StoreRef, value_columns
from leatstream_jobs.attempt.failures import Failure
from leatstream_jobs.attempt.marked_faults import FaultPlace, unread

_LOG = logging.getLogger("leatstream_jobs")
_TO_READ = 5.0  # seconds

Connect = Callable[[StoreRef], Connector]


def with_record_faults(failure: Failure, spec: JobSpec, connect: Connect) -> Failure:
    """The failure, with the columns that are to blame where the record can be read again."""
    place = failure.place
    source = next((s for s in spec.sources if place is not None and s.view == place.view), None)
    if place is None or source is None:
        return failure
    try:
        faults = _found_faults(source, connect(source.store), place)
    except Exception as error:
        _LOG.info("the record at %s could not be read again: %s", place.words, type(error).__name__)
        return failure
    if not faults:
        return failure
    columns = tuple(dict.fromkeys(fault.column for fault in faults if fault.column is not None))
    quiet, shown = (_sentence(source, place, faults, shown=shown) for shown in (False, spec.excerpts))
    return replace(failure, detail=quiet, shown=shown, columns=columns)


def _found_faults(source: SourceSpec, connector: Connector, place: FaultPlace) -> Sequence[RecordFault]:
    """Faults of the first record at the place that has some."""
    end = time.monotonic() + _TO_READ
    for record in connector.records_at(source, place.position, _TO_READ):
        faults = record_faults(source, record) or time_faults(source, record)
        if faults or time.monotonic() > end:
            return faults
    return []


def _sentence(source: SourceSpec, place: FaultPlace, faults: Sequence[RecordFault], *, shown: bool) -> str:
    return unread(source, place.words, in_words(faults, shown=shown))


def time_faults(source: SourceSpec, record: Record) -> Sequence[RecordFault]:
    """What is wrong with the event time of a record that has no other fault."""
    column = next((c for c in value_columns(source) if c.name == source.timestamp), None)
    if column is None or record.value is None or not _is_json(source):
        return []
    return [no_time(column, record.value)]


def record_faults(source: SourceSpec, record: Record) -> Sequence[RecordFault]:
    """What is wrong with a record of the source, where its parts are JSON."""
    if record.value is not None and _is_json(source):
        faults = faults_of(value_columns(source), record.value)
        if faults:
            return faults
    named = set(source.key_only or (source.primary_key if record.value is None else ()))
    if named and source.key_format == "json":
        columns = [column for column in source.columns if column.name in named]
        return key_faults_of(columns, record.key or b"")
    return []


def _is_json(source: SourceSpec) -> bool:
    """Whether its values reach the decoder as JSON: rows of files and of tables do, whatever they were."""
    kind = connector_classes().get(source.store.kind)
    carried = source.value_format if kind is None else kind.carried_format(source.value_format)
    return source.feed is not None or carried == "json"

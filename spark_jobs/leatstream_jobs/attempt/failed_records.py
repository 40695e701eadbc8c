"""Looks at the record that a query has failed at, after it has failed: which column is to blame, and why.

Nothing is computed for this while records flow. The driver reads the one record again and decodes it in
Python; where it cannot be had, or Python finds nothing wrong with it, the engine's own words stand.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Record
from leatstream.formats.json_faults import RecordFault, faults_of
from leatstream.plan.job_spec import JobSpec, SourceSpec, StoreRef, value_columns
from leatstream.plan.record_place import RecordPlace
from leatstream_jobs.attempt.failures import Failure
from leatstream_jobs.attempt.marked_faults import unread

_LOG = logging.getLogger("leatstream_jobs")
_TO_READ = 5.0  # seconds
_TOLD = 3  # faults of one record

Connect = Callable[[StoreRef], Connector]


def with_record_faults(failure: Failure, spec: JobSpec, connect: Connect) -> Failure:
    """The failure, with the columns that are to blame where the record can be read again."""
    record = failure.record
    if record is None or failure.code != "undecodable-record":
        return failure
    source = next((s for s in spec.sources if s.entity == record.entity), None)
    if source is None:
        return failure
    found = None
    try:
        found = connect(source.store).find_record(record.entity, record.partition, record.offset, _TO_READ)
        faults = record_faults(source, found) if found is not None else []
    except Exception as error:
        _LOG.info("the record %s could not be read again: %s", record, type(error).__name__)
        return failure
    if not faults and found is not None:
        faults = time_faults(source, found)
    if not faults:
        return failure
    columns = tuple(dict.fromkeys(fault.column for fault in faults if fault.column is not None))
    quiet, shown = (_sentence(source, record, faults, shown=shown) for shown in (False, spec.excerpts))
    return replace(failure, detail=quiet, shown=shown, columns=columns)


def _sentence(source: SourceSpec, record: RecordPlace, faults: Sequence[RecordFault], *, shown: bool) -> str:
    why = "; ".join(fault.told(shown=shown) for fault in faults[:_TOLD])
    more = f"; {len(faults) - _TOLD} more" if len(faults) > _TOLD else ""
    return unread(source, record.told(), f"{why}{more}")


def time_faults(source: SourceSpec, record: Record) -> Sequence[RecordFault]:
    """What is wrong with the event time of a record that has no other fault."""
    column = next((c for c in value_columns(source) if c.name == source.timestamp), None)
    if column is None or record.value is None or source.value_format != "json":
        return []
    why = "it is the event time of the relation, and holds none"
    value = json.loads(record.value).get(column.name)
    return [RecordFault(column.name, column.type, value, has_value=True, why=why)]


def record_faults(source: SourceSpec, record: Record) -> Sequence[RecordFault]:
    """What is wrong with a record of the source, where its parts are JSON."""
    form = "json" if source.feed is not None else source.value_format
    if record.value is not None and form == "json":
        faults = faults_of(value_columns(source), record.value)
        if faults:
            return faults
    named = set(source.key_only or (source.primary_key if record.value is None else ()))
    if named and source.key_format == "json":
        columns = [column for column in source.columns if column.name in named]
        return [
            replace(f, why=f"of its key, {f.why}") if f.column is None else f
            for f in faults_of(columns, record.key or b"")
        ]
    return []

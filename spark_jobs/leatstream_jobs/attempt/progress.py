"""What a running query has done so far, from Spark's progress reports."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from leatstream_jobs.attempt.live import LiveCounts, look, newest
from leatstream_jobs.reading.scans import READ, SENT, SKIPPED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream.connectors.entities import SourceWatch
    from leatstream.plan.job_spec import SourceSpec


class Figures(Protocol):
    """What batches that keep rows themselves tell, which Spark knows nothing of."""

    late_rows: int
    state_rows: int
    watermark_ms: int | None


_MOST_UNMEASURED = 99  # as many as Spark keeps
_NO_WATERMARK = "1970-01-01T00:00:00"


@dataclass(slots=True)
class Progress:
    """Totals of one attempt.

    Attributes:
        read_bytes: of the records of sources whose clients do not count them.
        sent_bytes: of the records for a sink whose clients do not.
        late_rows: rows behind the watermark that state operators left out. Groups count once per batch and
            task, and some joins do not tell all of theirs.
        latest: Spark's newest report; None until the first batch is committed.
        live: rows of the batch at work, in real-time mode.
        live_rate: its records per second.
        watches: what the sources' stores keep for this reader, by view.
        figures: set where batches keep rows themselves.
        batch_limit: how many records of a source the next batch takes at most; None in real-time mode.
    """

    sources: Sequence[SourceSpec]
    input_rows: int = 0
    output_rows: int | None = None
    skipped_rows: int = 0
    untimely_rows: int = 0
    read_bytes: int = 0
    sent_bytes: int = 0
    late_rows: int = 0
    latest: dict[str, Any] | None = None
    live: LiveCounts | None = None
    live_rate: float | None = None
    watches: dict[str, SourceWatch | None] = field(default_factory=dict)
    figures: Figures | None = None
    batch_limit: int | None = None
    _unmeasured: list[dict[str, Any]] = field(default_factory=list)
    _seen: str = ""
    _done: int = -1
    _live_at: float = 0.0

    def look(self, query: StreamingQuery) -> bool:
        """Take in every report since the last look. Spark keeps the last 100; a look a second misses none.

        Returns:
            Whether there was a new one.
        """
        reports: Any = query._jsq.recentProgress()
        fresh: list[dict[str, Any]] = []
        for i in range(len(reports) - 1, -1, -1):
            if reports[i].timestamp() == self._seen:  # not one before it: clocks are set back
                break
            fresh.append(json.loads(reports[i].json()))
        for report in reversed(fresh):
            self.take(report)
        return bool(fresh)

    def unmeasured(self) -> list[dict[str, Any]]:
        """The reports since this was last asked, oldest first."""
        found, self._unmeasured = self._unmeasured, []
        return found

    def begin_live(self, spark: SparkSession) -> None:
        """Before the query starts: what the JVM has run until now, for another one, is none of its own."""
        self._done = newest(spark)

    def look_live(self, spark: SparkSession) -> None:
        """Take in what the running batch has done so far (real-time mode)."""
        found, now = look(spark), time.monotonic()
        if found is None or found.execution <= self._done:
            return
        before, self.live = self.live, found
        if before is not None and before.execution == found.execution and now > self._live_at:
            self.live_rate = (found.read - before.read) / (now - self._live_at)
        self._live_at = now

    def take(self, report: Mapping[str, Any]) -> None:
        """Take in one report (Spark's StreamingQueryProgress as JSON)."""
        self._seen = str(report["timestamp"])
        self.latest = dict(report)
        self._unmeasured = [*self._unmeasured[-_MOST_UNMEASURED:], self.latest]
        if self.live is not None:
            # The batch has ended: its rows are in the report now.
            self._done, self.live = self.live.execution, None
        ticks = sum(int(s.get("numInputRows", 0)) for s in report.get("sources") or [] if is_tick(s))
        self.input_rows += int(report.get("numInputRows", 0)) - ticks
        written = int((report.get("sink") or {}).get("numOutputRows", -1))
        if written >= 0:
            self.output_rows = (self.output_rows or 0) + written
        for state in report.get("stateOperators") or []:
            self.late_rows += int(state.get("numRowsDroppedByWatermark") or 0)
        for name, values in (report.get("observedMetrics") or {}).items():
            if name.startswith(SKIPPED):
                self.skipped_rows += int(values.get("skipped") or 0)
                self.untimely_rows += int(values.get("untimely") or 0)
            elif name == SENT:
                self.sent_bytes += int(values.get("size") or 0)
            elif name.startswith(READ):
                self.read_bytes += int(values.get("size") or 0)

    def as_json(self) -> dict[str, Any] | None:
        """The heartbeat's ``progress``; None before the first report."""
        report = self.latest
        if report is None and self.live is None:
            return None
        report = report or {}
        watermark = (report.get("eventTime") or {}).get("watermark")
        states = report.get("stateOperators") or []
        if self.figures is not None and self.figures.watermark_ms is not None:
            at = datetime.fromtimestamp(self.figures.watermark_ms / 1000, UTC)
            watermark = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {
            "batch_id": report.get("batchId"),
            "input_rows_total": self.input_rows + (self.live.read if self.live else 0),
            "output_rows_total": self._written(),
            "input_rows_per_second": self._rate("inputRowsPerSecond"),
            "processed_rows_per_second": self._rate("processedRowsPerSecond"),
            "output_rows_per_second": self._output_rate(),
            "batch_duration_ms": report.get("batchDuration"),
            "watermark": None if not watermark or watermark.startswith(_NO_WATERMARK) else watermark,
            "skipped_rows_total": self.skipped_rows,
            "untimely_rows_total": self.untimely_rows,
            "late_rows_total": self.late_rows + (self.figures.late_rows if self.figures else 0),
            "state_rows": self.state_rows,
            "state_bytes": sum(int(s.get("memoryUsedBytes", 0)) for s in states),
            "batch_limit": self.batch_limit,
            "sources": self._source_rows(report.get("sources") or []),
        }

    def read_to(self) -> dict[str, list[Any]]:
        """Entity to the offsets that its sources have read to; one of which a source fell behind is left out.

        Entities of several stores may have one name: which of those sources a report means is unknown.
        """
        rows = self._source_rows((self.latest or {}).get("sources") or [])
        behind = {row["entity"] for row in rows if row["lag"]}
        found: dict[str, list[Any]] = {}
        for row in rows:
            if row["entity"] not in behind:
                found.setdefault(row["entity"], []).append(row["end_offsets"])
        return found

    def ends(self) -> dict[str, dict[str, int | str]]:
        """Relation to the offsets that committed batches have read to; of two reads of one the slower."""
        found: dict[str, dict[str, int | str]] = {}
        for row in self._source_rows((self.latest or {}).get("sources") or []):
            ends, before = row["end_offsets"], found.get(row["relation"])
            if before is not None and all(isinstance(at, int) for at in (*ends.values(), *before.values())):
                ends = {p: min(ends.get(p, at), at) for p, at in before.items()}
            found[row["relation"]] = ends
        return found

    @property
    def state_rows(self) -> int:
        """Rows of state that are kept."""
        states = (self.latest or {}).get("stateOperators") or []
        return (self.figures.state_rows if self.figures else 0) + sum(
            int(s.get("numRowsTotal", 0)) for s in states
        )

    def _written(self) -> int | None:
        if self.live is None or self.live.written is None:
            return self.output_rows
        return (self.output_rows or 0) + self.live.written

    def _output_rate(self) -> float | None:
        """Rows that the last batch wrote in a second; None where the sink does not count them."""
        report = self.latest or {}
        written, took = int((report.get("sink") or {}).get("numOutputRows", -1)), report.get("batchDuration")
        return None if self.live is not None or written < 0 or not took else _number(written * 1000 / took)

    def _rate(self, name: str) -> float | None:
        return _number(self.live_rate if self.live is not None else (self.latest or {}).get(name))

    def _source_rows(self, reported: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        left = list(self.sources)
        rows: list[dict[str, Any]] = []
        for item in (item for item in reported if not is_tick(item)):
            ends = _offsets(item.get("endOffset"))
            # Spark orders them by its plan; a topic read twice is taken in the order of the text.
            source = next((s for s in left if s.entity in ends), left[0] if left else None)
            if source is None:
                continue
            left.remove(source)
            here = ends.get(source.entity, {})
            latest = _offsets(item.get("latestOffset")).get(source.entity)
            lags = _lags(here, latest) if latest else None
            lag = None if lags is None else sum(lags.values())
            row = {"relation": source.relation, "entity": source.entity, "end_offsets": here, "lag": lag}
            watch = self.watches.get(source.view)
            slot = {"slot": _slot(watch)} if watch is not None else {}
            rows.append(row | ({"partition_lags": lags} if lags is not None else {}) | slot)
        return rows


def _slot(watch: SourceWatch) -> dict[str, Any]:
    sizes = {"lag_bytes": watch.lag, "kept_bytes": watch.kept, "left_bytes": watch.left}
    return {"name": watch.name} | sizes


def is_tick(reported: Mapping[str, Any]) -> bool:
    """Whether a source of a report is the ticks of a silent one, not the user's."""
    return str(reported.get("description", "")).startswith("FileStreamSource")


def _lags(here: Mapping[str, int | str], latest: Mapping[str, int | str]) -> dict[str, int] | None:
    """Records still to read, by partition; None where positions are no counts, as Kinesis's."""
    counts = {partition: (end, here.get(partition, 0)) for partition, end in latest.items()}
    if any(isinstance(end, str) or isinstance(at, str) for end, at in counts.values()):
        return None
    return {partition: max(0, int(end) - int(at)) for partition, (end, at) in counts.items()}


def _offsets(value: Any) -> dict[str, dict[str, int | str]]:
    """A source's offsets: topic to partition to next offset, or (Kinesis) stream to shard to position.

    Empty when Spark gives none.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, Mapping):
        return {}
    return {
        str(topic): {str(p): o if isinstance(o, str) else int(o) for p, o in parts.items()}
        for topic, parts in value.items()
        if isinstance(parts, Mapping)
    }


def _number(value: Any) -> float | None:
    # Spark reports Infinity and NaN for batches of no time; JSON has no such numbers.
    if not isinstance(value, int | float) or value != value or value in (float("inf"), float("-inf")):
        return None
    return round(float(value), 3)

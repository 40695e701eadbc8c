"""From a SourceSpec to the temporary view that the compiled SQL reads.

A view has the declared columns, then ``__leat_rowtime``, ``__leat_rowkey`` and ``__leat_rowmeta``. Records
with a null value (tombstones) have no meaning in a stream and are passed over, as Flink's JSON format does.
In a changelog they take a row back: its key is read from the record's key, and ``__leat_deleted`` is true.
A record whose timestamp column is NULL takes the record's own time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.connectors.base import Connector
from leatstream.errors import JobError
from leatstream.formats import json, text_values
from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.formats.event_times import FIRST_MS, LAST_MS, NO_TIME
from leatstream.formats.record_rows import NO_ROW
from leatstream.formats.registry_client import RegistryAddress
from leatstream.model.objects import DELETED, ROWHEADERS, ROWKEY, ROWMETA, ROWTIME
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import SourceSpec
from leatstream_jobs.reading.event_times import why_not_meant
from leatstream_jobs.reading.idle import TICK, with_ticks
from leatstream_jobs.reading.json_kernel import Kernel
from leatstream_jobs.reading.record_parts import FORMATS, reading
from leatstream_jobs.runtime.clients import clients_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

UNDECODABLE = "LEAT_UNDECODABLE"
SKIPPED = "leat_skipped_"
READ, SENT = "leat_read_", "leat_sent"
_OWN_TIME = "__leat_time"
_BARRIER = "__leat_barrier"
_BAD = "__leat_bad"


@dataclass(frozen=True, slots=True)
class Scan:
    """A source made ready.

    Attributes:
        metric: name of the observation that counts skipped records; None when they fail the job.
        raw: its records.
        frame: its rows.
    """

    source: SourceSpec
    connector: Connector
    metric: str | None
    raw: DataFrame
    frame: DataFrame
    registry: RegistryAddress | None = None


def read(
    spark: SparkSession,
    source: SourceSpec,
    connector: Connector,
    *,
    realtime: bool,
    registry: RegistryAddress | None = None,
    kernel: Kernel | None = None,
) -> Scan:
    """Read a source as a stream of the relation's rows; with a kernel the columns that it knows are used.

    Raises:
        JobError: job-rejected, when the source asks for what is not built.
    """
    carried = "json" if source.feed is not None else connector.carried_format(source.value_format)
    if carried not in FORMATS:
        raise JobError(
            "job-rejected", f"Value format {source.value_format} of {source.relation} is not supported yet."
        )
    raw = without_skipped(connector.read_stream(spark, source, realtime=realtime), source)
    if source.value_format in DESCRIBED and carried not in DESCRIBED:
        # Such as Avro files, whose rows come as JSON.
        source = source.model_copy(update={"value_format": carried})
    metric = f"{SKIPPED}{source.view}" if source.on_error == "ignore" else None
    counts = realtime or clients_of(spark, source.store.kind) is not None
    records = raw if counts else measured(raw, f"{READ}{source.view}")
    frame = decoded(records, source, metric, registry, kernel, clock=not realtime)
    return Scan(source, connector, metric, raw, frame, registry)


def register(
    spark: SparkSession,
    source: SourceSpec,
    connector: Connector,
    *,
    realtime: bool,
    ticks: str,
    registry: RegistryAddress | None = None,
    kernel: Kernel | None = None,
) -> Scan:
    """Read a source as a stream and register its view.

    ``ticks`` is the URI of the folder that gives the time of a silent source.

    Raises:
        JobError: job-rejected, when the source asks for what is not built.
    """
    scan = read(spark, source, connector, realtime=realtime, registry=registry, kernel=kernel)
    frame = scan.frame
    if source.watermark_delay_ms is not None:
        if source.idle_timeout_ms is not None:
            frame = with_ticks(spark, frame, ticks)
        frame = timed(frame, source.watermark_delay_ms)
    frame.createOrReplaceTempView(source.view)
    return scan


def without_skipped(raw: DataFrame, source: SourceSpec) -> DataFrame:
    """The records without those that a user has skipped, each time they are read."""
    from pyspark.sql import functions as F

    if not source.skip:
        return raw
    place = F.col(ROWMETA)
    sharded = "shard" in raw.select(f"{ROWMETA}.*").columns
    partition, offset = ("shard", "sequence_number") if sharded else ("partition", "offset")
    skipped = F.lit(False)
    for name, offsets in source.skip.items():
        here = place.getField(partition).cast("string") == name
        skipped = skipped | (here & place.getField(offset).cast("string").isin(offsets))
    return raw.where(~F.coalesce(skipped, F.lit(False)))


def measured(records: DataFrame, metric: str) -> DataFrame:
    """The records; each batch reports the bytes of their keys and values, as the metric's ``size``."""
    from pyspark.sql import functions as F

    key, value = (F.coalesce(F.octet_length(name), F.lit(0)) for name in ("key", "value"))
    return records.observe(metric, F.sum(key.cast("bigint") + value).alias("size"))


def timed(frame: DataFrame, delay_ms: int) -> DataFrame:
    """The rows with a watermark that every one of them moves."""
    from pyspark.sql import functions as F

    # The optimizer would move a WHERE below the watermark, so that only rows that pass would tell the time.
    marked = frame.withWatermark(ROWTIME, f"{delay_ms} milliseconds")
    still = F.spark_partition_id() >= 0
    return (
        marked.where(F.when(still, ~F.col(TICK))).drop(TICK) if TICK in frame.columns else marked.where(still)
    )


def decoded(
    raw: DataFrame,
    source: SourceSpec,
    metric: str | None,
    registry: RegistryAddress | None = None,
    kernel: Kernel | None = None,
    *,
    clock: bool = True,
) -> DataFrame:
    """Raw records as rows of the relation; undecodable ones fail the job, or are counted and left out."""
    from pyspark.sql import functions as F

    read = _read(raw, source, registry, kernel, clock=clock)
    parsed, still = read.parsed, F.spark_partition_id()
    if metric is None:
        reason = F.when(read.wrong, F.lit(None) if read.reason is None else read.reason)
        why = _complaint(source, reason.otherwise(read.untimely))
        good = F.when(read.bad, F.raise_error(why)).otherwise(F.lit(True))
    else:
        # Of the records that are left out, those of which only the event time cannot be meant.
        untimely = F.col(_BAD) & ~read.wrong
        counts = {"skipped": F.col(_BAD), "untimely": untimely}
        parsed = parsed.withColumn(_BAD, read.bad)
        parsed = parsed.observe(metric, *(F.count_if(which).alias(name) for name, which in counts.items()))
        good = ~F.col(_BAD)
    kept = parsed.where((F.col(_BARRIER) >= 0) & (still >= 0) & good)
    hidden = [read.time.alias(ROWTIME), F.col(ROWKEY), F.col(ROWMETA), *(F.col(DELETED) for _ in read.gone)]
    more = [F.col(ROWHEADERS)] if source.headers else []
    return kept.select(*read.fields, *hidden, *more)


def undecodable(scan: Scan) -> DataFrame:
    """The records that ``decoded`` leaves out, as records for a log: ``key`` and ``value``, both BINARY.

    The key is the record's own. The value is a JSON object: ``relation``, ``topic``, ``partition``,
    ``offset``, ``timestamp``, ``reason``, and the record's value as ``value``, or, where it is no text, as
    ``value_base64``.
    """
    from pyspark.sql import functions as F

    source, text = scan.source, F.col(json.TEXT)
    read = _read(scan.raw, source, scan.registry)
    is_text, meta = F.is_valid_utf8(text), F.col(ROWMETA)
    misfit = F.lit(NO_ROW)
    why = misfit if read.reason is None else F.coalesce(read.reason, misfit)
    reason = F.when(read.wrong, why).otherwise(read.untimely)
    value = F.struct(
        F.lit(source.relation).alias("relation"),
        *(meta.getField(name).alias(name) for name in ("topic", "partition", "offset")),
        F.date_format(F.col(_OWN_TIME), "yyyy-MM-dd HH:mm:ss.SSS'Z'").alias("timestamp"),
        reason.alias("reason"),
        F.when(is_text, text).alias("value"),
        F.when(~is_text, F.base64(text.cast("binary"))).alias("value_base64"),
    )
    still = (F.col(_BARRIER) >= 0) & (F.spark_partition_id() >= 0)
    bad = read.parsed.where(F.when(still, read.bad))
    return bad.select(F.col(ROWKEY).alias("key"), F.to_json(value).cast("binary").alias("value"))


@dataclass(frozen=True, slots=True)
class _Read:
    """Parsed records and what is read from them.

    Attributes:
        wrong: whether it is no row of the relation.
        bad: whether it is that, or has no time that can be meant.
        untimely: why it has none, if it has none.
    """

    parsed: DataFrame
    fields: Sequence[Column]
    wrong: Column
    bad: Column
    time: Column
    gone: Sequence[Column]
    reason: Column | None
    untimely: Column


def _read(
    raw: DataFrame,
    source: SourceSpec,
    registry: RegistryAddress | None,
    kernel: Kernel | None = None,
    *,
    clock: bool = True,
) -> _Read:
    from pyspark.sql import functions as F

    parts = reading(source, registry)
    gone = (F.col("value").isNull().alias(DELETED),) if source.primary_key else ()
    time, bad_time, untimely = _event_time(source, clock=clock)
    records = raw if gone else raw.where(F.col("value").isNotNull())
    known = kernel.columns() if kernel is not None else {}
    if kernel is not None:
        records = kernel.applied(records)
    # The optimizer would move filters below the parsing and parse every record twice. It leaves in place
    # what is not deterministic; the partition's number is the cheapest such thing.
    parsed = records.select(
        F.col("key").alias(ROWKEY),
        *(text.alias(name) for name, text in parts.texts.items()),
        F.col("timestamp").alias(_OWN_TIME),
        F.col(ROWMETA),
        *([F.col(ROWHEADERS)] if source.fetches_headers else []),
        *gone,
        *known.values(),
    )
    for step in parts.parsed:
        parsed = parsed.withColumns(step)
    parsed = parsed.withColumn(_BARRIER, F.spark_partition_id())
    fields, wrong = parts.fields, parts.wrong
    if kernel is not None:
        done = F.col(json.TEXT).isNull()
        pairs = zip((column.name for column in source.columns), fields, strict=True)
        fields = [F.when(done, F.col(known[n])).otherwise(f).alias(n) for n, f in pairs if n in known]
        wrong = ~done & wrong
        own, bad_own, untimely_own = _event_time(source, known, clock=clock)
        time = F.when(done, own).otherwise(time)
        untimely = F.when(done, untimely_own).otherwise(untimely)
        if bad_time is not None and bad_own is not None:
            bad_time = F.when(done, bad_own).otherwise(bad_time)
    bad = wrong if bad_time is None else wrong | bad_time
    return _Read(parsed, fields, wrong, bad, time, gone, parts.reason, untimely)


def _event_time(
    source: SourceSpec, known: Mapping[str, str] | None = None, *, clock: bool
) -> tuple[Column, Column | None, Column]:
    """Event time, the condition under which there is none that can be meant, and why there is none."""
    from pyspark.sql import functions as F

    time, bad = row_time(source, known)
    name = _time_name(source, known)
    raw = None if name is None else F.col(name)
    strange = why_not_meant(source, time, F.col(_OWN_TIME), raw, clock=clock)
    none = F.lit(NO_TIME)
    if strange is None:
        return time, bad, none
    return time, strange.isNotNull() if bad is None else bad | strange.isNotNull(), F.coalesce(strange, none)


def _time_name(source: SourceSpec, known: Mapping[str, str] | None) -> str | None:
    """The timestamp column as SQL names it where it is read, if the source has one."""
    if source.timestamp is None:
        return None
    if known is not None:
        return known[source.timestamp]
    place = json.KEY if source.timestamp in source.key_only else json.VALUE
    return f"{place.parsed}.{text_values.tick(source.timestamp)}"


def row_time(source: SourceSpec, known: Mapping[str, str] | None = None) -> tuple[Column, Column | None]:
    """Event time as TIMESTAMP, and the condition under which the timestamp column holds none (never NULL).

    Args:
        source: whose timestamp column it is.
        known: names of the columns that are read already; else it is read from what is parsed.
    """
    from pyspark.sql import functions as F

    own, name = F.col(_OWN_TIME), _time_name(source, known)
    if name is None:
        return own, None
    column = next((c for c in source.columns if c.name == source.timestamp), None)
    if column is None:
        raise JobError(
            "job-rejected", f"{source.relation} has no column {source.timestamp} to take its time from."
        )
    raw, kind = F.col(name), parse_type(column.type).kind
    if kind == "BIGINT":
        # Beyond the years 1 to 9999 is no time; far beyond, Spark's microseconds would overflow.
        legal = raw.between(FIRST_MS, LAST_MS)
        return F.coalesce(F.timestamp_millis(F.when(legal, raw)), own), F.coalesce(~legal, F.lit(False))
    if kind == "VARCHAR":
        value = F.expr(text_values.moment(name))
        return F.coalesce(value, own), raw.isNotNull() & value.isNull()
    if kind in ("TIMESTAMP", "TIMESTAMP_LTZ", "DATE"):
        value = raw.try_cast("timestamp")
        return F.coalesce(value, own), raw.isNotNull() & value.isNull()
    raise JobError(
        "job-rejected",
        f"Column {column.name} of {source.relation} is {column.type}; a timestamp column is BIGINT (epoch "
        "milliseconds), TIMESTAMP, TIMESTAMP_LTZ or VARCHAR.",
    )


def _complaint(source: SourceSpec, reason: Column | None) -> Column:
    """The mark that ``marked_faults`` reads back: which view and position, why; never a record's content."""
    from pyspark.sql import functions as F

    reason_part = [] if reason is None else [F.lit(" "), F.to_json(F.struct(reason.alias("reason")))]
    return F.concat(
        F.lit(f"{UNDECODABLE} {source.view} "),
        F.to_json(F.col(ROWMETA)),
        *reason_part,
        F.lit(f" {UNDECODABLE}_END"),
    )

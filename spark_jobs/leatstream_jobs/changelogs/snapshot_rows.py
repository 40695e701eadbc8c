"""Rows of changelogs as frames: the newest of each key, the versions of each key, those of some keys.

Columns go by number here (``c0``, ``c1``, …), because users' names may hold anything; the hidden ones keep
theirs. Keys are compared so that NULL equals NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from leatstream.model.objects import DELETED, ROWMETA, ROWTIME, UNTIL
from leatstream.plan.job_spec import SnapshotSpec, SourceSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

_FEW = 20_000  # keys that every task may hold a copy of
HELD = 5_000  # rows that the driver may hold
_WIDE = 4_000  # bytes that a row of them may have, about
WAS, IS = "__leat_was", "__leat_is"
_SINCE, _BEFORE = "__leat_since", "__leat_before"


@dataclass(frozen=True, slots=True)
class Shape:
    """A changelog's columns, and which of them are its key.

    Attributes:
        names: of the view's columns, the hidden ones included.
        schema: of the numbered columns.
        undated: whether deletions have no event time: a column gives that of the rows, and they have none.
    """

    view: str
    names: tuple[str, ...]
    keys: tuple[str, ...]
    schema: Any
    undated: bool

    @classmethod
    def of(cls, source: SourceSpec, spec: SnapshotSpec, frame: DataFrame) -> Shape:
        """The shape of a scan's frame."""
        names = [c.name for c in source.columns]
        keys = tuple(f"c{names.index(key)}" for key in spec.keys)
        numbered = frame.toDF(*_numbered(frame.columns, len(names)))
        undated = source.timestamp is not None
        return cls(source.view, tuple(frame.columns), keys, numbered.schema, undated)

    def numbered(self, frame: DataFrame) -> DataFrame:
        """A view's rows with numbered columns."""
        return frame.toDF(*self.schema.names)

    def named(self, frame: DataFrame) -> DataFrame:
        """Rows with the view's names again; further columns behind them are kept."""
        further = frame.columns[len(self.names) :]
        return frame.toDF(*self.names, *further)


def _numbered(columns: Sequence[str], declared: int) -> list[str]:
    return [f"c{i}" for i in range(declared)] + list(columns[declared:])


def order(frame: DataFrame) -> Column:
    """What decides which of two rows of a key is newer: event time, then the place in the topic."""
    from pyspark.sql import functions as F

    return F.struct(F.col(ROWTIME), place(frame))


def place(frame: DataFrame) -> Column:
    """Where a row's record stands in its partition: what comes later is greater."""
    from pyspark.sql import functions as F

    fields = frame.schema[ROWMETA].dataType.fieldNames()  # type: ignore[attr-defined]
    meta = F.col(ROWMETA)
    return by_sequence(meta["sequence_number"]) if "sequence_number" in fields else meta["offset"]


def by_sequence(number: Column) -> Column:
    """A sequence number of Kinesis so that texts compare as the numbers do.

    They are digits, of which only the longer ones are larger for certain; behind a point stands the place in
    an aggregate.
    """
    from pyspark.sql import functions as F

    whole, inner = F.substring_index(number, ".", 1), F.regexp_extract(number, r"\.(\d+)$", 1)
    return F.concat(F.lpad(whole, 64, "0"), F.lpad(inner, 8, "0"))


def newest(frame: DataFrame, keys: Sequence[str], by: Column | None = None) -> DataFrame:
    """One row per key: the greatest of ``order``, or of ``by``."""
    from pyspark.sql import functions as F

    row = F.max_by(F.struct(*frame.columns), order(frame) if by is None else by).alias("row")
    return frame.groupBy(*keys).agg(row).select("row.*")


def versions(frame: DataFrame, keys: Sequence[str], *, undated: bool = False) -> DataFrame:
    """Every row with the time until which it held; NULL for the newest of its key.

    Args:
        frame: rows.
        keys: columns.
        undated: whether deletions have no event time; they then get one, see ``_bounded``.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if undated:
        frame = _bounded(frame, keys)
    ordered = Window.partitionBy(*keys).orderBy(order(frame))
    return frame.withColumn(UNTIL, F.lead(ROWTIME).over(ordered))


def _bounded(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Deletions at their records' time, but between the rows of their key around them in the topic.

    That is not before the row that they delete, or it would stay for ever, and not after the next one, or
    that would be deleted too. A row that was late already when it came bounds nothing.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = Window.partitionBy(*keys).orderBy(place(frame)).rowsBetween(Window.unboundedPreceding, -1)
    # Backwards: a frame without end is one that Spark reads once for every row.
    after = Window.partitionBy(*keys).orderBy(place(frame).desc()).rowsBetween(Window.unboundedPreceding, -1)
    at, since = F.col(ROWTIME), F.max(F.when(~F.col(DELETED), F.col(ROWTIME))).over(before)
    rows = frame.withColumn(_SINCE, since)
    in_time = ~F.col(DELETED) & F.coalesce(at >= F.col(_SINCE), F.lit(True))
    bounded = F.greatest(_SINCE, F.least(at, F.min(F.when(in_time, at)).over(after)))
    return rows.withColumn(ROWTIME, F.when(F.col(DELETED), bounded).otherwise(at)).drop(_SINCE)


def of_keys(
    frame: DataFrame, columns: Sequence[Any], keys: DataFrame, count: int | None, kind: str = "left_semi"
) -> DataFrame:
    """The rows whose ``columns`` are among the rows of ``keys`` (as many columns, in the same order).

    Args:
        frame: rows.
        columns: names or expressions.
        keys: values to look for.
        count: how many there are about; None = not known.
        kind: ``left_semi``, or ``left_anti`` for those that are not.
    """
    from pyspark.sql import functions as F

    named = keys.toDF(*(f"__leat_k{i}" for i in range(len(columns))))
    if count is not None and count <= _FEW:
        named = F.broadcast(named)
    values = [F.col(c) if isinstance(c, str) else c for c in columns]
    same = [value.eqNullSafe(F.col(f"__leat_k{i}")) for i, value in enumerate(values)]
    return frame.join(named, reduce(lambda a, b: a & b, same), kind)


def replaced(
    fresh: DataFrame, known: DataFrame | None, keys: Sequence[str], *, undated: bool = False
) -> DataFrame:
    """Each key's newest row of ``fresh`` beside the row that it replaces, where it is the newer one.

    Args:
        fresh: rows, several of a key maybe.
        known: the same, from before; None of no rows.
        keys: columns.
        undated: whether deletions have no event time; they then get that of the newest row before them in
            the topic, none if there is none: what comes after them counts unless it is older than that row.

    Returns:
        ``IS`` and ``WAS``, structs of all columns; ``WAS`` is NULL where there was no row of the key.
    """
    from pyspark.sql import functions as F

    both = fresh.withColumn(_BEFORE, F.lit(False))
    if known is not None:
        both = both.unionByName(known.withColumn(_BEFORE, F.lit(True)))
    if undated:
        both = _after_their_rows(both, keys)
    row, before = F.struct(*fresh.columns).alias("row"), F.col(_BEFORE)
    # Of a record that comes again, the existing row stays.
    by = F.struct(order(fresh), before).alias("by")
    both = both.select(*keys, row, by, before.alias("before"))
    was = F.expr(f"max_by(row, by) FILTER (WHERE before) AS {WAS}")
    latest = F.expr("max_by(before, by) AS stays")
    found = both.groupBy(*keys).agg(F.max_by("row", "by").alias(IS), was, latest)
    return found.where("NOT stays").select(IS, WAS)


def _after_their_rows(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows; fresh deletions at the time of the newest row of their key before them, NULL without one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    fresh, at = F.col(DELETED) & ~F.col(_BEFORE), F.col(ROWTIME)
    sofar = Window.partitionBy(*keys).orderBy(place(rows)).rowsBetween(Window.unboundedPreceding, 0)
    return rows.withColumn(ROWTIME, F.when(fresh, F.max(F.when(~fresh, at)).over(sofar)).otherwise(at))


def kept(*frames: DataFrame) -> DataFrame:
    """The rows of all the frames, of the same columns, computed now and once.

    Returns:
        A frame of rows that Spark lets go of when nothing refers to them any more. Not ``persist``: Spark
        forgets what was cached of a temporary view when the view gets other rows.
    """
    return union(frames).localCheckpoint()


def held(*frames: DataFrame) -> DataFrame | None:
    """The rows of all the frames, in the driver's memory; None of too many, or where one is too wide.

    What is selected of them is computed while Spark plans, without a job. They are Spark's own rows: those
    for people would lose the order of maps, and the days of October 1582.
    """
    from pyspark.sql import functions as F

    whole = union(frames)
    spark: Any = whole.sparkSession
    # One that is too wide comes as NULL: the driver never has more than HELD * _WIDE bytes.
    narrow = F.when(_width(whole.schema) <= _WIDE, F.struct(*whole.columns)).alias("row")
    limited = whole.select(narrow).limit(HELD + 1)
    done = limited._jdf.queryExecution()
    rows = done.executedPlan().executeCollect()
    if len(rows) > HELD:
        return None
    jvm, session = spark._jvm, spark._jsparkSession
    plans = getattr(jvm, "org.apache.spark.sql.catalyst.plans.logical.LocalRelation")
    data = getattr(jvm, "scala.collection.immutable.ArraySeq").unsafeWrapArray(rows)
    none = getattr(getattr(jvm, "scala.None$"), "MODULE$")
    local = plans(done.analyzed().output(), data, False, none).newInstance()
    made = type(whole)(getattr(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(session, local), spark)
    return made.select("row.*") if made.where("row IS NULL").isEmpty() else None


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all the frames, of which there is one at least."""
    return reduce(lambda a, b: a.unionByName(b), frames)


def _width(schema: StructType) -> Column:
    """About how many bytes a row's values take that are not of a fixed size; NULL takes none."""
    from pyspark.sql import functions as F

    sizes = [size for field in schema.fields for size in _sizes(F.col(field.name), field.dataType)]
    return reduce(lambda a, b: a + b, (F.coalesce(size, F.lit(0)) for size in sizes), F.lit(0))


def _sizes(value: Column, kind: DataType) -> Iterator[Column]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import AtomicType, BinaryType, StringType, StructType

    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _sizes(value[field.name], field.dataType)
    elif isinstance(kind, StringType | BinaryType):
        yield F.octet_length(value)
    elif not isinstance(kind, AtomicType):
        yield F.octet_length(value.cast("string"))


def there(frame: DataFrame) -> DataFrame:
    """The rows that are not deleted."""
    from pyspark.sql import functions as F

    return frame.where(~F.col(DELETED))

"""Sources that fall silent: after their time-out the clock gives their event time.

Spark knows time by rows only. So a source with a time-out reads, beside its records, a directory of ticks:
small files that hold a time. A tick moves the watermark and is left out after that. It is part of Spark's
offset log like any input, so a repeated batch sees the same time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.model.objects import ROWTIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream.plan.job_spec import SourceSpec
    from leatstream_jobs.attempt.progress import Progress

TICK = "__leat_tick"
# How a status begins while Spark asks a source how far it reaches, and from when on that is not short.
_ASKING, _HANGS = "Getting offsets", 10.0
_EVERY = 1.0  # seconds between two ticks, at least
# Spark notes each file that it has read, for ever, and rewrites all notes at every tenth: in a long
# silence ticks become rare, up to one a minute. Then it takes a year for 80 MB of notes to come.
_SHARE, _SELDOM = 1 / 60, 60.0


def tick_folder(checkpoint: str, view: str) -> str:
    """URI of a source's ticks."""
    return f"{checkpoint.rstrip('/')}/ticks/{view}"


def with_ticks(spark: SparkSession, frame: DataFrame, folder: str) -> DataFrame:
    """The rows and the ticks, which have ``TICK`` true and nothing but a row time."""
    from pyspark.sql import functions as F

    jvm: Any = spark._jvm
    path = getattr(jvm, "org.apache.hadoop.fs.Path")(folder)
    path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).mkdirs(path)
    ticks = spark.readStream.schema("at BIGINT").option("cleanSource", "delete").json(folder)
    tick_rows = ticks.select(F.timestamp_millis(F.col("at")).alias(ROWTIME), F.lit(True).alias(TICK))
    rows = frame.withColumn(TICK, F.lit(False))
    return rows.unionByName(tick_rows, allowMissingColumns=True)


@dataclass(slots=True)
class _Silence:
    ends: Any = None
    since: float = 0.0
    ticked: float = 0.0


class IdleSources:
    """Notices which sources of an attempt are silent.

    Args:
        sources: of the job; those without a time-out are never idle here.
        checkpoint: of the job.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self, sources: Sequence[SourceSpec], checkpoint: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._checkpoint = checkpoint
        self._timeouts = {s.view: s.idle_timeout_ms / 1000 for s in sources if s.idle_timeout_ms is not None}
        self._entities = {s.view: s.entity for s in sources}
        self._now = now
        self._silences = {view: _Silence() for view in self._timeouts}
        self._asking_since: float | None = None

    def idle(
        self,
        ends: Mapping[str, Any],
        *,
        fresh: bool,
        at_rest: bool,
        state_rows: int,
        asking: bool = False,
    ) -> list[str]:
        """The views whose sources are silent for their time-out, and whose next tick is due.

        Args:
            ends: entity to the offsets read to, of the newest report; an entity of which a source fell
                behind is left out.
            fresh: whether that report came since the last look.
            at_rest: whether Spark has looked for records and found none.
            state_rows: what is kept; without any no watermark matters.
            asking: whether Spark waits for a source to say how far it reaches. A store that hangs is not
                silent: its records come later, and a tick meanwhile would make them late.
        """
        now, found = self._now(), []
        if not asking:
            self._asking_since = None
        elif self._asking_since is None:
            self._asking_since = now
        hangs = self._asking_since is not None and now - self._asking_since >= _HANGS
        for view, silence in self._silences.items():
            end = ends.get(self._entities[view])
            if end is None or end != silence.ends or hangs:
                silence.ends, silence.since = end, now
            # A batch at work may read records that no report contains yet.
            known = (fresh or at_rest) and not asking
            silent = end is not None and known and now - silence.since >= self._timeouts[view]
            pause = max(_EVERY, self._timeouts[view], min(_SELDOM, (now - silence.since) * _SHARE))
            if silent and state_rows and now - silence.ticked >= pause:
                silence.ticked = now
                found.append(view)
        return found

    def look(self, spark: SparkSession, query: StreamingQuery, progress: Progress, *, fresh: bool) -> None:
        """Tell the time of the sources that are silent now; ``fresh``: whether a report has just come."""
        if not self._timeouts:
            return
        status = query.status
        due = self.idle(
            progress.read_to(),
            fresh=fresh,
            at_rest=not status["isDataAvailable"],
            state_rows=progress.state_rows,
            asking=status["message"].startswith(_ASKING),
        )
        for view in due:
            at_ms = round((time.time() - self._timeouts[view]) * 1000)
            write_tick(spark, tick_folder(self._checkpoint, view), at_ms)


def write_tick(spark: SparkSession, folder: str, at_ms: int) -> None:
    """Tell a source's time; the file appears whole."""
    jvm: Any = spark._jvm
    path = getattr(jvm, "org.apache.hadoop.fs.Path")(f"{folder}/{at_ms}.json")
    hidden = getattr(jvm, "org.apache.hadoop.fs.Path")(f"{folder}/_{at_ms}.json")
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    stream = system.create(hidden, True)
    stream.write(bytearray(json.dumps({"at": at_ms}).encode()))
    stream.close()
    system.rename(hidden, path)

"""Time of a small micro-batch with state, with and without a program for each file of its checkpoint.

One aggregate over files of a few lines, one Spark session for each way, in turn: what is measured is what
Spark and the files of the checkpoint take, without Kafka. See ``leatstream_jobs.runtime.local_files``.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from ways import compare

from leatstream.process_tree import tree_use

WAYS = ("chmod", "in the JVM")


def measured(way: str, batches: int) -> tuple[float, float]:
    """Milliseconds of a batch, median, and of the JVM's processor time, mean; its programs included."""
    import psutil

    from leatstream_jobs.runtime import session
    from leatstream_jobs.writing.checkpoint_files import checkpoint_settings

    if way == "chmod":
        session.spare_programs = lambda _: None
    with tempfile.TemporaryDirectory() as place:
        spark = session.start_session(Path(place) / "work", 2)
        source, checkpoint = Path(place) / "records", f"{place}/checkpoint"
        source.mkdir()
        for name, value in checkpoint_settings(checkpoint).items():
            spark.conf.set(name, value)
        jvm = psutil.Process(session.jvm_process(spark).pid)
        rows = spark.readStream.text(str(source)).groupBy("value").count().writeStream.outputMode("update")
        query = rows.option("checkpointLocation", checkpoint).foreachBatch(lambda b, _: b.collect()).start()
        skipped, used = batches // 3, 0.0
        for number in range(batches):
            if number == skipped:
                used = tree_use(jvm)[1]
            hidden = source / f".{number}"
            hidden.write_text("\n".join(str(line % 7) for line in range(number + 1)))
            hidden.rename(source / str(number))
            query.processAllAvailable()
        used = tree_use(jvm)[1] - used
        took = [
            report.durationMs["triggerExecution"] for report in query.recentProgress if report.numInputRows
        ]
        query.stop()
        spark.stop()
    return statistics.median(took[skipped:]), 1000 * used / (batches - skipped)


if __name__ == "__main__":
    compare(__file__, __doc__, WAYS, "modes of files", 60, measured)

"""Time of a small batch that is worked off in Python, with and without a search for what columns are made of.

An aggregate of a changelog of a thousand keys, twenty rows a batch: most of what it takes is the making and
the planning of its frames. See ``leatstream_jobs.runtime.java_names``.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from changelog import Files, feeder, jobs
from ways import compare

from leatstream.process_tree import tree_use

WAYS = ("looked for", "kept")
KEYS, ROWS = 1_000, 20


def measured(way: str, batches: int) -> tuple[float, float]:
    """Milliseconds of a batch, median, and of processor time, mean: the JVM's and Python's."""
    import psutil

    from leatstream_jobs.attempt import run_query
    from leatstream_jobs.runtime import session

    if way == "looked for":
        session.keep_names = lambda _: None
        noted = {"spark.python.sql.dataFrameDebugging.enabled": "true"}  # PySpark's default
        os.environ["LEATSTREAM_SPARK_CONF"] = json.dumps(noted)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session.start_session(folder / "spark", 2)
        feed, store = feeder(folder, KEYS), Files(folder)
        feed("accounts", KEYS, True)
        query = run_query.start(spark, jobs(folder)["aggregate"], lambda _: store, 2).query
        query.processAllAvailable()
        took, skipped, used = [], batches // 3, 0.0
        for number in range(batches):
            if number == skipped:
                used = tree_use(psutil.Process())[1]
            feed("accounts", ROWS, False)
            start = time.perf_counter()
            query.processAllAvailable()
            took.append(1000 * (time.perf_counter() - start))
        used = tree_use(psutil.Process())[1] - used
        query.stop()
        spark.stop()
    return statistics.median(took[skipped:]), 1000 * used / (batches - skipped)


if __name__ == "__main__":
    compare(__file__, __doc__, WAYS, "names in the JVM", 40, measured)

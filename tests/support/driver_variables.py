"""What every driver that tests start is told: the connector's jars and the archive of classes, as a server tells it."""

from __future__ import annotations

import functools
import os

from leatstream.dev.class_archive import VARIABLE, archive_path
from leatstream.dev.jars import spark_jars
from leatstream.dev.java import find_java


@functools.cache
def driver_variables() -> dict[str, str]:
    """Environment of a driver process; the archive need not be there."""
    java = find_java()
    assert java is not None
    return {
        "LEATSTREAM_SPARK_JARS": os.pathsep.join(map(str, spark_jars())),
        VARIABLE: str(archive_path(java)),
    }

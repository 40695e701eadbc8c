"""Our own packages on the executors of a cluster, in the driver's version.

What they import of others must be in the Python of the workers: the same environment at the same path.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("leatstream", "leatstream_jobs")


def ship_code(spark: SparkSession, work_dir: Path) -> None:
    """Have every executor import our packages from a copy of the driver's own.

    Args:
        spark: a session on a cluster.
        work_dir: where the archive is written.
    """
    archive = work_dir / "leatstream-code.zip"
    pack(archive)
    spark.sparkContext.addPyFile(str(archive))


def pack(archive: Path) -> None:
    """Write the sources of our packages into a zip file that Python can import from."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for package in PACKAGES:
            spec = importlib.util.find_spec(package)
            for place in (spec.submodule_search_locations or ()) if spec is not None else ():
                for file in sorted(Path(place).rglob("*")):
                    if file.is_file() and "__pycache__" not in file.parts:
                        packed.write(file, Path(package) / file.relative_to(place))

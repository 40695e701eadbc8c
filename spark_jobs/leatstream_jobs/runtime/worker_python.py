"""The Python that Spark starts its workers with: this one, with pyspark read from where it is installed.

Spark puts zips of pyspark and py4j first on every worker's path. Nothing compiled is kept of a zip, so each
worker spent half a second of a core on compiling what lies compiled beside it.

Users' functions get workers of their own, started by a second program that leaves out of the environment
what Spark and Python do not need: connectors read their stores in the others, perhaps with a cloud's keys.
"""

from __future__ import annotations

import shlex
import site
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_FUNCTIONS = "python-of-functions"
# The driver's id is how its processes are found when they must end. Spark hands its workers a secret of their
# own in PYTHON_WORKER_FACTORY_SECRET.
_KEPT = (
    "PATH|LANG|LANGUAGE|LC_*|TZ|TZDIR|TMPDIR|PYTHON*|PYSPARK_*|SPARK_*|OMP_*|MALLOC_*|LD_LIBRARY_PATH|"
    "VIRTUAL_ENV|LEATSTREAM_DRIVER_ID"
)
_CLEARING = f"""\
for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'); do
  case $name in
    {_KEPT}) ;;
    *) unset "$name" ;;
  esac
done
export HOME={{home}} PYTHONUSERBASE={{base}}
"""
_SCRIPT = """\
#!/bin/sh
set -f
IFS=:
kept=
for part in $PYTHONPATH; do
  case $part in
    */pyspark/python/lib/*.zip) ;;
    *) kept=$kept${{kept:+:}}$part ;;
  esac
done
unset IFS
{more}PYTHONPATH=$kept exec {python} "$@"
"""


def worker_python(directory: Path) -> Path:
    """Write both programs into a directory that this driver alone uses, and give the first."""
    home, base = shlex.quote(str(directory / "tmp")), shlex.quote(site.getuserbase())
    _write(directory / _OF_FUNCTIONS, _CLEARING.format(home=home, base=base))
    return _write(directory / "python", "")


@contextmanager
def workers_of_functions(spark: SparkSession) -> Iterator[None]:
    """What is registered meanwhile runs in workers of users' functions; a cluster has one kind only."""
    context: Any = spark.sparkContext
    usual = context.pythonExec
    program = Path(usual).with_name(_OF_FUNCTIONS)
    if not program.is_file():
        yield
        return
    context.pythonExec = str(program)
    try:
        yield
    finally:
        context.pythonExec = usual


def _write(path: Path, more: str) -> Path:
    path.write_text(_SCRIPT.format(python=shlex.quote(sys.executable), more=more), encoding="utf-8")
    path.chmod(0o700)
    return path

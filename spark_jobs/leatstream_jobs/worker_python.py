"""The Python that Spark starts its workers with: this one, with pyspark read from where it is installed.

Spark puts zips of pyspark and py4j first on every worker's path. Nothing compiled is kept of a zip, so each
worker spent half a second of a core on compiling what lies compiled beside it.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

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
PYTHONPATH=$kept exec {python} "$@"
"""


def worker_python(directory: Path) -> Path:
    """Write the program into a directory that exists, and which this driver alone uses."""
    path = directory / "python"
    path.write_text(_SCRIPT.format(python=shlex.quote(sys.executable)), encoding="utf-8")
    path.chmod(0o700)
    return path

"""What Spark starts its Python workers with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from leatstream_jobs.runtime.worker_python import worker_python

LIB = Path(pyspark.__file__).parent / "python" / "lib"
ZIPS = [str(path) for path in sorted(LIB.glob("*.zip"))]
SHOWS = (
    "import pyspark, sys; print(pyspark.__file__); print(*sys.argv[1:], sep='|'); print(*sys.path, sep='|')"
)


@pytest.mark.parametrize("others", [[], ["/some where/api", "/s*"], ["/a/pyspark.zip"]])
def test_pyspark_is_read_from_where_it_is_installed_and_nothing_else_changes(
    tmp_path: Path, others: list[str]
) -> None:
    program = worker_python(tmp_path)
    path = os.pathsep.join([*ZIPS, *others])
    argv = [str(program), "-c", SHOWS, "two words", "*"]
    shown = subprocess.run(argv, env={"PYTHONPATH": path}, capture_output=True, text=True, check=True)
    found, arguments, paths = shown.stdout.splitlines()
    assert len(ZIPS) == 2
    assert found == pyspark.__file__
    assert arguments == "two words|*"
    assert paths.split("|")[1 : 1 + len(others)] == others
    assert not set(ZIPS) & set(paths.split("|"))


def test_it_is_this_python_and_nobody_else_may_write_it(tmp_path: Path) -> None:
    program = worker_python(tmp_path)
    assert program.stat().st_mode & 0o777 == 0o700
    argv = [str(program), "-c", "import sys; print(sys.executable); sys.exit(3)"]
    shown = subprocess.run(argv, env={}, capture_output=True, text=True, check=False)
    assert (shown.stdout.strip(), shown.returncode) == (sys.executable, 3)


def test_functions_of_users_get_no_environment(tmp_path: Path) -> None:
    """Only what Spark and Python need, and a home that is the driver's own."""
    program = worker_python(tmp_path).with_name("python-of-functions")
    secrets = {
        "AWS_SECRET_ACCESS_KEY": "CANARY",
        "PGPASSWORD": "CANARY",
        "LEATSTREAM_SPARK_CONF": "CANARY",
        "TWO_LINES": "first\nPATH=CANARY\nLANG=CANARY",
        "HOME": "/home/CANARY",
        "https_proxy": "http://u:CANARY@proxy",
    }
    needed = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([*ZIPS, "/some where"]),
        "PYTHON_WORKER_FACTORY_SECRET": "spark's own",
        "SPARK_BUFFER_SIZE": "65536",
        "LEATSTREAM_DRIVER_ID": "drv_1",
        "LC_ALL": "C.UTF-8",
    }
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    shown = subprocess.run(
        [str(program), "-c", code], env=secrets | needed, capture_output=True, text=True, check=True
    )
    assert "CANARY" not in shown.stdout
    found = json.loads(shown.stdout)
    assert {**needed, "PYTHONPATH": "/some where"}.items() <= found.items()
    assert found["HOME"] == str(tmp_path / "tmp")

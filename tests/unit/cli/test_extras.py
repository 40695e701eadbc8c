"""The bare package: commands name the extra that they lack, and end in no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from leatstream.cli.extras import extra_of, missing

# Makes imports of some libraries fail as they do where those are not installed.
PROBE = """
import sys
for name in {hidden!r}:
    sys.modules[name] = None
sys.argv = ["leat", *{argv!r}]
from leatstream.cli.main import main
main()
"""
SERVER = ("psutil", "fastapi", "uvicorn", "sqlglot", "sqlalchemy", "yaml", "alembic", "psycopg")


def bare(*argv: str) -> subprocess.CompletedProcess[str]:
    code = PROBE.format(argv=list(argv), hidden=SERVER)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("argv", [("dev",), ("openapi",), ("demo",)])
def test_a_command_of_the_server_names_the_extra(argv: tuple[str, ...]) -> None:
    done = bare(*argv)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "the extra `server`" in done.stderr
    assert done.stdout == ""


def test_doctor_works_without_any_extra() -> None:
    done = bare("doctor", "-o", "json")
    assert "Traceback" not in done.stderr
    assert "not measured without psutil" in done.stdout


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("psutil", "server"),
        ("sqlalchemy.orm", "server"),
        ("yaml", "server"),
        ("confluent_kafka", "kafka"),
        ("pyspark.sql", "spark"),
        ("grpc_nothing", None),
        (None, None),
        ("leatstream.gone", None),
    ],
)
def test_the_extra_of_a_module(module: str | None, extra: str | None) -> None:
    assert extra_of(module) == extra
    told = missing(ModuleNotFoundError(name=module))
    assert (told is None) == (extra is None)

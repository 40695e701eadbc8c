"""The bare package: commands name the extra that they lack, and end in no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from leatstream.cli.extras import extra_of, missing
from leatstream.model.extras import command_of, install_extra

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


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (
            {"url": "file:///home/a%20b/leat", "dir_info": {"editable": True}},
            "pip install -e '/home/a b/leat[tools]'",
        ),
        (
            {"url": "file:///w/leatstream-1-py3-none-any.whl", "archive_info": {}},
            "pip install 'leatstream[tools] @ file:///w/leatstream-1-py3-none-any.whl'",
        ),
    ],
)
def test_an_extra_comes_from_where_the_package_came_from(origin: dict[str, object], command: str) -> None:
    """It is on no index."""
    assert command_of("tools", origin) == command


@pytest.mark.parametrize("origin", [{}, {"url": "https://me:pw@index.example/leatstream.whl"}])
def test_an_address_that_may_hold_a_password_is_not_shown(origin: dict[str, object]) -> None:
    command = command_of("tools", origin)
    assert "example" not in command
    assert "leatstream[tools] @ file://" in command
    assert "pip install -e '.[tools]'" in command


def test_the_command_is_that_of_this_installation() -> None:
    assert install_extra("tools").endswith("[tools]'")

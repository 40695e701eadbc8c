"""What the command line does not load: a fast start is a promise."""

from __future__ import annotations

import subprocess
import sys

from leatstream import __version__

PROBE = """
import sys
sys.argv = ["leat", *{argv!r}]
from leatstream.cli.main import main
try:
    main()
except SystemExit:
    pass
print(*sorted({names!r} & set(sys.modules)), file=sys.stderr)
"""


def loaded(names: set[str], *argv: str) -> subprocess.CompletedProcess[str]:
    code = PROBE.format(argv=list(argv), names=names)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )


def test_version_loads_nothing() -> None:
    done = loaded({"typer", "rich", "httpx2", "pydantic", "sqlalchemy", "pyspark"}, "--version")
    assert done.stdout == f"leat {__version__}\n"
    assert done.stderr.strip() == ""


def test_help_loads_neither_server_nor_client() -> None:
    done = loaded(
        {"httpx2", "fastapi", "sqlalchemy", "pyspark", "sqlglot", "psutil", "confluent_kafka"}, "--help"
    )
    assert "Usage: leat" in done.stdout
    assert done.stderr.strip() == ""

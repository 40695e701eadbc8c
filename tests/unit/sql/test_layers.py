"""The front end is light: parsing and binding must not pull in an engine."""

from __future__ import annotations

import subprocess
import sys


def test_no_engine_is_imported() -> None:
    code = (
        "import sys, leatstream.sql.parser, leatstream.sql.binder, leatstream.sql.analysis,"
        " leatstream.sql.store_properties; print([m for m in sys.modules if m.startswith(('pyspark', 'py4j'))])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout.strip() == "[]"

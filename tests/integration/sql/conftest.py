"""The unit tests' catalog serves here too."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PATH = Path(__file__).parents[2] / "unit" / "sql" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("sql_catalog", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
_CATALOG = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_CATALOG)
bind_text = _CATALOG._bind_text

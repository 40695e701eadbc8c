"""Stands before the real library in Spark's Python workers: its ``connect`` knows the double, too."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_here = os.path.dirname(__file__)
sys.path.append(os.path.dirname(_here))
_spec = PathFinder.find_spec("oracledb", [place for place in sys.path if place != _here])
assert _spec is not None
assert _spec.loader is not None
_real = module_from_spec(_spec)
sys.modules["oracledb"] = _real
_spec.loader.exec_module(_real)

import oracle_double  # noqa: E402

oracle_double.install()

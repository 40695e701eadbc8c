"""A clock for one module alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest


def set_clock(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, **functions: Callable[..., object]
) -> None:
    """Replace functions of ``time`` as one module sees them.

    A patch of the ``time`` module itself reaches every thread of the process: pytest-xdist's, and those
    that earlier tests have left.
    """
    monkeypatch.setattr(module, "time", SimpleNamespace(**(vars(time) | functions)))

"""Programs that only say their version, to look for on a PATH of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path / "cache"
    monkeypatch.setenv("LEATSTREAM_CACHE_DIR", str(cache))
    return cache


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    """Make ``directory/bin/name``, a script that runs a shell body."""

    def make(directory: str, name: str, body: str) -> Path:
        path = tmp_path / directory / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return make

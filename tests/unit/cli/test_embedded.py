"""``leat dev`` on a machine that lacks what it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leatstream.services.environment.authorization import well_formed

Leat = Callable[..., Any]


def test_dev_without_java_says_how_to_get_one(
    leat: Leat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("leatstream.dev.stack.find_java", lambda: None)
    ready = tmp_path / "ready.json"
    found = leat("dev", "--port", "0", "--data-dir", str(tmp_path / "data"), "--ready-file", str(ready))
    assert found.status != 0
    told = " ".join(found.err.split())
    assert "need Java 17 or newer" in told
    assert "leat doctor" in told
    assert "Traceback" not in told
    assert not ready.exists()
    # The directory is free again: the next start is not told that another one runs there.
    assert leat("dev", "--port", "0", "--data-dir", str(tmp_path / "data")).err.count("Java 17") == 1


def test_a_token_for_servers(leat: Leat) -> None:
    one, other = (leat("token").out.strip() for _ in range(2))
    assert well_formed(one)
    assert one != other

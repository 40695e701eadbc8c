"""What the box at the end of a start tells to call."""

from __future__ import annotations

from pathlib import Path

import pytest

from leatstream.dev.closing_words import program


def installed(directory: Path) -> Path:
    directory.mkdir(parents=True)
    leat = directory / "leat"
    leat.write_text("#!/bin/sh\n")
    leat.chmod(0o755)
    return leat


def test_a_leat_that_is_not_on_path_is_named_by_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    leat = installed(tmp_path / ".venv" / "bin")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(leat.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert program() == ".venv/bin/leat"
    monkeypatch.setenv("PATH", str(leat.parent))
    assert program() == "leat"

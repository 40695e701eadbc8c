"""What the box at the end of a start tells to call."""

from __future__ import annotations

from pathlib import Path

import pytest

from leatstream.dev.closing_words import closing_words, program
from leatstream.dev.java import Java
from leatstream.dev.stack import DevSettings


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


def test_the_console_is_named(tmp_path: Path) -> None:
    java = Java(tmp_path, tmp_path / "java", 17, "PATH")
    settings = DevSettings(
        "http://127.0.0.1:1", tmp_path, tmp_path, "localhost:9092", (), java, ephemeral=True
    )
    words = closing_words(settings, tmp_path / "ready.json", sample=True).plain
    assert "http://127.0.0.1:1/ui/\n" in words

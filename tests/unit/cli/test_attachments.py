"""Which files ``leat sql`` sends along."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leatstream.cli.attachments import attachments

Leat = Callable[..., Any]
SOURCE = "CREATE FUNCTION_SOURCE f WITH ('file' = '@{}');"
DONE = {"results": [], "context": {}}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a secret, and a repository in it with a script's files."""
    (tmp_path / "id_key").write_text("PRIVATE")
    (tmp_path / "repo" / "lib").mkdir(parents=True)
    (tmp_path / "repo" / "own.py").write_text("own")
    (tmp_path / "repo" / "lib" / "deep.py").write_text("deep")
    (tmp_path / "repo" / "link.py").symlink_to(tmp_path / "id_key")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sent(service: Any) -> dict[str, str]:
    files = service.last_body.get("files") or {}
    return {name: base64.b64decode(content).decode() for name, content in files.items()}


def script(place: Path, text: str) -> str:
    (place / "repo" / "setup.sql").write_text(text)
    return str(place / "repo" / "setup.sql")


@pytest.mark.parametrize(
    "text",
    [
        "LIST STORES; -- 'file' = '@~/id_key'",
        "LIST STORES /* 'file' = '@~/id_key' */;",
        "CREATE DATABASE d COMMENT ' ''file'' = ''@~/id_key'' ';",
        "SELECT a FROM b WHERE c = ' ''file''=''@~/id_key'' ';",
        "CREATE STREAM s (a BIGINT) WITH ('file' = '@~/id_key');",
        "CREATE FUNCTION_SOURCE f WITH ('description' = ' ''file'' = ''@~/id_key'' ', 'content' = 'x');",
        "LIST STORES; this is no SQL 'file' = '@~/id_key';",
    ],
)
def test_only_statements_that_take_a_file_name_one(place: Path, service: Any, leat: Leat, text: str) -> None:
    service.answer("POST", "/v1/statements", DONE)
    assert leat("sql", "-f", script(place, text)).status == 0
    assert leat("sql", "-e", text).status == 0
    for request in service.requests:
        assert b"UFJJVkFURQ" not in request.content  # PRIVATE in base64


@pytest.mark.parametrize("name", ["~/id_key", "../id_key", "lib/../../id_key", "link.py", "{home}/id_key"])
def test_a_script_sends_no_file_from_elsewhere(place: Path, service: Any, leat: Leat, name: str) -> None:
    """Who wrote a script need not be who runs it."""
    file = script(place, SOURCE.format(name.format(home=place)))
    refused = leat("sql", "-f", file)
    assert (refused.status, service.requests) == (2, [])
    assert "not beside or below it" in " ".join(refused.err.replace("│", " ").split())
    service.answer("POST", "/v1/statements", DONE)
    assert leat("sql", "-f", file, "--allow-files", str(place)).status == 0
    assert list(sent(service).values()) == ["PRIVATE"]


@pytest.mark.parametrize("name", ["own.py", "lib/deep.py", "./own.py", "repo/own.py", "~/repo/own.py"])
def test_a_script_sends_files_beside_and_below_it(place: Path, service: Any, leat: Leat, name: str) -> None:
    service.answer("POST", "/v1/statements", DONE)
    assert leat("sql", "-f", script(place, SOURCE.format(name))).status == 0
    assert sent(service) == {name: "deep" if "deep" in name else "own"}


def test_a_typed_statement_names_any_file(place: Path, service: Any, leat: Leat) -> None:
    service.answer("POST", "/v1/statements", DONE)
    assert leat("sql", "-e", "CREATE DESCRIPTOR_SOURCE d WITH ('FILE'='@id_key')").status == 0
    assert sent(service) == {"id_key": "PRIVATE"}


def _pipe(file: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(SOURCE.format(file).encode()), encoding="utf-8")


def test_a_pipe_sends_files_of_the_current_directory_only(
    place: Path, service: Any, leat: Leat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place / "repo")
    monkeypatch.setattr("sys.stdin", _pipe("../id_key"))
    assert leat("sql").status == 2
    service.answer("POST", "/v1/statements", DONE)
    monkeypatch.setattr("sys.stdin", _pipe("own.py"))
    assert leat("sql", "-f", "-").status == 0
    assert sent(service) == {"own.py": "own"}


def test_a_file_without_end_is_not_read_to_its_end() -> None:
    with pytest.raises(Exception, match="more than 1 MiB"):
        attachments(SOURCE.format("/dev/zero"))

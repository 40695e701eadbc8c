"""What the prompt keeps of what was typed, and what it never keeps."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from leatstream.cli import history
from leatstream.cli.history import StatementHistory


def kept(path: Path) -> list[str]:
    """As another sitting finds it, newest first."""
    return list(StatementHistory(path).load_history_strings())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "leatstream" / "sql_history"


def test_another_sitting_finds_it_newest_first(path: Path) -> None:
    one = StatementHistory(path)
    one.append_string("LIST\nSTORES;")
    one.append_string("SELECT 'ü' FROM s;")
    assert kept(path) == ["SELECT 'ü' FROM s;", "LIST\nSTORES;"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STORE s WITH ('kafka.sasl.password' = 'hunter2');",
        "create secret s with ('secret_string' = 'hunter2');",
        "CREATE STORE s WITH ('KAFKA.SASL.PassWord' = 'x');",
        "CREATE STORE s WITH ('kinesis.secret_access_key' = 'x');",
        "UPDATE STORE s WITH ('aws.session_token' = 'x');",
        "CREATE STORE s WITH ('uris' = 'postgresql://me:hunter2@host/db');",
        "CREATE STORE s WITH ('tls.client.key_file' = 'x');",
        "CREATE STORE s WITH ('snowflake.private_key' = 'x');",
    ],
)
def test_a_secret_is_not_kept(path: Path, text: str) -> None:
    one = StatementHistory(path)
    one.append_string(text)
    one.append_string("LIST STORES;")
    assert kept(path) == ["LIST STORES;"]
    assert "hunter2" not in path.read_text()


def test_every_secret_property_of_a_store_is_recognized() -> None:
    from leatstream.connectors.registry import connector_classes
    from leatstream.connectors.settings import Secret, settings_of

    secrets = [
        str(setting.key)
        for kind in connector_classes().values()
        for setting in settings_of(kind.Config)
        if setting.find(Secret) is not None and setting.key is not None
    ]
    assert secrets
    assert [key for key in secrets if history.may_be_kept(f"CREATE STORE s WITH ('{key}' = 'x');")] == []


def test_a_file_that_others_could_read_becomes_ones_own(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text('"LIST STORES;"\n')
    path.chmod(0o644)
    assert kept(path) == ["LIST STORES;"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("wrong", ["link", "pipe", "directory"])
def test_what_is_no_file_of_ones_own_is_not_used(path: Path, tmp_path: Path, wrong: str) -> None:
    path.parent.mkdir(parents=True)
    target = tmp_path / "elsewhere"
    if wrong == "link":
        target.write_text("")
        path.symlink_to(target)
    elif wrong == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    one = StatementHistory(path)
    one.append_string("LIST STORES;")
    assert one.fault is not None
    assert not target.exists() or target.read_text() == ""


def test_a_line_that_was_cut_off_is_passed_over(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text('"one;"\n"tw')
    assert kept(path) == ["one;"]


def test_a_large_file_keeps_its_newer_half(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST_BYTES", 40)
    one = StatementHistory(path)
    for number in range(10):
        one.append_string(f"SELECT {number};")
    assert kept(path) == [f"SELECT {number};" for number in range(9, 4, -1)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

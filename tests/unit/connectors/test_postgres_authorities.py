"""The file that holds a store's own certificate authority, for libpq."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from leatstream.connectors.postgres.settings import PostgresConfig, _encryption

PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"


def file_of(text: str) -> Path:
    config = PostgresConfig(
        host="h", database="d", username="u", ssl_mode="verify_ca", ca_certificate=PEM.format(text)
    )
    return Path(_encryption(config)["sslrootcert"])


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_one_content_has_one_file_in_all_processes(temporary: Path) -> None:
    first = file_of("a")
    assert first.read_text() == PEM.format("a")
    first.write_text("as another process left it")
    assert file_of("a") == first
    assert file_of("b") != first
    assert len([one for one in temporary.rglob("*") if one.is_file()]) == 2


def test_a_file_that_was_swept_is_made_anew() -> None:
    first = file_of("a")
    first.unlink()
    assert file_of("a").read_text() == PEM.format("a")


def test_a_directory_that_others_may_write_to_is_not_trusted(temporary: Path) -> None:
    folder = file_of("a").parent
    folder.chmod(0o777)
    other = file_of("a")
    assert other.parent != folder
    assert other.stat().st_mode & 0o077 == 0

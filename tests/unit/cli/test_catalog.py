"""``leat catalog``: the catalog's schema, while no server works on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from next_schema import NEXT, next_schema

from leatstream.settings import Settings
from leatstream.storage.migrate import migrate, revision
from leatstream.storage.sharing import hold

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Result

    Leat = Callable[..., Result]


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """URL of a catalog with the newest schema, that of the settings."""
    monkeypatch.setenv("LEATSTREAM_DATA_DIR", str(tmp_path))
    url = Settings().catalog
    migrate(url)
    return url


def test_it_goes_back_and_forth(
    leat: Leat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalog: str
) -> None:
    first = revision(catalog)
    next_schema(monkeypatch, tmp_path)
    forth = leat("catalog", "migrate")
    assert (forth.status, forth.out.split()) == (0, [first, "->", NEXT])
    back = leat("catalog", "migrate", "--to", first)
    assert (back.status, back.out.split()) == (0, [NEXT, "->", first])
    assert revision(catalog) == first
    assert leat("catalog", "migrate", "--to", "r0012").status == 1


def test_a_setting_that_cannot_be_used_is_named(leat: Leat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEATSTREAM_LEASE_SECONDS", "0")
    told = leat("catalog", "migrate")
    assert (told.status, "LEATSTREAM_LEASE_SECONDS" in told.err) == (1, True)


def test_a_misspelt_setting_is_told(
    leat: Leat, catalog: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LEATSTREAM_CATALOG_URI", "s3cret")
    assert leat("catalog", "migrate").status == 0
    assert "did you mean LEATSTREAM_CATALOG_URL?" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("target", ["base", "-1", ""])
def test_nothing_that_would_lose_the_catalog_is_taken(leat: Leat, catalog: str, target: str) -> None:
    before = revision(catalog)
    assert leat("catalog", "migrate", f"--to={target}").status == 2
    assert revision(catalog) == before


def test_a_server_that_works_on_it_is_in_the_way(leat: Leat, catalog: str, tmp_path: Path) -> None:
    before, held = revision(catalog), hold(tmp_path, catalog)
    told = leat("catalog", "migrate", "--to", before)
    assert (told.status, "already-running" in told.err) == (5, True)
    for lock in held:
        lock.close()
    assert revision(catalog) == before

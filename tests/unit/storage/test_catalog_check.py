"""A catalog that is lost or damaged is told as that, and never begun anew by itself."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from leatstream.bootstrap import open_runtime
from leatstream.errors import StackError
from leatstream.settings import Settings
from leatstream.storage.catalog_check import check_catalog
from leatstream.storage.migrate import at_head, migrate, revision


@pytest.fixture
def worked(tmp_path: Path) -> Settings:
    """Settings of a server whose directory holds what one that has worked leaves, and its catalog."""
    settings = Settings(data_dir=tmp_path)
    migrate(settings.catalog)
    (tmp_path / "server.id").write_text("srv_1")
    (tmp_path / "checkpoints" / "queries" / "qry_1").mkdir(parents=True)
    return settings


def start(settings: Settings) -> StackError:
    """What a server says that does not start."""
    with pytest.raises(StackError) as told:
        open_runtime(settings, "http://127.0.0.1:1", {})
    assert told.value.code == "part-failed"
    assert "\n" not in f"{told.value.detail}{told.value.faults[0].hint}"
    return told.value


@pytest.mark.parametrize(
    ("lose", "state"),
    [
        (lambda file: file.write_bytes(b""), "is empty (0 bytes)"),
        (lambda file: file.unlink(), "is missing"),
        (lambda file: [file.unlink(), sqlite3.connect(file).execute("VACUUM")], "has no tables"),
        (lambda file: migrate(f"sqlite:///{file}", "base"), "has no tables"),
    ],
)
def test_a_lost_catalog_is_not_taken_for_a_new_one(
    worked: Settings, lose: Callable[[Path], object], state: str
) -> None:
    file = worked.data_dir / "catalog.db"
    lose(file)
    before = file.stat().st_size if file.exists() else None
    told = start(worked)
    assert f"The catalog {file} {state}, but a server has worked here before" in told.detail
    for way_out in ("backup", "LEATSTREAM_DATA_DIR", "leat catalog migrate --new"):
        assert way_out in str(told.faults[0].hint)
    assert (file.stat().st_size if file.exists() else None) == before


@pytest.mark.parametrize(
    "mark", ["server.id", "token", "checkpoints/queries/q", "views/v.db", "catalog.db-wal"]
)
def test_each_trace_of_work_counts(tmp_path: Path, mark: str) -> None:
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).write_text("x")
    with pytest.raises(StackError, match="a server has worked here before"):
        check_catalog(Settings(data_dir=tmp_path).catalog, tmp_path, str(tmp_path / "checkpoints"))
    assert (tmp_path / mark).read_text() == "x"


@pytest.mark.parametrize(
    "made", [(), ("catalog.db",), ("catalog.db", "server.lock", "keys.json", "checkpoints/.place")]
)
def test_a_first_start_may_be_repeated(tmp_path: Path, made: tuple[str, ...]) -> None:
    """Also one that was cut off before it had a catalog, and one with a key ring that was laid ready."""
    for name in made:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    check_catalog(Settings(data_dir=tmp_path).catalog, tmp_path, str(tmp_path / "checkpoints"))


def test_a_catalog_that_is_there_passes_also_with_a_log(worked: Settings) -> None:
    with closing(sqlite3.connect(worked.data_dir / "catalog.db")) as connection:
        connection.execute(
            "INSERT INTO tokens (id, hash, name, principal, role, scope, created_at, created_by) "
            "VALUES ('t', 'h', 'n', 'p', 'r', 'read', '2026-01-01', 'p')"
        )
        connection.commit()
        assert (worked.data_dir / "catalog.db-wal").stat().st_size
        check_catalog(worked.catalog, worked.data_dir, worked.checkpoints)
        assert connection.execute("SELECT count(*) FROM tokens").fetchone() == (1,)


def _cut(file: Path, share: float) -> None:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


def _overwrite(file: Path, start: int, size: int, byte: bytes = b"\0") -> None:
    with file.open("r+b") as stream:
        stream.seek(start)
        stream.write(byte * size)


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: _cut(file, 0.5),
        lambda file: _cut(file, 0.01),
        lambda file: file.write_bytes(file.read_bytes()[:10]),
        lambda file: _overwrite(file, 0, 100, b"x"),
        lambda file: _overwrite(file, 0, 16),
        lambda file: _overwrite(file, 4096, 8192),
        lambda file: file.write_text("{}\n" * 5000),
        lambda file: [file.unlink(), file.mkdir()],
    ],
)
def test_a_damaged_catalog_is_one_line_with_a_hint(
    worked: Settings, damage: Callable[[Path], object]
) -> None:
    file = worked.data_dir / "catalog.db"
    damage(file)
    kept = worked.data_dir / "kept"
    shutil.copytree(file, kept) if file.is_dir() else shutil.copy(file, kept)
    told = start(worked)
    assert told.detail.startswith(f"The catalog {file} ")
    assert "backup" in str(told.faults[0].hint)
    assert file.is_dir() or file.read_bytes() == kept.read_bytes()


@pytest.mark.parametrize("table", ["customers", "alembic_version"])
def test_a_database_of_another_application_is_left_alone(tmp_path: Path, table: str) -> None:
    file = tmp_path / "catalog.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE {table} (version_num TEXT)")
        connection.execute(f"INSERT INTO {table} VALUES ('3f2a')")
        connection.commit()
    before = file.read_bytes()
    assert "belongs to another application" in start(Settings(data_dir=tmp_path)).detail
    assert file.read_bytes() == before


def test_the_way_out_makes_an_empty_catalog(worked: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from leatstream.cli import app

    monkeypatch.setenv("LEATSTREAM_DATA_DIR", str(worked.data_dir))
    (worked.data_dir / "catalog.db").write_bytes(b"")
    assert app.run(["catalog", "migrate"]) == 1
    assert app.run(["catalog", "migrate", "--new"]) == 0
    assert at_head(worked.catalog)
    check_catalog(worked.catalog, worked.data_dir, worked.checkpoints)
    assert revision(worked.catalog) != "base"

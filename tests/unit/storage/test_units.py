"""Units of work and repositories on SQLite."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from leatstream.errors import CatalogAway, CatalogBusy, CatalogError, CatalogFull, StackError
from leatstream.model.access import TokenRow
from leatstream.model.objects import Database, Meta, Schema
from leatstream.ports import DriverRow, OpenUnit, SecretBox, UnitOfWork
from leatstream.storage import engine as storage_engine
from leatstream.storage import unit_of_work
from leatstream.storage.key_file import KeyRing
from leatstream.storage.repositories import end_of_prefix
from leatstream.storage.secret_box import KeyRingBox
from leatstream.storage.unit_of_work import SqlUnits, open_units

MOMENT = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def _meta(object_id: str) -> Meta:
    return Meta(
        id=object_id, generation=1, created_at=MOMENT, updated_at=MOMENT, created_by="ann", owner="sysadmin"
    )


def _database(name: str) -> Database:
    return Database(meta=_meta(f"db_{name}"), name=name)


def test_a_database_that_is_not_there() -> None:
    away = open_units("postgresql://leat@127.0.0.1:1/catalog")
    with pytest.raises(CatalogAway), away(write=False):
        raise AssertionError("a unit was opened")


def test_fits_the_ports(units: SqlUnits) -> None:
    """The type checker compares these with the protocols."""
    opener: OpenUnit = units
    with opener(write=False) as unit:
        whole: UnitOfWork = unit
        assert whole.find_token("none") is None
    box: SecretBox = KeyRingBox(KeyRing({"k": bytes(32)}, "k"))
    assert box.open("r", box.seal("r", "v")) == "v"


def test_nothing_is_kept_without_commit(units: SqlUnits) -> None:
    """Leaving the block, by return or by error, rolls back."""
    with units() as unit:
        unit.databases.add(_database("a"))
    with contextlib.suppress(RuntimeError), units() as unit:
        unit.databases.add(_database("b"))
        raise RuntimeError
    with units(write=False) as unit:
        assert unit.databases.page() == []


def test_an_error_does_not_tell_what_was_to_be_written(units: SqlUnits) -> None:
    """It goes into the server's log as it is."""
    with units() as unit:
        unit.databases.add(_database("a"))
        with pytest.raises(sa.exc.IntegrityError) as caught:
            unit.databases.add(replace(_database("a"), name="told-in-confidence"))
    assert "told-in-confidence" not in str(caught.value)


def test_commit_keeps_everything(units: SqlUnits) -> None:
    """All repositories of a unit share its transaction."""
    with units() as unit:
        unit.databases.add(_database("a"))
        unit.secrets.put("secret://x", b"\x00\xff")
        unit.commit()
    with units(write=False) as unit:
        assert unit.databases.find("a") == _database("a")
        assert unit.databases.find_by_id("db_a") == _database("a")
        assert unit.secrets.find("secret://x") == b"\x00\xff"


def test_keys_are_case_sensitive_and_exact(units: SqlUnits) -> None:
    """Demo, demo and their look-alikes are different objects."""
    names = ["demo", "Demo", "demo ", "dem_", "ＤＥＭＯ", 'a"b', "日本"]
    with units() as unit:
        for name in names:
            unit.databases.add(_database(name))
        unit.commit()
    with units(write=False) as unit:
        assert [unit.databases.find(name) for name in names] == [_database(name) for name in names]
        assert unit.databases.find("DEMO") is None
        assert unit.databases.find("dem%") is None


def test_taken_key(units: SqlUnits) -> None:
    """A second object of the same key is refused with a code, and the unit can go on."""
    with units() as unit:
        unit.databases.add(_database("a"))
        with pytest.raises(CatalogError) as caught:
            unit.databases.add(replace(_database("a"), meta=_meta("other")))
        assert caught.value.code == "already-exists"
        unit.commit()


def test_update_and_delete(units: SqlUnits) -> None:
    """Update replaces by id; updating what is gone says so; deleting twice is nothing."""
    with units() as unit:
        unit.databases.add(_database("a"))
        unit.databases.update(replace(_database("a"), comment="new"))
        assert unit.databases.find("a") == replace(_database("a"), comment="new")
        unit.databases.delete("db_a")
        unit.databases.delete("db_a")
        with pytest.raises(CatalogError) as caught:
            unit.databases.update(_database("a"))
        assert caught.value.code == "not-found"


def test_pages_by_key_with_prefix(units: SqlUnits) -> None:
    """Keyset pages: in key order, after a key, within a prefix."""
    with units() as unit:
        for database, name in [("a", "x"), ("a", "y"), ("a", "z"), ("ab", "x"), ("b", "x")]:
            unit.schemas.add(Schema(meta=_meta(f"{database}.{name}"), database=database, name=name))
        unit.commit()
    with units(write=False) as unit:
        keys = [f"{s.database}.{s.name}" for s in unit.schemas.page(prefix="a.", limit=2)]
        assert keys == ["a.x", "a.y"]
        assert [s.name for s in unit.schemas.page(prefix="a.", after="a.y")] == ["z"]
        assert len(unit.schemas.page()) == 5
        assert unit.schemas.page(prefix="c") == []


@given(st.text(max_size=5), st.text(max_size=5))
def test_end_of_prefix_bounds_exactly(prefix: str, more: str) -> None:
    """Every text with the prefix is below the bound, by code point, and the bound itself lacks the prefix."""
    end = end_of_prefix(prefix)
    if end is not None:
        assert prefix + more < end
        assert not end.startswith(prefix)


def test_a_writer_sees_what_the_writer_before_it_wrote(units: SqlUnits) -> None:
    """Look-then-write in many threads loses no update."""
    with units() as unit:
        unit.databases.add(_database("a"))
        unit.commit()

    def count() -> None:
        for _ in range(10):
            with units() as unit:
                found = unit.databases.find("a")
                assert found is not None
                generation = found.meta.generation + 1
                unit.databases.update(replace(found, meta=replace(found.meta, generation=generation)))
                unit.commit()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with units(write=False) as unit:
        found = unit.databases.find("a")
        assert found is not None
        assert found.meta.generation == 41


def test_readers_do_not_wait_for_a_writer(units: SqlUnits) -> None:
    """A read unit sees the state before an open write unit."""
    with units() as writer:
        writer.databases.add(_database("a"))
        with units(write=False) as reader:
            assert reader.databases.find("a") is None


def _token(
    token_id: str, token_hash: str, principal: str, at: datetime, ends: datetime | None = None
) -> TokenRow:
    return TokenRow(
        id=token_id,
        hash=token_hash,
        name=principal,
        principal=principal,
        role="reader",
        scope="read",
        created_at=at,
        created_by=principal,
        expires_at=ends,
    )


def test_tokens(units: SqlUnits) -> None:
    """A token is found by hash until it expires or is revoked."""
    now = datetime.now(UTC)
    with units() as unit:
        unit.tokens.add(_token("t1", "h1", "ann", now))
        unit.tokens.add(_token("t2", "h2", "bob", now, now + timedelta(hours=1)))
        unit.tokens.add(_token("t3", "h3", "eve", now, now - timedelta(seconds=1)))
        assert unit.find_token("h1") == _token("t1", "h1", "ann", now)
        assert unit.find_token("h2") == _token("t2", "h2", "bob", now, now + timedelta(hours=1))
        assert unit.find_token("h3") is None
        unit.tokens.delete("t1")
        assert unit.find_token("h1") is None
        unit.tokens.add(_token("t2", "h4", "bob", now))
        assert unit.find_token("h2") is None
        assert unit.find_token("h4") == _token("t2", "h4", "bob", now)


def test_drivers(units: SqlUnits) -> None:
    """Driver rows are added, found, changed, listed by age and forgotten."""
    first = DriverRow(id="d1", role="dedicated", token_hash="h", pid=7, started_at=1.25, created_at=MOMENT)
    second = replace(first, id="d0", created_at=MOMENT + timedelta(seconds=1), query_id="q", attempt=2)
    with units() as unit:
        unit.drivers.add(second)
        unit.drivers.add(first)
        unit.drivers.update(replace(first, pid=8))
        assert unit.drivers.list() == [replace(first, pid=8), second]
        unit.drivers.delete("d1")
        assert unit.drivers.list() == [second]
        with pytest.raises(CatalogError):
            unit.drivers.update(first)


def test_the_file_is_private(url: str) -> None:
    """Only the owner may read the catalog."""
    path = Path(url.removeprefix("sqlite:///"))
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("bad", ["sqlite://", "sqlite:///:memory:", "mysql://h/d"])
def test_urls_that_cannot_hold_a_catalog(bad: str) -> None:
    """Refused with what to give instead."""
    with pytest.raises(StackError) as caught:
        open_units(bad)
    assert caught.value.faults[0].hint


def test_a_writer_that_waits_too_long_is_told_so(units: SqlUnits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_of_work, "BUSY_SECONDS", 0.05)
    with units(), pytest.raises(CatalogBusy) as caught, units():
        raise AssertionError("two write at a time")
    told = caught.value.for_caller()
    assert (told.code, told.status, told.retryable) == ("catalog-busy", 503, True)


def test_a_pool_without_a_connection_left_is_told_as_busy(url: str) -> None:
    units = SqlUnits(sa.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.05))
    with units(write=False), pytest.raises(CatalogBusy) as caught, units(write=False):
        raise AssertionError("a second connection was made")
    told = caught.value.for_caller()
    assert (told.code, told.status, told.retryable) == ("catalog-busy", 503, True)
    units.close()


def test_a_file_that_another_process_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_engine, "BUSY_SECONDS", 0.05)
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    one, other = open_units(url), open_units(url)
    with one(), pytest.raises(CatalogBusy) as caught, other():
        raise AssertionError("two write at a time")
    assert caught.value.for_caller().code == "catalog-busy"
    one.close()
    other.close()


def test_a_full_disk_is_no_fault_of_what_was_asked_for(units: SqlUnits) -> None:
    @sa.event.listens_for(units._engine, "begin")
    def no_more_pages(connection: sa.Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")

    def write() -> None:
        with units() as unit:
            unit.secrets.put("secret://large", bytes(1_000_000))
            unit.commit()

    with pytest.raises(CatalogFull) as caught:
        write()
    told = caught.value.for_caller()
    assert (told.code, told.status, told.retryable) == ("catalog-full", 503, True)
    with units(write=False) as unit:
        assert unit.secrets.find("secret://large") is None


@pytest.mark.parametrize("text", ["database or disk is full", None])
def test_a_full_disk_is_known_by_either_database(text: str | None) -> None:
    fault: Exception = Exception(text)
    if text is None:
        fault = psycopg.errors.DiskFull("could not extend file")
    error = sa.exc.OperationalError("INSERT", {}, fault)
    assert storage_engine.is_full(error)
    assert not storage_engine.is_away(error)
    assert not storage_engine.is_full(sa.exc.OperationalError("INSERT", {}, Exception("no such table")))

"""The catalog in PostgreSQL: its migrations, and what servers that share it tell and leave each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from concurrent_changes import assert_nothing_is_missed, follow_concurrent_writers

from leatstream.bootstrap import open_runtime
from leatstream.errors import CatalogAway, CatalogBusy, LeatstreamError, StackError
from leatstream.settings import Settings
from leatstream.storage import engine as storage_engine
from leatstream.storage.announcements import Announcements
from leatstream.storage.engine import make_engine
from leatstream.storage.leases import CatalogLeases
from leatstream.storage.migrate import at_head, migrate
from leatstream.storage.secret_box import open_secret_box
from leatstream.storage.sharing import join_servers, prove_keys, refuse_living_servers
from leatstream.storage.tables import metadata, queries, query_leases
from leatstream.storage.unit_of_work import open_units

pytestmark = pytest.mark.core

LEASE = 0.3  # seconds


@pytest.fixture
def catalog(postgres: Any) -> Iterator[str]:
    """URL of a new, migrated catalog."""
    with postgres.connect("postgres") as connection:
        connection.execute("CREATE DATABASE sharing")
    url = f"postgresql://leat@127.0.0.1:{postgres.port}/sharing"
    migrate(url)
    yield url
    with postgres.connect("postgres") as connection:
        connection.execute("DROP DATABASE sharing WITH (FORCE)")


def add_queries(url: str, *names: str) -> None:
    engine = make_engine(url)
    now = sa.func.now()
    with engine.execution_options(leatstream_write=True).begin() as connection:
        for name in names:
            row = {"id": name, "key": name, "generation": 1, "created_by": "ann", "owner": "sysadmin"}
            row |= {"created_at": now, "updated_at": now}
            connection.execute(sa.insert(queries).values(**row, document={}))
    engine.dispose()


def test_migrations_on_postgresql(catalog: str) -> None:
    migrate(catalog, "base")
    assert not at_head(catalog)
    migrate(catalog)
    engine = make_engine(catalog)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        asked = "SELECT data_type FROM pg_sequences WHERE sequencename = 'query_log_id_seq'"
        assert str(connection.scalar(sa.text(asked))) == "bigint"
    with engine.execution_options(leatstream_write=True).begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'r9999'"))
    engine.dispose()
    with pytest.raises(StackError, match="newer leatstream"):
        migrate(catalog)


def test_a_server_that_lives_is_in_the_way_of_another_schema(catalog: str) -> None:
    refuse_living_servers(catalog, 15)
    leases = CatalogLeases(catalog, "one", "here", 60, 15)
    assert leases.join()
    with pytest.raises(StackError, match="Servers work on this catalog: one"):
        refuse_living_servers(catalog, 15)
    leases.close()
    refuse_living_servers(catalog, 15)
    migrate(catalog, "base")
    refuse_living_servers(catalog, 15)
    migrate(catalog)
    assert at_head(catalog)


def test_a_query_has_one_server_at_a_time(catalog: str) -> None:
    add_queries(catalog, "q1", "q2")
    one, two = (CatalogLeases(catalog, name, "here", 60, 15) for name in ("one", "two"))
    assert one.join()
    assert two.join()
    assert one.renew() == {"q1", "q2"}
    assert two.renew() == frozenset()
    add_queries(catalog, "q3")
    assert two.renew() == {"q3"}
    assert one.renew() == {"q1", "q2"}
    one.hand_over("q1")
    assert one.renew() == {"q2"}
    assert two.renew() == {"q1", "q3"}
    two.close()
    one.hand_over("q2")
    assert one.renew() == {"q1", "q2", "q3"}, "given back, and kept where there is nobody else"
    one.close()


def test_a_query_whose_driver_could_not_be_ended_waits_for_its_time(catalog: str) -> None:
    """Given back like the others, it would have two jobs on one checkpoint."""
    add_queries(catalog, "q1", "q2")
    one, two = (CatalogLeases(catalog, name, "here", 60, 15) for name in ("one", "two"))
    assert one.join()
    assert two.join()
    assert one.renew() == {"q1", "q2"}
    one.close({"q2"})
    assert two.renew() == {"q1"}
    engine = make_engine(catalog)
    with engine.execution_options(leatstream_write=True).begin() as connection:
        connection.execute(sa.text("UPDATE query_leases SET expires_at = now() - interval '1 second'"))
    engine.dispose()
    assert two.renew() == {"q1", "q2"}
    two.close()


def test_a_server_that_cannot_start_does_not_count_as_one_that_lives(
    catalog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its leases stay: drivers of its last run may be at work."""
    add_queries(catalog, "q1")
    settings = Settings(catalog_url=catalog, data_dir=tmp_path / "own")
    other = CatalogLeases(catalog, "other", "elsewhere", 60, 15)

    def broken(*_: Any, **__: Any) -> None:
        last = CatalogLeases(catalog, next(iter(other.others())), "here", 60, 15)
        assert last.renew() == {"q1"}
        raise StackError("part-failed", "not today")

    monkeypatch.setattr("leatstream.bootstrap.opening.prove_keys", broken)
    for _ in range(2):  # nothing is held that the next try needs
        with pytest.raises(StackError, match="not today"):
            open_runtime(settings, "http://h", {})
    assert other.others() == {}
    assert other.join()
    assert other.renew() == frozenset()
    other.close()


def test_a_silent_server_keeps_its_queries_until_its_drivers_have_ended(
    catalog: str, eventually: Callable[..., Any]
) -> None:
    add_queries(catalog, "q1")
    silent, patient = (CatalogLeases(catalog, name, "here", 1.0, LEASE) for name in ("silent", "patient"))
    assert silent.renew() == {"q1"}
    eventually(lambda: not patient.others(), 10, "the end of the lease")
    assert patient.renew() == frozenset(), "its drivers may still run"
    eventually(lambda: patient.renew() == {"q1"}, 10, "the take-over")
    assert silent.renew() == frozenset()
    patient.close()
    silent.close()


def test_leases_of_queries_that_are_gone_go_without_waiting_for_others(catalog: str) -> None:
    add_queries(catalog, "q1")
    one, two = (CatalogLeases(catalog, name, "here", 60, 15) for name in ("one", "two"))
    assert one.renew() == {"q1"}
    engine = make_engine(catalog).execution_options(leatstream_row_locks=True)
    with engine.begin() as connection:
        connection.execute(sa.delete(queries))
        connection.execute(sa.text("ALTER DATABASE sharing SET lock_timeout = '1s'"))
    with engine.begin() as connection:
        connection.execute(
            sa.select(query_leases).with_for_update()
        )  # the first is in the midst of a renewal
        assert two.renew() == frozenset()
    assert one.renew() == frozenset()
    with engine.connect() as connection:
        assert connection.execute(sa.select(query_leases)).all() == []
    engine.dispose()
    one.close()
    two.close()


def test_the_drivers_of_the_silent_server_count(catalog: str, eventually: Callable[..., Any]) -> None:
    """Whatever the other's setting: it knows nothing of how long these drivers go on."""
    add_queries(catalog, "q1")
    silent = CatalogLeases(catalog, "silent", "here", 600.0, LEASE)
    hasty = CatalogLeases(catalog, "hasty", "here", 0.0, LEASE)
    assert silent.renew() == {"q1"}
    eventually(lambda: not hasty.others(), 10, "the end of the lease")
    engine = make_engine(catalog)

    def age(seconds: int) -> None:
        earlier = query_leases.c.expires_at - sa.func.make_interval(0, 0, 0, 0, 0, 0, seconds)
        with engine.execution_options(leatstream_row_locks=True).begin() as connection:
            connection.execute(sa.update(query_leases).values(expires_at=earlier))

    age(590)
    assert hasty.renew() == frozenset(), "its drivers may still run"
    age(11)
    assert hasty.renew() == {"q1"}
    engine.dispose()
    hasty.close()
    silent.close()


def test_a_server_that_is_busy_keeps_its_queries(catalog: str, eventually: Callable[..., Any]) -> None:
    add_queries(catalog, "q1")
    busy = CatalogLeases(catalog, "busy", "here", 0.0, LEASE)
    assert busy.renew() == {"q1"}
    busy.start()
    engine = make_engine(catalog)

    def expiry() -> Any:
        with engine.connect() as connection:
            return connection.execute(sa.select(query_leases.c.expires_at)).scalar()

    for _ in range(3):
        first = expiry()
        eventually(lambda first=first: expiry() > first, 10, "another renewal")
    busy.close()
    assert expiry() is None
    engine.dispose()


def test_a_server_ends_without_its_catalog(caplog: pytest.LogCaptureFixture) -> None:
    CatalogLeases("postgresql://leat@127.0.0.1:1/none", "one", "here", 60, 15).close()
    assert "could not be given back: OperationalError" in caplog.text


def test_two_that_claim_at_once_share(catalog: str) -> None:
    names = [f"q{i:03}" for i in range(200)]
    add_queries(catalog, *names)
    servers = [CatalogLeases(catalog, f"s{i}", "here", 60, 15) for i in range(4)]
    found: list[frozenset[str]] = []
    threads = [threading.Thread(target=lambda s=s: found.append(s.renew())) for s in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(q for held in found for q in held) == names
    for server in servers:
        server.close()


def test_what_servers_must_have_in_common(catalog: str, tmp_path: Path) -> None:
    assert join_servers("sqlite:////nowhere/x.db", "one", str(tmp_path), 1.0, 15) is None
    one = join_servers(catalog, "one", str(tmp_path / "a"), 1.0, 15)
    assert one is not None
    with pytest.raises(StackError, match="checkpoints elsewhere"):
        join_servers(catalog, "two", str(tmp_path / "b"), 1.0, 15)
    two = join_servers(catalog, "two", str(tmp_path / "a"), 1.0, 15)
    assert two is not None
    one.close()
    two.close()
    units = open_units(catalog)
    prove_keys(units, open_secret_box(tmp_path / "keys.json"))
    prove_keys(units, open_secret_box(tmp_path / "keys.json"))
    with pytest.raises(StackError, match="key ring"):
        prove_keys(units, open_secret_box(tmp_path / "other.json"))
    units.close()


def test_one_server_tells_once_that_its_keys_are_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It starts: what was sealed with a key that is lost can only be given anew, to a server that runs."""
    catalog = f"sqlite:///{tmp_path / 'catalog.db'}"
    migrate(catalog)
    units, seen = open_units(catalog), []
    for name in ("keys", "keys", "other", "other"):
        caplog.clear()
        prove_keys(units, open_secret_box(tmp_path / f"{name}.json"), alone=True)
        seen.append(any("key ring" in record.getMessage() for record in caplog.records))
    assert seen == [False, False, True, False]
    units.close()


def test_a_change_is_heard_by_the_others(catalog: str, postgres: Any, eventually: Callable[..., Any]) -> None:
    heard: dict[str, int] = {"one": 0, "two": 0}

    def hear(name: str) -> Callable[[], None]:
        return lambda: heard.__setitem__(name, heard[name] + 1)

    both = [Announcements(catalog, name, hear(name)) for name in heard]
    for each in both:
        each.start()
    eventually(lambda: min(heard.values()) >= 1, 10, "listening")
    before = dict(heard)
    both[0].tell()
    eventually(lambda: heard["two"] > before["two"], 10, "the word of the first")
    assert heard["one"] == before["one"], "nobody hears himself"
    with postgres.connect("postgres") as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'sharing'")
    eventually(lambda: min(heard[n] - before[n] for n in heard) >= 1, 10, "listening again")

    seen = heard["one"]

    def told() -> bool:
        both[1].tell()
        return bool(heard["one"] > seen)

    eventually(told, 10, "words after the line was down")
    for each in both:
        each.close()


def test_readers_of_changes_miss_nothing_while_servers_write(
    catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = [open_units(catalog), open_units(catalog)]
    assert_nothing_is_missed(servers, follow_concurrent_writers(servers, monkeypatch))
    for each in servers:
        each.close()


def test_a_database_that_goes_away_in_the_midst_of_a_unit(catalog: str, postgres: Any) -> None:
    units = open_units(catalog)

    def lose_it() -> None:
        with units() as unit:
            unit.databases.page(limit=1)
            with postgres.connect("postgres") as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'sharing'"
                )
            unit.databases.page(limit=1)

    with pytest.raises(CatalogAway):
        lose_it()
    with units() as unit:
        assert unit.databases.page(limit=1) == []
    units.close()


def test_a_server_that_stands_still_while_it_writes_stops_the_others_for_a_while_only(
    catalog: str, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(storage_engine, "_STILL_SECONDS", 3)
    monkeypatch.setattr(storage_engine, "BUSY_SECONDS", 1)
    still, other = open_units(catalog), open_units(catalog)

    def writes() -> bool:
        try:
            with other() as unit:
                unit.secrets.put("secret://b", b"b")
                unit.commit()
        except CatalogBusy as error:
            refusals.append(error.for_caller())
            return False
        return True

    def stands_still() -> None:
        with still() as unit:
            unit.secrets.put("secret://a", b"a")
            assert not writes()
            eventually(writes, 30)
            unit.commit()

    refusals: list[LeatstreamError] = []
    with pytest.raises(CatalogAway):
        stands_still()
    assert {(e.code, e.status, e.retryable) for e in refusals} == {("catalog-busy", 503, True)}
    with still(write=False) as unit:
        assert (unit.secrets.find("secret://a"), unit.secrets.find("secret://b")) == (None, b"b")
    still.close()
    other.close()


def test_writers_that_wait_in_one_server_hold_no_connection(catalog: str) -> None:
    """The one whose turn it is may need a second connection, and must get it."""
    units, waiting = open_units(catalog), threading.Barrier(61)

    def write() -> None:
        waiting.wait(30)
        with units() as unit:
            unit.commit()

    writers = [threading.Thread(target=write, daemon=True) for _ in range(60)]
    with units() as unit:
        for writer in writers:
            writer.start()
        waiting.wait(30)
        with units(write=False) as second:
            assert second.secrets.find("secret://a") is None
        unit.commit()
    for writer in writers:
        writer.join(30)
    assert not any(writer.is_alive() for writer in writers)
    units.close()


def test_a_migration_behind_a_change_that_does_not_end_says_so(
    catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_engine, "BUSY_SECONDS", 1)
    units = open_units(catalog)
    with units(), pytest.raises(StackError, match="The catalog is busy"):
        migrate(catalog)
    units.close()


def test_what_the_url_says_of_connections_counts(catalog: str) -> None:
    engine = make_engine(f"{catalog}?connect_timeout=7&keepalives_idle=99")
    with engine.connect() as connection:
        used = connection.connection.dbapi_connection.info.get_parameters()  # type: ignore[union-attr]
    assert {name: used[name] for name in ("connect_timeout", "keepalives_idle", "keepalives_count")} == {
        "connect_timeout": "7",
        "keepalives_idle": "99",
        "keepalives_count": "3",
    }
    engine.dispose()


def test_a_server_that_vanishes_while_it_renews_loses_its_leases(
    catalog: str, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    """Its rows are locked until the database takes them from it: others leave out what is locked."""
    monkeypatch.setattr(storage_engine, "_STILL_SECONDS", 1)
    add_queries(catalog, "q1")
    gone, other = (CatalogLeases(catalog, name, "here", 0.0, LEASE) for name in ("gone", "other"))
    assert gone.join()
    assert other.join()
    assert gone.renew() == {"q1"}

    def vanishes() -> None:
        with gone._begin() as connection:
            gone._show(connection)
            held = sa.update(query_leases).values(expires_at=sa.func.clock_timestamp())
            connection.execute(held)
            eventually(lambda: other.renew() == {"q1"}, 20)

    with pytest.raises(CatalogAway):
        vanishes()
    other.close()
    gone.close()

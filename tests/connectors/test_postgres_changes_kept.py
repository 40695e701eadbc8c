"""Changes of a table that could get lost: beside the first rows, in a publication, behind another server."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from change_feed import KEYED, PLAIN, Feed, fill, rows_of
from postgres_server import PostgresServer

from leatstream.connectors.postgres import cdc_source
from leatstream.connectors.postgres.cdc_note import NOTE, SlotNote
from leatstream.connectors.postgres.cdc_position import Mark, read_offset
from leatstream.connectors.postgres.cdc_records import Form
from leatstream.connectors.postgres.cdc_server import ChangeServer
from leatstream.errors import StoreError

MOMENT, HOUR = timedelta(microseconds=1), 3_600_000_000


def newest(source: Feed) -> dict[int, Any]:
    """The rows by key as what joins or counts them has them: the newest time wins, then the place."""
    ordered = Feed.__new__(Feed)
    ordered.records = sorted(source.records, key=lambda record: (record["timestamp"], record["lsn"]))
    return ordered.table


def times(records: list[dict[str, Any]]) -> dict[int, Any]:
    return {struct.unpack(">q", record["key"])[0]: record["timestamp"] for record in records}


@pytest.mark.parametrize("restarts", [False, True], ids=["one moment", "several"])
def test_changes_while_the_first_rows_are_read_are_newer_than_those(
    admin: psycopg.Connection[Any], feed: Any, restarts: bool
) -> None:
    source = feed()
    table = source.plan.entity
    fill(admin, source, 1, 2000)
    for chunk in range(3):
        assert source.step()
        if restarts:
            source.restart()
        admin.execute(f"UPDATE public.{table} SET name = %s WHERE id IN (1, 800, 1600)", (f"new{chunk}",))
        admin.execute(f"DELETE FROM public.{table} WHERE id IN (%s, %s)", (1990 - chunk, 10 + chunk))
    source.to_the_end()
    wanted = rows_of(admin, source)
    assert source.table == wanted
    assert newest(source) == wanted


@pytest.mark.parametrize("form", [KEYED, PLAIN], ids=["changelog", "stream"])
def test_first_rows_stand_before_every_change_that_they_lack(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any, form: Form
) -> None:
    """One may be in the log already when they are read, and be committed afterwards."""
    source = feed(form)
    table = source.plan.entity
    fill(admin, source, 1, 1000)
    source.step()
    with postgres.connect() as other, other.transaction():
        other.execute(f"UPDATE public.{table} SET name = 'new' WHERE id = 999")
        other.execute(f"DELETE FROM public.{table} WHERE id = 1000")
        source.restart()
        source.until(lambda: len(source.records) == 1000)
    source.until(lambda: len(source.records) == 1002)
    *first, updated, deleted = source.records
    assert max(row["lsn"] for row in first) < updated["lsn"] < deleted["lsn"]
    if form is KEYED:
        assert source.table == rows_of(admin, source)
    else:
        assert all(event["source"]["lsn"] > 0 for event in source.events)


def marked(source: Feed, **more: Any) -> tuple[Mark, ...]:
    """Move the moments of the first rows 1, 2, … hours on: a commit may be older and still not be in them."""
    position = read_offset(source.offset, source.plan.entity)
    marks = tuple(replace(mark, at=mark.at + (i + 1) * HOUR) for i, mark in enumerate(position.marks))
    position = replace(position, marks=(*marks[:-1], replace(marks[-1], **more)))
    source.offset = position.as_offset(source.plan.entity)
    source.restart()
    return position.marks


def test_no_change_is_dated_before_the_rows_that_lack_it(admin: psycopg.Connection[Any], feed: Any) -> None:
    """With a synchronous standby a commit has its time long before anybody sees it."""
    source = feed()
    fill(admin, source, 1, 10)
    source.to_the_end()
    (mark,) = marked(source)
    admin.execute(f"UPDATE public.{source.plan.entity} SET name = 'new' WHERE id = 1")
    read = source.to_the_end()
    assert [record["timestamp"].timestamp() * 1_000_000 for record in read] == [mark.at + 1]


def test_each_key_has_the_moment_of_its_own_rows(admin: psycopg.Connection[Any], feed: Any) -> None:
    """One that moved goes under the old key at the one moment, and comes under the new one at the other."""
    source = feed()
    table = source.plan.entity
    fill(admin, source, 1, 1000)
    source.step()
    source.restart()
    admin.execute(f"UPDATE public.{table} SET name = 'later' WHERE id = 1000")
    source.until(lambda: "complete" not in source.offset["__state"])
    before = read_offset(source.offset, table).settled
    early, late = marked(source, lsn=before + (1 << 30))
    admin.execute(f"UPDATE public.{table} SET name = 'new' WHERE id IN (1, 900)")
    admin.execute(f"UPDATE public.{table} SET id = 2000 WHERE id = 2")
    source.until(lambda: len(source.records) == 1004)
    read = source.records[1000:]
    found = {key: at.timestamp() * 1_000_000 for key, at in times(read).items()}
    assert found == {1: early.at + 1, 2: early.at + 1, 900: late.at + 1, 2000: late.at + 1}
    # A batch that is read from the log once more has the same times.
    for path in Path(source.plan.directory).glob("*.arrow"):
        path.unlink()
    assert source.read(*source.ranges[-1]) == read


@pytest.mark.parametrize("then", ["DELETE FROM public.{} WHERE id = 2", "UPDATE public.{} SET id = 3"])
def test_a_row_that_moved_leaves_its_old_key_also_if_it_is_gone_when_it_is_looked_up(
    admin: psycopg.Connection[Any], feed: Any, then: str
) -> None:
    source = feed()
    table = source.plan.entity
    fill(admin, source, 1, 1)
    source.until(lambda: source.records)
    # The large value is not in the log, so the row is looked up.
    admin.execute(f"UPDATE public.{table} SET id = 2")
    admin.execute(then.format(table))
    source.to_the_end()
    assert source.table == newest(source) == rows_of(admin, source)


def publication(postgres: PostgresServer, name: str, tables: str = "") -> None:
    with postgres.connect() as other:
        other.execute(f"DROP PUBLICATION IF EXISTS {name}")
        other.execute(f"CREATE PUBLICATION {name} {tables}")


def test_a_publication_without_the_table_is_refused_at_the_start(postgres: PostgresServer, feed: Any) -> None:
    source = feed()
    named = {"publication": "lacking", "own_publication": False, "table": source.plan.entity}
    publication(postgres, "lacking")
    with pytest.raises(RuntimeError, match=r"entity-not-found .* the publication lacking of table"):
        feed(**named)
    publication(postgres, "lacking", f"FOR TABLE public.{source.plan.entity}")
    assert feed(**named).step() == []


@pytest.mark.parametrize("most", [700, 1], ids=["quiet", "busy"])
def test_a_table_that_leaves_its_publication_is_told_before_its_changes_are_let_go(
    postgres: PostgresServer,
    admin: psycopg.Connection[Any],
    feed: Any,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    monkeypatch.setattr(cdc_source, "_QUIET", 0.0)
    source = feed()
    table, slot = source.plan.entity, source.stream._open().find_slot
    fill(admin, source, 1, 3)
    source.to_the_end()
    before = slot().confirmed
    admin.execute(f"ALTER PUBLICATION {source.plan.publication} DROP TABLE public.{table}")
    fill(admin, source, 4, 4)
    with pytest.raises(RuntimeError, match=r"entity-not-found .* or does not have the table"):
        source.step(most)
    assert slot().confirmed == before
    source.restart()
    with pytest.raises(RuntimeError, match=r"entity-not-found .* or does not have the table"):
        source.step()


def test_a_server_whose_log_ends_early_is_told_in_mid_run(
    admin: psycopg.Connection[Any], feed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a standby that was promoted before it had all."""
    source = feed()
    fill(admin, source, 1, 3)
    source.to_the_end()
    monkeypatch.setattr(ChangeServer, "flushed", lambda _: 16)
    with pytest.raises(RuntimeError, match=r"entity-not-found .* the server's log ends before"):
        source.step()


def test_another_server_behind_the_address_is_looked_at_as_at_the_start(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    source = feed()
    fill(admin, source, 1, 1500)
    source.step()
    with postgres.connect() as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'")
        assert source.step() == []
        other.execute("SELECT pg_drop_replication_slot(%s)", (source.plan.slot,))
    with pytest.raises(RuntimeError, match=r"entity-not-found .* slot .* is not there any more"):
        source.step()


def test_an_absence_hides_neither_another_reader_nor_an_advance_of_ones_own(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = feed()
    fill(admin, source, 1, 3)
    source.until(lambda: source.table)
    fill(admin, source, 4, 4)
    source.until(lambda: len(source.table) == 4)
    whole = ChangeServer.advance

    def cut(server: ChangeServer, lsn: int) -> None:
        whole(server, lsn)
        monkeypatch.undo()
        raise StoreError("store-unreachable", "cut")

    monkeypatch.setattr(ChangeServer, "advance", cut)
    assert source.step() == []
    assert source.to_the_end() == []
    with postgres.connect() as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'")
        fill(admin, source, 5, 5)
        advance = "SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())"
        other.execute(advance, (source.plan.slot,))
    with pytest.raises(RuntimeError, match=r"entity-not-found .* another reader has taken changes"):
        source.to_the_end()


def take(postgres: PostgresServer, source: Feed) -> None:
    with postgres.connect() as other:
        advance = "SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())"
        other.execute(advance, (source.plan.slot,))


TAKEN = r"entity-not-found .* another reader has taken changes from slot"


def test_what_another_reader_took_while_the_query_stood_still_is_told_at_its_start(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    source = feed()
    fill(admin, source, 1, 3)
    source.to_the_end()
    source.stream.stop()
    fill(admin, source, 4, 4)
    take(postgres, source)
    for _ in range(2):
        source.restart()
        with pytest.raises(RuntimeError, match=TAKEN):
            source.step()


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("table", ["its own", "another"])
def test_an_end_beside_an_advance_is_no_other_reader(
    admin: psycopg.Connection[Any], feed: Any, monkeypatch: pytest.MonkeyPatch, done: bool, table: str
) -> None:
    """What is let go is noted first: whether the slot has moved then or not, the next start goes on."""
    monkeypatch.setattr(cdc_source, "_QUIET", 0.0)
    source, other = feed(), feed()
    fill(admin, source, 1, 3)
    source.to_the_end()
    whole = ChangeServer.advance

    def cut(server: ChangeServer, lsn: int) -> None:
        if done:
            whole(server, lsn)
        raise KeyboardInterrupt

    monkeypatch.setattr(ChangeServer, "advance", cut)
    fill(admin, source if table == "its own" else other, 4, 4)
    with pytest.raises(KeyboardInterrupt):
        source.to_the_end()
    monkeypatch.setattr(ChangeServer, "advance", whole)
    for number in (5, 6):
        source.restart()
        fill(admin, source, number, number)
        source.to_the_end()
        assert source.table == rows_of(admin, source)


@pytest.mark.parametrize("note", [None, "", "slot", "server", "elsewhere"])
def test_a_slot_of_which_nothing_is_noted_is_taken_as_it_is_once(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any, note: str | None
) -> None:
    """As that of a query older than notes, and that which pg_upgrade has put on another server."""
    source = feed(durable=note != "elsewhere")
    fill(admin, source, 1, 3)
    source.to_the_end()
    path = Path(source.plan.directory) / NOTE
    assert path.exists() == (note != "elsewhere")
    if note is None:
        path.unlink()
    elif note == "":
        path.write_text("")
    elif path.exists():
        path.write_text(json.dumps(json.loads(path.read_text()) | {note: "other"}))
    take(postgres, source)
    source.restart()
    assert source.step() == []
    fill(admin, source, 4, 4)
    take(postgres, source)
    source.restart()
    if note == "elsewhere":
        assert source.step() == []
        return
    with pytest.raises(RuntimeError, match=TAKEN):
        source.step()


def test_a_note_never_goes_back(tmp_path: Path) -> None:
    """An advance that is still under way may come after a smaller one."""
    note = SlotNote.read(tmp_path, "s", "1")
    assert note.lsn is None
    note.write(100)
    note.write(60)
    assert SlotNote.read(tmp_path, "s", "1").lsn == note.lsn == 100


def test_a_batch_of_which_changes_were_taken_is_not_read_again(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    source = feed(first_rows=False, durable=False)
    fill(admin, source, 1, 3)
    source.until(lambda: source.records)
    for path in Path(source.plan.directory).glob("*.arrow"):
        path.unlink()
    assert source.read(*source.ranges[-1]) == source.records
    take(postgres, source)
    with pytest.raises(RuntimeError, match=TAKEN):
        source.read(*source.ranges[-1])


def test_a_key_whose_order_is_not_postgresqls_own_is_refused_with_first_rows(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    """Comparisons mean those of pg_catalog; for citext that is text's order, in which rows were passed over."""
    with postgres.connect() as other:
        other.execute("CREATE EXTENSION IF NOT EXISTS citext")
    admin.execute("CREATE TABLE public.loose (part int, name citext, PRIMARY KEY (part, name))")
    form = Form("shop", (("part", "INTEGER"), ("name", "VARCHAR")), ("part", "name"))
    try:
        with pytest.raises(RuntimeError, match=r"store-rejected .* key column name is (public\.)?citext"):
            feed(form, table="loose")
        source = feed(form, table="loose", first_rows=False)
        admin.execute("INSERT INTO public.loose VALUES (1, 'b'), (1, 'A')")
        assert len(source.to_the_end()) == 2
    finally:
        admin.execute("DROP TABLE public.loose")


def test_columns_that_an_index_only_includes_are_no_key(admin: psycopg.Connection[Any], feed: Any) -> None:
    source = feed()
    table = source.plan.entity
    key = f"DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (id) INCLUDE (name)"
    admin.execute(f"ALTER TABLE public.{table} {key}")
    source.restart()
    fill(admin, source, 1, 3)
    source.to_the_end()
    admin.execute(f"DELETE FROM public.{table} WHERE id = 2")
    source.to_the_end()
    assert source.table == rows_of(admin, source)

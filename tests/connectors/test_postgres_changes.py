"""A table's changes as Spark's planner asks for them, from a real PostgreSQL; Spark itself is not needed."""

from __future__ import annotations

import json
import random
import threading
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from change_feed import COLUMNS, KEYED, PLAIN, fill, rows_of
from postgres_server import PostgresServer

from leatstream.connectors.postgres import cdc_source as postgres_cdc_source
from leatstream.connectors.postgres.cdc import forget
from leatstream.connectors.postgres.cdc_records import Form


@pytest.mark.parametrize("form", [KEYED, PLAIN], ids=["changelog", "stream"])
def test_rows_and_changes_without_loss_or_double_beside_a_writer(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any, form: Form
) -> None:
    """Restarts in the middle of the first rows and of the changes; keys change; large values stay."""
    source = feed(form)
    table = source.plan.entity
    fill(admin, source, 1, 2000)
    stop, begun = threading.Event(), threading.Event()

    def write() -> None:
        chance, number = random.Random(7), 2001
        with postgres.connect() as connection:
            while not stop.is_set():
                with connection.transaction():
                    connection.execute(
                        f"INSERT INTO public.{table} VALUES (%s, %s, repeat('y', 3000))",
                        (number, f"n{number}"),
                    )
                    old = chance.randint(1, number)
                    connection.execute(f"UPDATE public.{table} SET name = name || 'u' WHERE id = %s", (old,))
                    if number % 5 == 0:
                        gone = chance.randint(1, number)
                        connection.execute(f"DELETE FROM public.{table} WHERE id = %s", (gone,))
                    if number % 7 == 0:
                        moved = chance.randint(1, number)
                        connection.execute(f"UPDATE public.{table} SET id = -id WHERE id = %s", (moved,))
                number += 1
                begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(30)
        for _ in range(3):
            assert source.step()
            source.restart()
        source.until(lambda: "__state" not in source.offset)
        source.restart()
        source.until(lambda: len(source.records) > 4000)
    finally:
        stop.set()
        writer.join()
    source.to_the_end()
    wanted = rows_of(admin, source)
    assert len(wanted) > 2000
    if form is KEYED:
        assert source.table == wanted
        return
    # Every row came to be exactly once, and went exactly once or is there.
    there: dict[int, Any] = {}
    for event in source.events:
        before, after = event["before"], event["after"]
        if event["op"] in ("c", "r"):
            assert after["id"] not in there
        elif event["op"] == "d" or before is not None:
            del there[before["id"]]
        if after is not None:
            there[after["id"]] = after
    assert {key: row["name"] for key, row in there.items()} == {k: r["name"] for k, r in wanted.items()}
    assert {event["op"] for event in source.events} == {"r", "c", "u", "d"}


def test_a_batch_read_again_is_the_same(admin: psycopg.Connection[Any], feed: Any) -> None:
    source = feed()
    fill(admin, source, 1, 1000)
    source.step()
    first = source.ranges[-1]
    assert source.read(*first) == source.records
    source.restart()
    assert source.read(*first) == source.records
    source.until(lambda: "complete" not in source.offset["__state"], 5)
    fill(admin, source, 1001, 1500)
    admin.execute(f"UPDATE public.{source.plan.entity} SET name = 'x' WHERE id > 1400")
    source.until(lambda: len(source.records) >= 1600)
    last = source.ranges[-1]
    known = source.read(*last)
    assert known
    source.restart()
    assert source.read(*last) == known
    # Without its file it is read from the log once more, after any number of restarts.
    for path in Path(source.plan.directory).glob("*.arrow"):
        path.unlink()
    assert source.read(*last) == known
    assert source.to_the_end() == []


def test_a_commit_begins_no_batch_where_nothing_of_ours_changes(
    admin: psycopg.Connection[Any], feed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink in the same database writes to the log too, for ever."""
    monkeypatch.setattr(postgres_cdc_source, "_QUIET", 0.0)
    source = feed(first_rows=False)
    other = feed(first_rows=False)
    slot = source.stream._open().find_slot
    begin = slot().confirmed
    start = source.offset
    for i in range(5):
        fill(admin, other, i * 10 + 1, i * 10 + 10)
        assert source.step() == []
    assert source.offset == start
    # And the server need not keep its log for us.
    assert slot().confirmed > begin
    fill(admin, source, 1, 1)
    source.until(lambda: source.records)
    assert source.table == rows_of(admin, source)


def test_the_envelope(admin: psycopg.Connection[Any], feed: Any) -> None:
    source = feed(PLAIN)
    table = source.plan.entity
    fill(admin, source, 1, 1)
    source.until(lambda: source.records)
    for change in ("SET name = 'new'", "SET id = 2"):
        admin.execute(f"UPDATE public.{table} {change}")
    admin.execute(f"ALTER TABLE public.{table} REPLICA IDENTITY FULL")
    admin.execute(f"UPDATE public.{table} SET name = NULL")
    admin.execute(f"DELETE FROM public.{table}")
    admin.execute(f"TRUNCATE public.{table}")
    source.until(lambda: len(source.records) == 6)
    big = "x" * 3000

    def row(number: int, name: str | None, text: str | None = big) -> dict[str, Any]:
        return {"id": number, "name": name, "big": text}

    told = [(event["op"], event["before"], event["after"]) for event in source.events]
    # The large value was sent with none of the updates: under FULL the old row has it, else the table.
    assert told == [
        ("r", None, row(1, "n1")),
        # It is looked up as it is now, and the row has gone.
        ("u", None, row(1, "new", None)),
        ("u", row(1, None, None), row(2, "new", None)),
        ("u", row(2, "new"), row(2, None)),
        ("d", row(2, None), None),
        ("t", None, None),
    ]
    origins = [event["source"] for event in source.events]
    assert all(o["db"] == "shop" and o["schema"] == "public" and o["table"] == table for o in origins)
    places = [o["lsn"] for o in origins]
    assert places[1:] == sorted(places[1:]) == [record["lsn"] for record in source.records[1:]]
    assert [json.loads(record["key"] or b"null") for record in source.records] == [
        {"id": 1},
        {"id": 1},
        {"id": 2},
        {"id": 2},
        {"id": 2},
        None,
    ]


def test_a_column_that_is_not_declared(admin: psycopg.Connection[Any], feed: Any) -> None:
    source = feed(first_rows=False)
    table = source.plan.entity
    fill(admin, source, 1, 1)
    admin.execute(f"ALTER TABLE public.{table} ADD later text")
    admin.execute(f"INSERT INTO public.{table} VALUES (2, 'b', NULL, 'l')")
    source.until(lambda: len(source.records) == 2)
    assert json.loads(source.records[1]["value"]) == {"id": 2, "name": "b", "big": None}
    wider = feed(Form("shop", (COLUMNS[0], COLUMNS[2], ("later", "VARCHAR")), ("id",), True), table=table)
    wider.until(lambda: wider.records)
    assert wider.table[2] == {"id": 2, "big": None, "later": "l"}
    admin.execute(f"ALTER TABLE public.{table} DROP name")
    admin.execute(f"INSERT INTO public.{table} (id) VALUES (3)")
    wider.to_the_end()
    assert wider.table[3] == {"id": 3, "big": None, "later": None}


def test_a_generated_column_is_refused(admin: psycopg.Connection[Any], feed: Any) -> None:
    """The log does not have it, so it would be there in the first rows and nowhere else."""
    table = f"t_{uuid.uuid4().hex[:8]}"
    admin.execute(
        f"CREATE TABLE public.{table} (id bigint PRIMARY KEY, name text GENERATED ALWAYS AS ('x') STORED, big text)"
    )
    with pytest.raises(RuntimeError, match=r"store-rejected .* has no column name, or it is generated"):
        feed(table=table)


def test_an_emptied_table(admin: psycopg.Connection[Any], feed: Any) -> None:
    strict = feed()
    lenient = feed(replace(KEYED, truncates=True), table=strict.plan.entity)
    fill(admin, strict, 1, 3)
    for source in (strict, lenient):
        source.until(lambda s=source: len(s.table) == 3)
    admin.execute(f"TRUNCATE public.{strict.plan.entity}")
    fill(admin, strict, 4, 4)
    with pytest.raises(RuntimeError, match=r"store-rejected .* was emptied by TRUNCATE"):
        strict.to_the_end()
    lenient.to_the_end()
    assert sorted(lenient.table) == [1, 2, 3, 4]


def test_a_key_of_two_columns_in_the_servers_own_order(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    """Restarts among the first rows compare keys, in a collation that is not Python's."""
    table = f"t_{uuid.uuid4().hex[:8]}"
    admin.execute(
        f'CREATE TABLE public.{table} (part text COLLATE "und-x-icu", id int, v int, PRIMARY KEY (part, id))'
    )
    admin.execute(
        f"INSERT INTO public.{table} SELECT p, i, 0 FROM unnest(ARRAY['a', 'B', 'c''x', 'D\"50%']) p,"
        " generate_series(1, 50) i"
    )
    form = Form("shop", (("part", "VARCHAR"), ("id", "INTEGER"), ("v", "INTEGER")), ("part", "id"))
    source = feed(form, table=table, most=60)
    for _ in range(4):
        source.step(60)
        admin.execute(f"UPDATE public.{table} SET v = v + 1 WHERE id % 2 = 0")
        source.restart()
    source.to_the_end()
    newest = {record["key"]: json.loads(record["value"])["v"] for record in source.records}
    wanted = {
        json.dumps({"part": p, "id": i}, separators=(",", ":")).encode(): 4 if i % 2 == 0 else 0
        for p in ("a", "B", "c'x", 'D"50%')
        for i in range(1, 51)
    }
    assert newest == wanted
    # Each row once at the start, then only those updates that its first version had not seen.
    assert len(source.records) == 200 + sum(4 - v for v in _first_versions(source.records))


def _first_versions(records: list[dict[str, Any]]) -> list[int]:
    first: dict[bytes, int] = {}
    for record in records:
        first.setdefault(record["key"], json.loads(record["value"])["v"])
    return [v for key, v in first.items() if json.loads(key)["id"] % 2 == 0]


def test_a_slot_that_is_gone_or_another_readers(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    source = feed()
    fill(admin, source, 1, 3)
    source.to_the_end()
    with postgres.connect() as other:
        other.execute("SELECT pg_drop_replication_slot(%s)", (source.plan.slot,))
        fill(admin, source, 4, 4)
        with pytest.raises(RuntimeError, match=r"entity-not-found .* slot .* is not there any more"):
            source.until(lambda: False)
        other.execute("SELECT pg_create_logical_replication_slot('other_plugin', 'test_decoding')")
        try:
            with pytest.raises(RuntimeError, match=r"store-rejected .* is not of the plug-in pgoutput"):
                feed(slot="other_plugin")
        finally:
            other.execute("SELECT pg_drop_replication_slot('other_plugin')")


def test_a_slot_in_use_is_waited_for_and_then_told_of(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that takes over may find its predecessor's connection: so that is waited for, as an absence is."""
    source = feed()
    fill(admin, source, 1, 3)
    source.to_the_end()
    url = f"postgresql://leat@127.0.0.1:{postgres.port}/shop?replication=database"
    with closing(psycopg.connect(url, autocommit=True)) as other:
        started = other.pgconn.exec_(
            f"START_REPLICATION SLOT {source.plan.slot} LOGICAL 0/0"
            f" (proto_version '1', publication_names '{source.plan.publication}')".encode()
        )
        assert started.status == psycopg.pq.ExecStatus.COPY_BOTH
        fill(admin, source, 4, 5)
        assert source.step() == []
        monkeypatch.setattr(postgres_cdc_source, "_AWAY", 0.0)
        pid = other.info.backend_pid
        told = rf"store-unreachable .* is in use by another reader \(process {pid} of the server\)"
        with pytest.raises(RuntimeError, match=told):
            source.step()
    monkeypatch.undo()
    source.until(lambda: sorted(source.table) == [1, 2, 3, 4, 5])


def test_changes_that_another_reader_took_are_missed_aloud(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    """Two that read one slot by turns never meet in it, and each has only a part of the changes."""
    source = feed()
    fill(admin, source, 1, 3)
    source.to_the_end()
    fill(admin, source, 4, 4)
    with postgres.connect() as other:
        other.execute(
            "SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", (source.plan.slot,)
        )
    fill(admin, source, 5, 5)
    with pytest.raises(RuntimeError, match=r"entity-not-found .* another reader has taken changes from slot"):
        source.to_the_end()
    assert sorted(source.table) == [1, 2, 3]


def test_a_named_slot_gives_what_it_has_kept_and_stays(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    name = f"kept_{uuid.uuid4().hex[:8]}"
    first = feed(first_rows=False, slot=name)
    fill(admin, first, 1, 2)
    first.stream.stop()
    second = feed(
        first_rows=False,
        slot=name,
        table=first.plan.entity,
        publication=first.plan.publication,
        own_publication=False,
    )
    second.until(lambda: len(second.table) == 2)
    forget(first.plan.own, "pg", first.plan.config)
    forget(second.plan.own, "pg", first.plan.config)
    with postgres.connect() as other:
        slots = other.execute("SELECT slot_name FROM pg_replication_slots").fetchall()
        assert (name,) in slots
        publications = other.execute("SELECT pubname FROM pg_publication").fetchall()
        assert (first.plan.own,) not in publications
        other.execute("SELECT pg_drop_replication_slot(%s)", (name,))


def test_an_older_generations_slot_goes(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any
) -> None:
    source = feed()
    newer = source.plan.own.replace("_g1_", "_g2_")
    again = feed(table=source.plan.entity, slot=newer, publication=newer, own=newer)
    with postgres.connect() as other:
        found = {row[0] for row in other.execute("SELECT slot_name FROM pg_replication_slots").fetchall()}
    assert newer in found
    assert source.plan.own not in found
    assert again.step() == []


def test_a_server_that_is_away_for_a_moment(
    postgres: PostgresServer, admin: psycopg.Connection[Any], feed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections are cut, also that of the first rows' transaction."""
    source = feed()
    fill(admin, source, 1, 1500)
    source.step()
    with postgres.connect() as other:
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'"
        other.execute(cut)
        other.execute(f"UPDATE public.{source.plan.entity} SET name = 'later' WHERE id IN (1, 1400)")
        source.until(lambda: len(source.records) > 1400)
        other.execute(cut)
        source.until(lambda: source.table.get(1, {}).get("name") == "later")
        assert source.table[1400]["name"] == "later"
        assert len(source.records) == 1501
        monkeypatch.setattr(postgres_cdc_source, "_AWAY", 0.0)
        other.execute(cut)
        with pytest.raises(RuntimeError, match="store-unreachable"):
            source.step()

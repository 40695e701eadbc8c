"""Servers that write to one catalog at the same time, and readers that follow its feed meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from leatstream.model.changes import BEGINNING, Change
from leatstream.model.objects import Database, Meta
from leatstream.storage.change_log import NotedChanges
from leatstream.storage.unit_of_work import SqlUnits

EACH = 12


def _database(name: str) -> Database:
    now = datetime.now(UTC)
    meta = Meta(id=name, generation=1, created_at=now, updated_at=now, created_by="ann", owner="sysadmin")
    return Database(meta=meta, name=name)


def follow_concurrent_writers(
    servers: Sequence[SqlUnits], monkeypatch: pytest.MonkeyPatch
) -> list[list[Change]]:
    """What a reader at each server got, batch by batch, while two threads of each server wrote.

    Each change gets its id some time before its commit, so that commits could overtake each other.
    """
    write, chance = NotedChanges.write, random.Random(7)

    def slowly(noted: NotedChanges, connection: Any) -> None:
        write(noted, connection)
        time.sleep(0.04 if chance.random() < 0.3 else 0.0)

    monkeypatch.setattr(NotedChanges, "write", slowly)
    over = threading.Event()
    got: list[list[Change]] = [[] for _ in servers]
    faults: list[BaseException] = []

    def guarded(work: Any, *given: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*given)
            except BaseException as error:
                faults.append(error)

        return threading.Thread(target=run, daemon=True)

    def write_some(units: SqlUnits, name: str) -> None:
        for number in range(EACH):
            with units() as unit:
                unit.databases.add(_database(f"{name}_{number}"))
                if number % 4 != 3:  # the others are given up
                    unit.commit()

    def read(units: SqlUnits, found: list[Change]) -> None:
        position = BEGINNING
        while True:
            last = over.is_set()
            with units(write=False) as unit:
                part = unit.changes.after(position, 3)
            found += part
            position = part[-1].id if part else position
            if last and not part:
                return

    readers = [guarded(read, units, found) for units, found in zip(servers, got, strict=True)]
    writers = [guarded(write_some, units, f"w{at}{n}") for at, units in enumerate(servers) for n in "ab"]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join(30)
    over.set()
    for thread in readers:
        thread.join(30)
    assert faults == []
    return got


def assert_nothing_is_missed(servers: Sequence[SqlUnits], got: list[list[Change]]) -> None:
    """Each reader got what the feed holds, in its order, once."""
    with servers[0](write=False) as unit:
        whole = [one.id for one in unit.changes.after(BEGINNING, 10_000)]
        names = {one.name for one in unit.databases.page()}
    assert len(whole) == len(names) == 2 * len(servers) * EACH * 3 // 4
    for found in got:
        assert [one.id for one in found] == whole
        assert {one.key for one in found} == names

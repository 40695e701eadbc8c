"""Which records a person sees, and how fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.services.relations.record_streams import RecordsWanted, chosen


def record(offset: int, value: bytes | None = b"v", key: bytes | None = None) -> Record:
    return Record(key=key, value=value, partition=0, offset=offset, timestamp=offset * 1000)


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def offsets(records: list[Record | None], wanted: RecordsWanted) -> list[Any]:
    clock = Clock()
    return [one.offset for one in chosen(iter(records), wanted, clock.now, clock.sleep) if one is not None]


def test_a_text_is_looked_for_in_key_and_value() -> None:
    records = [
        record(0, b"Anna"),
        record(1, None, b"hanna"),
        record(2, None),
        record(3, b"\xff ANNA"),
        record(4),
    ]
    assert offsets([*records], RecordsWanted(text="anNa")) == [0, 1, 3]
    assert offsets([*records], RecordsWanted(text="anNa", limit=2)) == [0, 1]


def test_a_rate_delays_records_and_loses_none() -> None:
    clock, came = Clock(), []
    for one in chosen((record(n) for n in range(5)), RecordsWanted(rate=2), clock.now, clock.sleep):
        if one is not None:
            came.append((one.offset, int(clock.time + 0.01)))
    assert came == [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)]


def test_a_silence_saves_nothing_up() -> None:
    clock, came = Clock(), []

    def late() -> Iterator[Record]:
        yield record(0)
        clock.sleep(60.0)
        yield from (record(n) for n in range(1, 6))

    for one in chosen(late(), RecordsWanted(rate=2), clock.now, clock.sleep):
        if one is not None:
            came.append((one.offset, int(clock.time + 0.01)))
    assert came == [(0, 0), (1, 60), (2, 60), (3, 61), (4, 61), (5, 62)]


def test_a_reader_is_looked_after_while_nothing_fits() -> None:
    clock = Clock()

    def slow() -> Iterator[Record]:
        for number in range(100):
            clock.sleep(0.05)
            yield record(number)

    found = list(chosen(slow(), RecordsWanted(text="none"), clock.now, clock.sleep))
    assert set(found) == {None}
    assert 30 < len(found) <= 50, "every tenth of a second"


def test_a_place_holds_what_comes_behind_it() -> None:
    there = [record(n) for n in range(4)]
    assert [one.offset for one in there if RecordsFrom(since=2000).holds(one)] == [2, 3]
    assert [one.offset for one in there if RecordsFrom(partition="0", offset=3).holds(one)] == [3]
    assert not any(RecordsFrom(partition="1").holds(one) for one in there)
    timeless = Record(key=None, value=None, partition="s", offset="x", timestamp=None)
    assert (RecordsFrom().holds(timeless), RecordsFrom(since=0).holds(timeless)) == (True, False)
    assert [RecordsFrom().reads_existing, RecordsFrom(since=0).reads_existing] == [False, True]
    continued = RecordsFrom(after={"0": 1}, since=9_000)
    assert [one.offset for one in there if continued.holds(one)] == [2, 3]
    assert (continued.reads_existing, continued.leaves_out) == (True, True)
    assert not any(RecordsFrom(after={"1": 1}, since=9_000).holds(one) for one in there)

"""The newest and the oldest records of several partitions, some of which have gaps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.connectors.kafka import sampling
from leatstream.connectors.sampling import Sampled

Place = tuple[int, int]  # partition, offset


class Consumer:
    """Gives what its partitions hold, in turn; an end is a note of its own, as of the real one."""

    def __init__(self, held: dict[int, dict[int, int]], ends: dict[int, int]) -> None:
        self.held, self.ends, self.paused = held, ends, set[int]()
        self.at: dict[int, int] = {}
        self.assigned: list[dict[int, int]] = []

    def get_watermark_offsets(self, place: Any, **_: Any) -> Place:
        return min(self.held[place.partition], default=0), self.ends[place.partition]

    def assign(self, places: Any) -> None:
        self.at = {one.partition: one.offset for one in places}
        self.assigned.append(dict(self.at))
        self.paused.clear()

    def pause(self, places: Any) -> None:
        self.paused |= {one.partition for one in places}

    def poll(self, _: float) -> Any:
        for partition in sorted(self.at, key=lambda one: (self.at[one], one)):
            if partition in self.paused:
                continue
            offset = next((o for o in sorted(self.held[partition]) if o >= self.at[partition]), None)
            if offset is None:
                self.paused.add(partition)
                return SimpleNamespace(
                    partition=lambda p=partition: p,
                    error=lambda: SimpleNamespace(name=lambda: "_PARTITION_EOF"),
                )
            self.at[partition] = offset + 1
            return _message(partition, offset, self.held[partition][offset])
        return None

    def close(self) -> None:
        pass


def _message(partition: int, offset: int, time: int) -> Any:
    given = {"partition": partition, "offset": offset, "error": None, "key": None, "value": b"v"}
    given |= {"timestamp": (1, time), "headers": None}
    return SimpleNamespace(**{name: (lambda one=value: one) for name, value in given.items()})


def sampled(
    monkeypatch: pytest.MonkeyPatch, consumer: Consumer, *, newest: bool, limit: int, timeout: float = 5.0
) -> Sampled:
    monkeypatch.setattr(sampling, "open_reader", lambda _: consumer)
    topic = SimpleNamespace(partitions=dict.fromkeys(consumer.held))
    admin: Any = SimpleNamespace(store="k", topic=lambda *_: topic)
    return sampling.sample(admin, "t", newest=newest, limit=limit, timeout=timeout)


def places(found: Sampled) -> list[Place]:
    return [(int(one.partition), int(one.offset)) for one in found.records]


@pytest.mark.parametrize(
    ("newest", "limit", "wanted"),
    [
        (True, 3, [(1, 1), (0, 2), (1, 2)]),
        (False, 3, [(1, 0), (0, 0), (0, 1)]),
        (True, 99, [(1, 0), (0, 0), (0, 1), (1, 1), (0, 2), (1, 2)]),
    ],
)
def test_partitions_are_merged_by_time(
    monkeypatch: pytest.MonkeyPatch, newest: bool, limit: int, wanted: list[Place]
) -> None:
    held = {0: {0: 10, 1: 20, 2: 40}, 1: {0: 5, 1: 30, 2: 50}, 2: {}}
    found = sampled(monkeypatch, Consumer(held, {0: 3, 1: 3, 2: 0}), newest=newest, limit=limit)
    assert (places(found), found.whole) == (wanted, True)


def test_gaps_before_the_end_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers of transactions and compacted records leave offsets without a record."""
    consumer = Consumer({0: {n: n for n in range(50)}}, {0: 100})
    found = sampled(monkeypatch, consumer, newest=True, limit=2)
    assert places(found) == [(0, 48), (0, 49)]
    assert [one[0] for one in consumer.assigned] == [98, 84, 0]


def test_what_came_after_the_beginning_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer({0: {n: n for n in range(9)}}, {0: 5})
    assert places(sampled(monkeypatch, consumer, newest=True, limit=2)) == [(0, 3), (0, 4)]


def test_a_sample_that_took_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sampled(monkeypatch, Consumer({0: {0: 1}}, {0: 1}), newest=True, limit=2, timeout=0.0)
    assert (found.records, found.whole) == ([], False)

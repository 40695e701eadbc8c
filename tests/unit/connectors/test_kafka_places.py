"""Where the reading of a topic begins, and which records are passed over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from own_clock import set_clock

from leatstream.connectors.entities import RecordsFrom
from leatstream.connectors.kafka import records as module


class Consumer:
    """One partition; as the real one it goes back to the beginning where it is sent behind the end.

    ``late``: offsets that are not there yet when they are asked for first.
    """

    def __init__(self, end: int, comes: int, late: tuple[int, ...] = ()) -> None:
        self.end, self.last, self.at, self.late = end, end + comes, 0, {*late}

    def get_watermark_offsets(self, place: Any, **_: Any) -> tuple[int, int]:
        return 0, self.end

    def assign(self, places: Any) -> None:
        (place,) = places
        self.at = place.offset if 0 <= place.offset <= self.end else 0

    def assignment(self) -> list[Any]:
        return [SimpleNamespace(partition=0)]

    def poll(self, _: float) -> Any:
        if self.at == self.last or self.at in self.late:
            self.late.discard(self.at)
            return None
        self.at += 1
        given = {"partition": 0, "offset": self.at - 1, "error": None, "key": None, "value": b"v"}
        given |= {"timestamp": (1, 0), "headers": None}
        return SimpleNamespace(**{name: (lambda one=value: one) for name, value in given.items()})

    def close(self) -> None:
        pass


ADMIN: Any = SimpleNamespace(store="k", topic=lambda *_: SimpleNamespace(partitions={0: None}))


@pytest.mark.parametrize(("offset", "wanted"), [(1, [1, 2, 3, 4]), (3, [3, 4]), (4, [4]), (9, [])])
def test_no_record_before_the_wanted_offset(
    monkeypatch: pytest.MonkeyPatch, offset: int, wanted: list[int]
) -> None:
    """Three records, and two that come while it reads."""
    monkeypatch.setattr(module, "open_reader", lambda _: Consumer(3, 2))
    found = module.records(ADMIN, "t", RecordsFrom(partition="0", offset=offset), None, 0.0)
    assert [one.offset for one in found if one is not None] == wanted


@pytest.mark.parametrize(
    ("start", "wanted"),
    [
        (RecordsFrom(after={"0": 0}), [1, 2, 3, 4]),
        (RecordsFrom(after={"0": 2}, since=5), [3, 4]),
        (RecordsFrom(after={"0": 2}, beginning=True), [3, 4]),
        (RecordsFrom(after={"0": 9}), [3, 4]),
        (RecordsFrom(after={"1": 0}), [3, 4]),
        (RecordsFrom(after={"1": 0}, beginning=True), [0, 1, 2, 3, 4]),
    ],
)
def test_reading_continues_behind_an_offset(
    monkeypatch: pytest.MonkeyPatch, start: RecordsFrom, wanted: list[int]
) -> None:
    """A partition that is not named begins as the rest says; one that is shorter now goes on at its end."""
    consumer = Consumer(3, 2)
    consumer.offsets_for_times = lambda asked, timeout: asked  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "open_reader", lambda _: consumer)
    found = module.records(ADMIN, "t", start, None, 0.0)
    assert [one.offset for one in found if one is not None] == wanted


def test_the_time_that_a_reader_takes_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open_reader", lambda _: Consumer(3, 0, late=(1,)))
    now, came = [0.0], []
    set_clock(monkeypatch, module, monotonic=lambda: now[0])
    for one in module.records(ADMIN, "t", RecordsFrom(beginning=True), 3, 5.0):
        if one is not None:
            came.append(one.offset)
            now[0] += 10.0
    assert came == [0, 1, 2]

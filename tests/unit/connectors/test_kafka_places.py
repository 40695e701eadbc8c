"""Where the reading of a topic begins, and which records are passed over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.connectors.entities import RecordsFrom
from leatstream.connectors.kafka import records as module


class Consumer:
    """One partition; as the real one it goes back to the beginning where it is sent behind the end."""

    def __init__(self, end: int, comes: int) -> None:
        self.end, self.last, self.at = end, end + comes, 0

    def get_watermark_offsets(self, place: Any, **_: Any) -> tuple[int, int]:
        return 0, self.end

    def assign(self, places: Any) -> None:
        (place,) = places
        self.at = place.offset if place.offset <= self.end else 0

    def assignment(self) -> list[Any]:
        return [SimpleNamespace(partition=0)]

    def poll(self, _: float) -> Any:
        if self.at == self.last:
            return None
        self.at += 1
        given = {"partition": 0, "offset": self.at - 1, "error": None, "key": None, "value": b"v"}
        given |= {"timestamp": (1, 0), "headers": None}
        return SimpleNamespace(**{name: (lambda one=value: one) for name, value in given.items()})

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("offset", "wanted"), [(1, [1, 2, 3, 4]), (3, [3, 4]), (4, [4]), (9, [])])
def test_no_record_before_the_wanted_offset(
    monkeypatch: pytest.MonkeyPatch, offset: int, wanted: list[int]
) -> None:
    """Three records, and two that come while it reads."""
    monkeypatch.setattr(module, "open_reader", lambda _: Consumer(3, 2))
    topic = SimpleNamespace(partitions={0: None})
    admin: Any = SimpleNamespace(store="k", topic=lambda *_: topic)
    start = RecordsFrom(partition="0", offset=offset)
    found = module.records(admin, "t", start, None, 0.0)
    assert [one.offset for one in found if one is not None] == wanted

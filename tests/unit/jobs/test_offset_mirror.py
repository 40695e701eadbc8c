from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from own_clock import set_clock

from leatstream.errors import StoreError
from leatstream_jobs.attempt import offset_mirror
from leatstream_jobs.attempt.offset_mirror import OffsetMirror


class Tools:
    """A store's side: what it was told; refuses while ``broken``."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, dict[str, int]]] = []
        self.forgotten: list[str] = []
        self.broken = False

    def mirror_offsets(self, query: str, entity: str, offsets: dict[str, int], timeout: float) -> None:
        if self.broken:
            raise StoreError("store-auth-failed", "the user may not do that")
        self.told.append((query, entity, offsets))

    def forget_offsets(self, query: str, timeout: float) -> None:
        self.forgotten.append(query)


class Ends:
    """Progress that says what the test says."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[str, Any]] = {}

    def ends(self) -> dict[str, dict[str, Any]]:
        return self.offsets


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(now=100.0)
    set_clock(monkeypatch, offset_mirror, monotonic=lambda: found.now)
    return found


def scene() -> tuple[Tools, Ends, Any]:
    tools, ends = Tools(), Ends()
    scan = SimpleNamespace(source=SimpleNamespace(relation="d.s.r", entity="t"), connector=tools)
    return tools, ends, [scan]


def test_new_offsets_are_told_now_and_then_and_at_the_end(clock: SimpleNamespace) -> None:
    tools, ends, scans = scene()
    mirror = OffsetMirror("q")
    mirror.look(scans, ends)  # type: ignore[arg-type]
    assert tools.told == []
    ends.offsets = {"d.s.r": {"0": 5}}
    mirror.look(scans, ends)  # type: ignore[arg-type]
    assert tools.told == [], "too early"
    clock.now += offset_mirror.EVERY
    mirror.look(scans, ends)  # type: ignore[arg-type]
    clock.now += offset_mirror.EVERY
    mirror.look(scans, ends)  # type: ignore[arg-type]
    assert tools.told == [("q", "t", {"0": 5})]
    ends.offsets = {"d.s.r": {"0": 7}}
    mirror.look(scans, ends, last=True)  # type: ignore[arg-type]
    assert tools.told[1:] == [("q", "t", {"0": 7})]


def test_a_refusal_is_said_once_and_tried_again(
    clock: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    tools, ends, scans = scene()
    ends.offsets, tools.broken = {"d.s.r": {"0": 1}}, True
    mirror = OffsetMirror("q")
    for _ in range(3):
        mirror.look(scans, ends)  # type: ignore[arg-type]
        clock.now += offset_mirror.EVERY
    assert len(caplog.messages) == 1
    assert "the user may not do that" in caplog.text
    tools.broken = False
    mirror.look(scans, ends)  # type: ignore[arg-type]
    assert tools.told == [("q", "t", {"0": 1})]


def test_positions_that_are_no_counts_stay_where_they_are(clock: SimpleNamespace) -> None:
    tools, ends, scans = scene()
    ends.offsets = {"d.s.r": {"shardId-0": "49590338271490256608559692538361571095921575989136588898"}}
    OffsetMirror("q").look(scans, ends)  # type: ignore[arg-type]
    assert tools.told == []


def test_who_takes_over_tells_under_its_new_name_and_leaves_no_other(clock: SimpleNamespace) -> None:
    tools, ends, scans = scene()
    ends.offsets = {"d.s.r": {"0": 5}}
    mirror = OffsetMirror("q__green")
    for name in (None, "q__green", "q", "q"):
        mirror.rename(name)
        mirror.look(scans, ends)  # type: ignore[arg-type]
    assert tools.told == [("q__green", "t", {"0": 5}), ("q", "t", {"0": 5})], "at once, and nothing twice"
    assert tools.forgotten == ["q__green"]


def test_who_has_handed_its_name_on_tells_no_more(clock: SimpleNamespace) -> None:
    tools, ends, scans = scene()
    ends.offsets = {"d.s.r": {"0": 5}}
    mirror = OffsetMirror("q")
    mirror.rename("q__blue")
    mirror.rename("q__green")  # it was called back before it had ended
    mirror.look(scans, ends, last=True)  # type: ignore[arg-type]
    assert (tools.told, tools.forgotten) == ([], [])

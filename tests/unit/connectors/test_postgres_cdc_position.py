"""Offsets of table changes that an earlier version has left in a checkpoint."""

from __future__ import annotations

import json

from leatstream.connectors.postgres.cdc_position import Mark, Position, read_offset


def test_a_mark_without_its_moment_is_read_and_bounds_nothing() -> None:
    state = {"complete": False, "after": ["4"], "marks": [["7:7:", "0/3C", ["4"]]]}
    old = {"t": {"lsn": "0/32", "rows": 4}, "__state": json.dumps(state)}
    position = read_offset(old, "t")
    assert position == Position(50, 4, complete=False, after=("4",), marks=(Mark("7:7:", 60, ("4",)),))
    assert position.since == 1


def test_the_moments_are_kept() -> None:
    position = Position(50).with_rows(2, ("4",), Mark("7:7:", 60, at=1000), complete=False)
    position = position.with_rows(1, ("5",), Mark("9:9:", 70, at=1200), complete=True)
    assert [mark.at for mark in position.marks] == [1000, 1200]
    assert read_offset(json.loads(json.dumps(position.as_offset("t"))), "t") == position
    assert position.since == 1201
    assert position.moved(71).since == 0

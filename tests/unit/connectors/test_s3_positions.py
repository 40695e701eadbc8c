"""Which files are read when: each once, in bounded batches, with a bounded memory."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leatstream.connectors.s3 import positions as s3_positions
from leatstream.connectors.s3.admin import Found, is_data
from leatstream.connectors.s3.positions import Bounds, advance, batch_of, beginning, pending

BOUNDS = Bounds(files=3, size=100, late_ms=1000)


def file(key: str, modified: int, size: int = 10) -> Found:
    return Found(key, size, f"etag-{key}", modified)


def drain(offset: Any, files: list[Found], bounds: Bounds = BOUNDS) -> tuple[Any, list[list[str]]]:
    batches = []
    while waiting := pending(offset, files):
        offset, _ = advance(offset, "e", waiting, bounds)
        batches.append([f.key for f in batch_of(json.loads(json.dumps(offset)))])
    return offset, batches


def test_the_oldest_come_first_within_bounds() -> None:
    files = [file("d", 4), file("a", 1), file("c", 3), file("b", 2), file("big", 5, 500), file("z", 6)]
    offset, batches = drain(beginning("e", 0), files)
    assert batches == [["a", "b", "c"], ["d"], ["big"], ["z"]]
    assert offset["e"] == {"files": "6"}


def test_a_late_file_is_read_within_the_time_told_and_not_after() -> None:
    offset, _ = drain(beginning("e", 0), [file("a", 5000)])
    _, batches = drain(offset, [file("a", 5000), file("late", 4000), file("too-late", 3999)])
    assert batches == [["late"]]


def test_memory_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(s3_positions, "MOST_SEEN", 5)
    files = [file(f"f{i}", 1000 + i) for i in range(50)]
    offset, batches = drain(beginning("e", 0), files, Bounds(7, 10_000, 10**9))
    assert sum(map(len, batches)) == 50
    assert sum(len(names) for _, names in offset["seen"]) <= 5
    assert pending(offset, files) == []


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 60)), max_size=8), min_size=1, max_size=6
    )
)
def test_every_file_in_time_is_read_exactly_once(rounds: list[list[tuple[int, int]]]) -> None:
    offset, there, read, base = beginning("e", 0), [], [], 0
    for number, arrivals in enumerate(rounds):
        base = max([base, *(f.modified for f in there)])
        # No more than a second older than the newest of before.
        there += [
            file(f"{number}-{i}", max(0, base - 1000) + ms, size) for i, (ms, size) in enumerate(arrivals)
        ]
        offset, batches = drain(offset, list(there))
        read += [key for batch in batches for key in batch]
    assert sorted(read) == sorted(f.key for f in there)


def test_hidden_and_empty_files_hold_no_records() -> None:
    shown = ["p/a.json", "p/day=1/a.json", "p/a_b/c.d"]
    hidden = ["p/", "p/_SUCCESS", "p/_delta_log/1.json", "p/.x/a.json", "p/day=1/.crc", "p/sub/"]
    assert [k for k in [*shown, *hidden] if is_data(file(k, 1), "p/")] == shown
    assert not is_data(file("p/a", 1, size=0), "p/")

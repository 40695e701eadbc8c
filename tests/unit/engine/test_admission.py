"""Whether one more driver may start."""

from __future__ import annotations

from pathlib import Path

import pytest

from leatstream.engine import memory
from leatstream.engine.admission import Admission

MB = 1 << 20


def admission(limit: int = 3, left: int = 4096, resident: int = 600) -> Admission:
    heaps = {"shared": 1536 * MB}
    return Admission(
        limit, lambda role: heaps.get(role, 512 * MB), lambda: left * MB, lambda _pid: resident * MB
    )


def test_the_limit_counts_drivers_for_queries() -> None:
    drivers = [("analyzer", 1), ("dedicated", 2), ("shared", 3)]
    assert admission().refusal(drivers, "dedicated") is None
    said = admission().refusal([*drivers, ("dedicated", 4)], "dedicated")
    assert said == "the limit of drivers is reached (LEATSTREAM_MAX_DRIVERS is 3)"


def test_a_driver_needs_its_heap_and_what_is_beside_it() -> None:
    assert admission(left=896).refusal([], "dedicated") is None
    said = admission(left=895).refusal([], "dedicated")
    assert said == "there is memory for no other driver: it needs 0.9 GiB, 0.9 GiB is left"
    assert admission(left=896).refusal([], "shared") is not None


def test_what_young_drivers_will_take_counts_already() -> None:
    # It holds 600 MB of the 896 it may come to hold.
    assert admission(left=896 + 296).refusal([("dedicated", 1)], "dedicated") is None
    assert admission(left=896 + 295).refusal([("dedicated", 1)], "dedicated") is not None
    assert admission(left=896, resident=900).refusal([("dedicated", 1)], "dedicated") is None


def test_what_a_spare_driver_holds_counts_as_free() -> None:
    assert admission(left=100, resident=796).refusal([], "dedicated") is not None
    assert admission(left=100, resident=796).refusal([], "dedicated", 7) is None


def test_processes_are_looked_at_once_for_many_questions() -> None:
    """Each look goes through all processes of the machine, and every query that waits asks in each pass."""
    looked: list[int] = []
    made = Admission(9, lambda _: 512 * MB, lambda: 0, lambda pid: looked.append(pid) or 0)
    for _ in range(50):
        assert made.refusal([("dedicated", 1), ("dedicated", 2)], "dedicated") is not None
    assert sorted(looked) == [1, 2]


@pytest.mark.parametrize(("text", "wanted"), [("512m", 512 * MB), ("2G", 2048 * MB), ("1024", 1024)])
def test_sizes_are_read_as_the_jvm_reads_them(text: str, wanted: int) -> None:
    assert memory.size(text) == wanted


def test_a_container_has_what_its_group_leaves(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 100\n")
    assert memory.available(tmp_path) == 400
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available(tmp_path) > 1000

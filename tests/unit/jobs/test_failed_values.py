"""Which record of a batch is to blame, by halves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from leatstream_jobs.attempt.failed_values import Part, halves, narrowed


def bad(*places: tuple[int, int]) -> tuple[list[int], object]:
    asked: list[int] = []

    def fails(parts: Sequence[Part]) -> bool:
        asked.append(sum(end - first for _, first, end in parts))
        return any(
            p == partition and first <= at < end for p, at in places for partition, first, end in parts
        )

    return asked, fails


@pytest.mark.parametrize("place", [(0, 10), (0, 99), (1, 0), (2, 7), (2, 106)])
def test_the_one_record_is_found(place: tuple[int, int]) -> None:
    asked, fails = bad(place)
    found = narrowed([(0, 10, 100), (1, 0, 1), (2, 7, 107)], fails)  # type: ignore[arg-type]
    assert found == (place[0], place[1], place[1] + 1)
    assert len(asked) <= 9


def test_of_several_the_first_is_found() -> None:
    _, fails = bad((0, 70), (1, 3))
    assert narrowed([(0, 0, 100), (1, 0, 100)], fails) == (0, 70, 71)  # type: ignore[arg-type]


def test_nothing_is_blamed_without_a_fault() -> None:
    assert narrowed([(0, 0, 100)], bad()[1]) is None  # type: ignore[arg-type]
    assert narrowed([], bad()[1]) is None  # type: ignore[arg-type]


def test_halves_lose_nothing() -> None:
    assert halves([(0, 5, 8), (1, 0, 4)], 3) == ([(0, 5, 8)], [(1, 0, 4)])
    assert halves([(0, 5, 8), (1, 0, 4)], 5) == ([(0, 5, 8), (1, 0, 2)], [(1, 2, 4)])

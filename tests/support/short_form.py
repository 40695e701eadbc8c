"""Which cases of a long list every run takes; ``make test-long`` runs them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import pytest


def later(names: Iterable[str], left_out: Collection[str]) -> list[Any]:
    """Parameters, of which some are for ``make test-long``.

    Args:
        names: of all cases.
        left_out: those whose mechanism the other cases show.
    """
    listed = list(names)
    unknown = set(left_out) - set(listed)
    assert not unknown, f"no such cases: {sorted(unknown)}"
    return [pytest.param(name, marks=[pytest.mark.long] if name in left_out else []) for name in listed]


def one_in(number: int, names: Iterable[str]) -> list[Any]:
    """Parameters, of which every run takes one in so many of each group, and the first at least.

    Args:
        number: how many cases stand for one.
        names: of all cases, those that are alike beside each other; a group is what comes before a colon.
    """
    listed, seen = list(names), Counter[str]()
    left_out = set()
    for name in listed:
        group = name.partition(": ")[0] if ": " in name else ""
        if seen[group] % number:
            left_out.add(name)
        seen[group] += 1
    return later(listed, left_out)

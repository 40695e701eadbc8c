"""The last lines of a job's log, of which only so many are kept."""

from __future__ import annotations

from collections.abc import Sequence


def unseen(before: Sequence[str], now: Sequence[str]) -> Sequence[str]:
    """The lines behind those that were there before; older ones may have been dropped meanwhile."""
    for start in range(len(before) + 1):
        kept = before[start:]
        if list(now[: len(kept)]) == list(kept):
            return now[len(kept) :]
    return now

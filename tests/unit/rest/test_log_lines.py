"""Which lines are new, where only the last ones are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence

import anyio
import pytest

from leatstream.errors import CatalogError
from leatstream.model.log_tails import unseen
from leatstream.rest import log_lines
from leatstream.rest.log_lines import follow_lines


@pytest.mark.parametrize(
    ("before", "now", "fresh"),
    [
        ([], ["a"], ["a"]),
        (["a"], ["a"], []),
        (["a", "b"], ["a", "b", "c"], ["c"]),
        (["a", "b", "c"], ["b", "c", "d"], ["d"]),
        (["a", "b"], ["x", "y"], ["x", "y"]),
        (["a", "a"], ["a", "a", "a"], ["a"]),
        (["a", "b"], [], []),
    ],
)
def test_what_is_behind_the_last_ones_is_new(before: list[str], now: list[str], fresh: list[str]) -> None:
    assert unseen(before, now) == fresh


def test_each_line_is_sent_once_until_the_query_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_PAUSE", 0.0)
    monkeypatch.setattr(log_lines, "_QUIET", 1)
    kept = [["none", "zero", "one"], ["zero", "one"], ["one", 'two "\n'], ['two "\n', "three"]]

    def look() -> Sequence[str]:
        if not kept:
            raise CatalogError("not-found", "gone")
        return kept.pop(0)

    async def all_of_it() -> list[bytes]:
        return [chunk async for chunk in follow_lines(look, 1)]

    chunks = anyio.run(all_of_it)
    told = [json.loads(c.split(b"data: ")[1])["line"] for c in chunks if c.startswith(b"event: log")]
    assert told == ["one", 'two "\n', "three"]
    assert chunks.count(b": idle\n\n") == 2
    assert chunks[-1] == b"event: end\ndata: {}\n\n"

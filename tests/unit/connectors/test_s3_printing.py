"""Which files are read to show records, where not all are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.connectors.s3 import records as module
from leatstream.connectors.s3.admin import Found


@pytest.mark.parametrize(
    ("start", "read"),
    [
        (RecordsFrom(beginning=True), ["old", "new", "late"]),
        (RecordsFrom(since=20), ["new", "late"]),
        (RecordsFrom(beginning=True, since=21), ["late"]),
        (RecordsFrom(), ["late"]),
    ],
)
def test_files_that_are_not_wanted_are_not_read(
    monkeypatch: pytest.MonkeyPatch, start: RecordsFrom, read: list[str]
) -> None:
    files = [Found("old", 1, "", 10), Found("new", 1, "", 20)]
    opened: list[str] = []

    def rows_of(_admin: Any, _entity: str, file: Found) -> Iterator[Record]:
        opened.append(file.key)
        yield Record(None, b"1", file.key, 0, file.modified)

    monkeypatch.setattr(module, "_read", rows_of)
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    admin: Any = SimpleNamespace(files=lambda *_: list(files), exists=lambda *_: True)
    found = module.records(admin, "e", start, len(read), None)
    for one in found:
        if one is None and len(files) == 2:
            files.append(Found("late", 1, "", 30))
    assert opened == read

"""Records as lines and events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from leatstream.connectors.entities import Record
from leatstream.errors import StoreError
from leatstream.rest import streams


def _record(value: bytes | None, key: bytes | None = None) -> Record:
    return Record(key, value, 0, 5, 1_700_000_000_000, (("h", b"x"), ("n", None), ("b", b"\xff")))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, {"value": None}),
        (b'{"a": 1}', {"value": {"a": 1}}),
        (b"5", {"value": 5}),
        (b"plain text", {"value": "plain text"}),
        (b"", {"value": ""}),
        (b"\xff\x00", {"value": "/wA=", "value_encoding": "base64"}),
        (b"NaN", {"value": "NaN"}),
        (b"[" * 100_000, {"value": "[" * 100_000}),
    ],
)
def test_values(raw: bytes | None, expected: dict[str, Any]) -> None:
    """JSON if it parses, else text, else base64; never an error."""
    assert json.loads("{" + streams.shown_bytes(raw, "value") + "}") == expected


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"12345678901234567.89", "12345678901234567.89"),
        (b'{ "a" : [1.10,\r\n\t 2E5 ] }', '{"a":[1.10,2E5]}'),
        (b'"a \\" b\\\\" ', '"a \\" b\\\\"'),
        ('"日 \\ud800 😀"'.encode(), '"\\u65e5 \\ud800 \\ud83d\\ude00"'),
        (b"1e999", '"1e999"'),
        (b'{"a": [-1e999]}', '"{\\"a\\": [-1e999]}"'),
        (b"1e-999", "1e-999"),
        (b"9" * 400, '"' + "9" * 400 + '"'),
    ],
)
def test_json_is_shown_as_it_was_written(raw: bytes, shown: str) -> None:
    """On one line and in ASCII; what no double holds is text, which every reader of JSON takes."""
    assert streams.shown_bytes(raw, "value") == f'"value":{shown}'


def test_a_line_is_one_line_of_ascii() -> None:
    """Line feeds, lone surrogates and any script survive."""
    line = streams.ndjson_line(_record(b'"\\ud800 \\n \xe6\x97\xa5"', b"k"))
    assert line.count(b"\n") == 1
    assert line.isascii()
    body = json.loads(line)
    assert body["value"] == "\ud800 \n 日"
    assert body["headers"] == [
        {"name": "h", "value": "x"},
        {"name": "n", "value": None},
        {"name": "b", "value": "/w==", "value_encoding": "base64"},
    ]
    assert (body["key"], body["partition"], body["offset"]) == ("k", 0, 5)


class _Source:
    """An iterator that says when it was closed."""

    def __init__(self, items: list[Any]) -> None:
        self.items = iter(items)
        self.closed = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        item = next(self.items)
        if isinstance(item, Exception):
            raise item
        return item

    def close(self) -> None:
        self.closed = True


def _body(source: _Source, media_type: str) -> str:
    async def read() -> bytes:
        answer = await streams.respond(source, media_type)
        parts = [chunk async for chunk in answer.body_iterator]
        return b"".join(part if isinstance(part, bytes) else str(part).encode() for part in parts)

    return asyncio.run(read()).decode()


def test_lines_until_the_end() -> None:
    """Idle marks are not shown; the reader is closed."""
    source = _Source([_record(b"1"), None, _record(b"2")])
    lines = [json.loads(line) for line in _body(source, streams.NDJSON).splitlines()]
    assert [line["value"] for line in lines] == [1, 2]
    assert source.closed


@pytest.mark.parametrize("media_type", [streams.NDJSON, streams.EVENTS])
def test_a_number_beyond_all_doubles_ends_no_stream(media_type: str) -> None:
    """What comes after it is shown, too."""
    body = _body(_Source([_record(b'{"a":1e999}'), _record(b"12345678901234567.89")]), media_type)
    assert '"value":"{\\"a\\":1e999}"' in body
    assert '"value":12345678901234567.89,' in body


def test_events() -> None:
    """Records carry their position as id; the last event says that it is the end."""
    text = _body(_Source([_record(b"1"), None]), streams.EVENTS)
    assert text.startswith("event: record\nid: 0:5\ndata: {")
    assert ": idle" in text
    assert text.endswith("event: end\ndata: {}\n\n")


@pytest.mark.parametrize("media_type", [streams.NDJSON, streams.EVENTS])
def test_an_error_on_the_way_is_told(media_type: str) -> None:
    """The status is out already, so the stream itself says what happened."""
    source = _Source([_record(b"1"), StoreError("store-unreachable", "gone")])
    assert (
        '"code":"store-unreachable"'
        in _body(source, media_type).splitlines()[-1 if media_type == streams.NDJSON else -2]
    )
    assert source.closed


def test_an_error_at_once_is_raised() -> None:
    """So that it gets its own status; the reader is closed all the same."""
    source = _Source([StoreError("store-unreachable", "gone")])
    with pytest.raises(StoreError):
        _body(source, streams.NDJSON)
    assert source.closed


def test_a_reader_that_is_left_is_closed() -> None:
    """The client has gone after the first record."""
    source = _Source([_record(b"1"), _record(b"2")])

    async def leave() -> None:
        answer = await streams.respond(source, streams.NDJSON)
        chunks: Any = answer.body_iterator
        await anext(chunks)
        await chunks.aclose()

    asyncio.run(leave())
    assert source.closed

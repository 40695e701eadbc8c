"""Streamed answers: records as NDJSON lines or server-sent events."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

import anyio
from anyio import to_thread
from fastapi.responses import StreamingResponse

from leatstream.connectors.entities import Record
from leatstream.errors import LeatstreamError
from leatstream.rest.loads import stream_threads
from leatstream.rest.problem import fault_json
from leatstream.services.environment.selections import Row
from leatstream.services.selects.interactive import End, Waits

NDJSON = "application/x-ndjson"
EVENTS = "text/event-stream"
Watched = Callable[[AsyncGenerator[bytes, None], str], AsyncIterator[bytes]]
_END = object()
_SPACES = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|[ \t\r\n]+')  # or a string, which keeps its own
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def _unwatched(chunks: AsyncGenerator[bytes, None], _: str) -> AsyncIterator[bytes]:
    return chunks


def shown_bytes(raw: bytes | None, name: str) -> str:
    """A key or value as members of a JSON object: JSON as it was written, else text, else base64.

    ``<name>_encoding`` marks the last.
    """
    text, encoding = read_bytes(raw)
    marked = f',"{name}_encoding":"{encoding}"' if encoding else ""
    return f'"{name}":{text or "null"}{marked}'


def read_bytes(raw: bytes | None) -> tuple[str | None, str | None]:
    """A key or value as JSON text, and its encoding where that is not the bytes' own.

    JSON is not re-encoded, which would change numbers such as 1.10; other text is a JSON string.
    """
    if raw is None:
        return None, None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return _dump(base64.b64encode(raw).decode()), "base64"
    try:
        json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_finite)
    except (ValueError, RecursionError):
        return _dump(text), None
    return _compact(text), None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    # Most readers of JSON refuse what no double holds, such as 1e999, and so the whole line.
    return read if math.isfinite(read := float(number)) else _refuse(number)


def _compact(text: str) -> str:
    """Valid JSON on one line and in ASCII, else as it was."""
    return _NOT_ASCII.sub(lambda found: _dump(found[0])[1:-1], _SPACES.sub(r"\1", text))


def record_json(record: Record) -> str:
    """A record as this service shows it."""
    rest = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "headers": [{"name": key, **read_header(value)} for key, value in record.headers],
    }
    members = shown_bytes(record.key, "key"), shown_bytes(record.value, "value"), _dump(rest)[1:]
    return "{" + ",".join(members)


def read_header(raw: bytes | None) -> dict[str, Any]:
    """A header's value as text, or base64."""
    try:
        return {"value": None if raw is None else raw.decode()}
    except UnicodeDecodeError:
        return {"value": base64.b64encode(raw or b"").decode(), "value_encoding": "base64"}


def _dump(value: Any) -> str:
    # JSON text may name lone surrogates, which UTF-8 cannot hold: everything beyond ASCII is escaped.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def ndjson_line(record: Record) -> bytes:
    """A record as one line."""
    return (record_json(record) + "\n").encode()


def event(record: Record) -> bytes:
    """A record as a server-sent event."""
    position, data = f"{record.partition}:{record.offset}", record_json(record)
    return f"event: record\nid: {position}\ndata: {data}\n\n".encode()


def failure(error: LeatstreamError, media_type: str) -> bytes:
    """An error on the way as the last line or event."""
    faults = [fault_json(fault) for fault in error.faults]
    problem = {"code": error.code, "detail": error.detail, "status": error.status, "errors": faults}
    body = _dump({"error": problem})
    return f"event: error\ndata: {body}\n\n".encode() if media_type == EVENTS else f"{body}\n".encode()


async def respond(
    records: Iterator[Record | None], media_type: str, watched: Watched = _unwatched
) -> StreamingResponse:
    """Stream records until they end or the client disconnects; then the iterator is closed.

    The first step is made before the answer starts, so that an error of the store has its own status.

    Args:
        records: of the entity.
        media_type: NDJSON or server-sent events.
        watched: ends the answer when the caller may no longer have it.
    """
    encode = event if media_type == EVENTS else ndjson_line
    try:
        first = await _step(records)
    except BaseException:
        await _close(records)
        raise
    headers = {"X-Accel-Buffering": "no"}
    chunks = watched(_chunks(records, first, encode, media_type), media_type)
    return StreamingResponse(chunks, media_type=media_type, headers=headers)


async def _chunks(
    records: Iterator[Record | None], first: Any, encode: Callable[[Record], bytes], media_type: str
) -> AsyncGenerator[bytes, None]:
    try:
        item = first
        while item is not _END:
            if item is not None:
                yield encode(item)
            else:
                # A comment: keeps proxies from closing an idle stream, and notices a lost client. NDJSON has
                # none, but the stream is watched while it is silent too.
                yield b": idle\n\n" if media_type == EVENTS else b""
            item = await _step(records)
        if media_type == EVENTS:
            yield b"event: end\ndata: {}\n\n"
    except LeatstreamError as error:
        yield failure(error, media_type)
    finally:
        await _close(records)


async def _step(records: Iterator[Any]) -> Any:
    return await to_thread.run_sync(next, records, _END, limiter=stream_threads())


async def _close(records: Iterator[Any]) -> None:
    close = getattr(records, "close", None)
    if close is not None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(close, limiter=stream_threads())


def respond_rows(
    rows: Iterator[Row | End | Waits],
    media_type: str,
    watched: Watched = _unwatched,
    *,
    waits: bool = False,
) -> StreamingResponse:
    """Stream the rows of a SELECT until it ends or the client disconnects; then the iterator is closed.

    Args:
        rows: of the SELECT.
        media_type: NDJSON or server-sent events.
        watched: ends the answer when the caller may no longer have it.
        waits: whether lines between the rows say what is waited for.
    """
    headers = {"X-Accel-Buffering": "no"}
    chunks = watched(_row_chunks(rows, media_type, waits), media_type)
    return StreamingResponse(chunks, media_type=media_type, headers=headers)


async def _row_chunks(
    rows: Iterator[Row | End | Waits], media_type: str, waits: bool
) -> AsyncGenerator[bytes, None]:
    events = media_type == EVENTS
    # An empty line or comment: finds out whether the client is connected, and lets it see the answer's head.
    idle = b": idle\n\n" if events else b"\n"
    try:
        yield idle
        while (item := await _step(rows)) is not _END:
            if not isinstance(item, Waits):
                yield _row_chunk(item, events)
            elif waits and not events:
                yield f"{_dump({'waits': item.text})}\n".encode()
            else:
                yield idle
    except LeatstreamError as error:
        yield failure(error, media_type)
    finally:
        await _close(rows)


def _row_chunk(item: Row | End, events: bool) -> bytes:
    if isinstance(item, End):
        body = _dump({"reason": item.reason, "rows": item.rows})
        return (f"event: end\ndata: {body}\n\n" if events else f'{{"end":{body}}}\n').encode()
    # The row's text is the driver's own JSON: re-encoding might change its numbers.
    body = f'{{"op":"{item.op}","row":{item.text}}}'
    return (f"event: row\ndata: {body}\n\n" if events else f"{body}\n").encode("utf-8", "replace")

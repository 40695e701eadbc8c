"""Files of JSON objects: one a line, or one behind the other without line ends, as Amazon Firehose writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from leatstream.formats.avro_files import UnreadableFile

LONGEST = 64 * 1024 * 1024  # bytes of a row
_PART = 1024 * 1024  # bytes of a line that are read at once
_BOM = b"\xef\xbb\xbf"
_JOINT = re.compile(rb"\}[ \t\r]*\{")
# A quote alone begins a text that does not end in what has been read.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}]', re.S)


def json_values(file: IO[bytes]) -> Iterator[bytes]:
    """The objects of a file; what stands between them is a value of its own, which is no object.

    Raises:
        UnreadableFile: a row is too long.
    """
    objects = _Objects()
    while line := file.readline(max(_PART, objects.waiting)):
        if not objects.waiting:
            line = line.removeprefix(_BOM)  # files that were joined have it in the middle, too
            # Mostly there is one brace only, which is quicker to find.
            if line.endswith(b"\n") and (line.find(b"{", 1) < 0 or not _JOINT.search(line)):
                if line := line.strip():
                    yield line
                continue
        yield from objects.feed(line)
        if line.endswith(b"\n"):
            yield from objects.end()
        if objects.waiting > LONGEST:
            raise UnreadableFile("it has a row of more than 64 MiB")
    yield from objects.end()


class _Objects:
    """Takes a line apart, which comes in parts, by the braces outside texts."""

    def __init__(self) -> None:
        self._data = b""
        self._at = self._depth = 0

    @property
    def waiting(self) -> int:
        """Bytes of the object that has not ended yet."""
        return len(self._data)

    def feed(self, part: bytes) -> Iterator[bytes]:
        """The objects that end in this part."""
        data, begin, depth, at = self._data + part, 0, self._depth, None
        for token in _TOKEN.finditer(data, self._at):
            what = token[0]
            if what == b'"':
                at = token.start()
                break
            if what == b"{":
                if not depth:
                    yield from _filled(data[begin : token.start()])
                    begin = token.start()
                depth += 1
            elif what == b"}" and depth:
                depth -= 1
                if not depth:
                    yield data[begin : token.end()]
                    begin = token.end()
        self._data, self._depth = data[begin:], depth
        self._at = (len(data) if at is None else at) - begin

    def end(self) -> Iterator[bytes]:
        """What is left at the end of the line."""
        rest, self._data, self._at, self._depth = self._data, b"", 0, 0
        yield from _filled(rest)


def _filled(text: bytes) -> Iterator[bytes]:
    if text := text.strip():
        yield text

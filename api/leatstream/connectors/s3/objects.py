"""A file in S3 as Python's file: read in large ranges, always of the version that was listed."""

from __future__ import annotations

import io
from typing import Any

from leatstream.connectors.s3.admin import Found


class StoreAway(Exception):
    """S3 did not answer; ``cause`` is botocore's error, which may be an OSError as a damaged file's is."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause


RANGE = 8 * 1024 * 1024
_TRIES = 3


class S3File(io.RawIOBase):
    """Random access by ranged requests; botocore's errors pass through."""

    def __init__(self, client: Any, bucket: str, file: Found) -> None:
        self._client = client
        self._bucket = bucket
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Position in bytes."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fetch as much as fits."""
        data = fetch(self._client, self._bucket, self._file, self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_file(client: Any, bucket: str, file: Found) -> io.BufferedReader | io.BytesIO:
    """The file; a small one is fetched whole."""
    if file.size <= RANGE:
        return io.BytesIO(fetch(client, bucket, file, 0, file.size))
    return io.BufferedReader(S3File(client, bucket, file), RANGE)


def fetch(client: Any, bucket: str, file: Found, start: int, length: int) -> bytes:
    """Bytes of the listed version; tried again when the connection breaks in the middle.

    Raises:
        botocore's ClientError; precondition failed where the file is another one by now.
        StoreAway: the connection breaks again and again, or there is none.
    """
    from botocore.exceptions import BotoCoreError, HTTPClientError, IncompleteReadError

    end = min(start + length, file.size) - 1
    if end < start:
        return b""
    wanted = {"Bucket": bucket, "Key": file.key, "Range": f"bytes={start}-{end}"}
    wanted |= {"IfMatch": file.etag} if file.etag else {}
    for attempt in range(_TRIES):
        try:
            data: bytes = client.get_object(**wanted)["Body"].read()
            return data
        except (BotoCoreError, IncompleteReadError) as error:
            if attempt + 1 == _TRIES or not isinstance(error, HTTPClientError | IncompleteReadError):
                raise StoreAway(error) from None
    raise AssertionError("unreachable")

"""Asking S3 about the files below a prefix and removing them; every wait has an end."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from leatstream.connectors.entities import Entity
from leatstream.connectors.s3.errors import s3_error
from leatstream.connectors.s3.settings import S3Config, s3_client
from leatstream.errors import StoreError

T = TypeVar("T")
LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=-]{0,127}\Z")
FORMATS = {
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "csv": "csv",
    "parquet": "parquet",
    "avro": "avro",
}
_PAGE = 1000  # keys of one answer
_MOST_PAGES = 10  # for a description
_REMOVAL = 120.0  # seconds


@dataclass(frozen=True, slots=True)
class Found:
    """A file.

    Attributes:
        key: its whole key.
        modified: epoch milliseconds; of a file sent in parts when sending began.
    """

    key: str
    size: int
    etag: str
    modified: int


class S3Admin:
    """One store's part of S3; safe to share between threads."""

    def __init__(self, store: str, config: S3Config) -> None:
        self.store = store
        self.config = config
        self._clients: dict[float, Any] = {}
        self._lock = threading.Lock()

    def call(self, what: str, timeout: float, run: Callable[[Any], T]) -> T:
        """Run one call; StoreError for what S3 or the network says."""
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            return run(self.client(timeout))
        except (BotoCoreError, ClientError, ResponseParserError) as error:
            raise s3_error(self.store, what, error, self.config, timeout) from None

    def client(self, timeout: float) -> Any:
        """The client whose calls end within ``timeout`` seconds."""
        with self._lock:
            if timeout not in self._clients:
                self._clients[timeout] = s3_client(self.config, timeout)
            return self._clients[timeout]

    def prefix(self, entity: str) -> str:
        """What the keys of an entity's files begin with."""
        return f"{self.config.root}{entity}/"

    def reach(self, timeout: float) -> None:
        """List one key."""
        self.call("listing files", timeout, lambda c: c.list_objects_v2(**self._scope(self.config.root, 1)))

    def directories(self, timeout: float) -> list[str]:
        """Names of what lies directly below the root and holds something."""
        root, found = self.config.root, []
        pages = self._pages("listing directories", root, timeout, Delimiter="/")
        for page in pages:
            names = (one["Prefix"][len(root) : -1] for one in page.get("CommonPrefixes", ()))
            found += [name for name in names if LEGAL.match(name)]
        return sorted(found)

    def exists(self, entity: str, timeout: float) -> bool:
        """Whether anything lies below the prefix, a marker included."""
        scope = self._scope(self.prefix(entity), 1)
        answer = self.call(f"listing {entity}", timeout, lambda c: c.list_objects_v2(**scope))
        return bool(answer.get("KeyCount") or answer.get("Contents"))

    def describe(self, entity: str, timeout: float) -> Entity | None:
        """The entity with what is known of its files; None where there is nothing, no marker either.

        Of more than ten thousand files the first ones by name are counted.
        """
        prefix, there, whole = self.prefix(entity), False, True
        files: list[Found] = []
        end = time.monotonic() + timeout / 2
        for number, page in enumerate(self._pages(f"listing {entity}", prefix, timeout), 1):
            there = there or bool(page.get("Contents"))
            files += [one for one in map(_found, page.get("Contents", ())) if is_data(one, prefix)]
            if (number == _MOST_PAGES or time.monotonic() > end) and page.get("IsTruncated"):
                whole = False
                break
        if not there:
            return None
        formats = Counter(f for f in (format_of(one.key) for one in files) if f)
        details: dict[str, Any] = {"files": len(files), "bytes": sum(one.size for one in files)}
        details |= {"format": formats.most_common(1)[0][0]} if formats else {}
        details |= {} if whole else {"more": True}
        return Entity(entity, details=details)

    def files(self, entity: str, timeout: float) -> list[Found]:
        """Every file of an entity."""
        prefix = self.prefix(entity)
        pages = self._pages(f"listing {entity}", prefix, timeout)
        found = (_found(one) for page in pages for one in page.get("Contents", ()))
        return [one for one in found if is_data(one, prefix)]

    def find_file(self, entity: str, path: str, timeout: float) -> Found | None:
        """A file of an entity, by its path below it."""
        key = self.prefix(entity) + path
        page = self._page(f"listing {entity}", timeout, self._scope(key, 1))
        return next((f for f in map(_found, page.get("Contents", ())) if f.key == key), None)

    def mark(self, entity: str, timeout: float) -> None:
        """Make an entity without files: an empty object, its key ending in a slash, as AWS's console does."""
        marker = {"Bucket": self.config.bucket, "Key": self.prefix(entity), "Body": b""}
        self.call(f"creating {entity}", timeout, lambda c: c.put_object(**marker))

    def remove(self, entity: str, timeout: float) -> None:
        """Delete everything below the prefix; does nothing where there is nothing."""
        prefix, end = self.prefix(entity), time.monotonic() + max(timeout, _REMOVAL)
        while True:
            page = self._page(f"listing {entity}", timeout, self._scope(prefix, _PAGE))
            keys = [{"Key": one["Key"]} for one in page.get("Contents", ())]
            if not keys:
                return
            self._remove_keys(entity, keys, timeout)
            if time.monotonic() >= end:
                raise StoreError(
                    "store-unreachable",
                    f"Store {self.store}: {entity} still has files after {max(timeout, _REMOVAL):g} s.",
                    hint="Delete it once more; what is gone stays gone.",
                )

    def _remove_keys(self, entity: str, keys: list[dict[str, str]], timeout: float) -> None:
        wanted = {"Bucket": self.config.bucket, "Delete": {"Objects": keys, "Quiet": True}}
        answer: Any = self.call(f"deleting {entity}", timeout, lambda c: c.delete_objects(**wanted))
        errors = answer.get("Errors") or []
        if not errors:
            return
        code = str(errors[0].get("Code") or "")
        denied = "AccessDenied" in code
        raise StoreError(
            "store-auth-failed" if denied else "store-rejected",
            f"Store {self.store}: {len(errors)} files of {entity} could not be deleted ({code}).",
            hint="Check that the policy allows s3:DeleteObject." if denied else None,
        )

    def _pages(self, what: str, prefix: str, timeout: float, **more: Any) -> Iterator[Any]:
        scope = self._scope(prefix, _PAGE) | more
        while True:
            page = self._page(what, timeout, scope)
            yield page
            if not page.get("IsTruncated"):
                return
            scope = scope | {"ContinuationToken": page["NextContinuationToken"]}

    def _page(self, what: str, timeout: float, scope: dict[str, Any]) -> Any:
        return self.call(what, timeout, lambda c: c.list_objects_v2(**scope))

    def _scope(self, prefix: str, most: int) -> dict[str, Any]:
        return {"Bucket": self.config.bucket, "Prefix": prefix, "MaxKeys": most}


def is_data(file: Found, prefix: str) -> bool:
    """Whether a file holds records: not empty, and no part of its path below ``prefix`` is hidden.

    What begins with ``_`` or ``.`` is bookkeeping of the writer, by an old convention.
    """
    parts = file.key[len(prefix) :].split("/")
    return file.size > 0 and bool(parts[-1]) and not any(p.startswith(("_", ".")) for p in parts)


def format_of(key: str) -> str | None:
    """The format that a file's name tells."""
    return FORMATS.get(key.removesuffix(".gz").rsplit("/", 1)[-1].rpartition(".")[2].lower())


def _found(item: Any) -> Found:
    modified = int(item["LastModified"].timestamp() * 1000)
    return Found(item["Key"], int(item["Size"]), str(item.get("ETag") or ""), modified)

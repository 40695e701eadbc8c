"""Reading an entity's records for people: its files, the oldest first, then those that come."""

from __future__ import annotations

import time
from collections.abc import Iterator

from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.connectors.s3.admin import Found, S3Admin, format_of
from leatstream.connectors.s3.errors import is_changed, is_gone, s3_error
from leatstream.connectors.s3.files import rows
from leatstream.connectors.s3.layout import Layout, Row
from leatstream.connectors.s3.objects import StoreAway, open_file
from leatstream.connectors.sampling import Sampled, taken
from leatstream.errors import StoreError

_PAUSE = 0.5  # seconds between two looks
_TIMEOUT = 5.0


def records(
    admin: S3Admin, entity: str, start: RecordsFrom, limit: int | None, idle_timeout: float | None
) -> Iterator[Record | None]:
    """Records file by file, by what the files' names tell of their format; None now and then while idle.

    Files from before the time that is wanted are not read.

    Raises:
        StoreError: entity-not-found or store-auth-failed, also while reading.
    """
    since = start.since if start.reads_existing else None
    passed = [] if start.reads_existing and since is None else admin.files(entity, _TIMEOUT)
    known = {file.key for file in passed if since is None or file.modified < since}
    sent, quiet = 0, time.monotonic()
    while True:
        fresh = [file for file in admin.files(entity, _TIMEOUT) if file.key not in known]
        for file in sorted(fresh, key=lambda f: (f.modified, f.key)):
            known.add(file.key)
            for record in _read(admin, entity, file):
                yield record
                sent, quiet = sent + 1, time.monotonic()
                if limit is not None and sent >= limit:
                    return
        if idle_timeout is not None and time.monotonic() - quiet >= idle_timeout:
            return
        yield None
        time.sleep(_PAUSE)
        if not admin.exists(entity, _TIMEOUT):
            raise StoreError("entity-not-found", f"{entity} does not exist in store {admin.store} any more.")


def sample(
    admin: S3Admin, entity: str, layout: Layout, *, newest: bool, limit: int, timeout: float
) -> Sampled:
    """The last rows of the newest files, or the first ones of the oldest; the oldest first.

    Args:
        admin: of the store.
        entity: directory of the files.
        layout: how they are read.
        newest: which files.
        limit: the most rows.
        timeout: seconds.
    """
    end = time.monotonic() + timeout
    if not admin.exists(entity, timeout):
        raise StoreError("entity-not-found", f"{entity} does not exist in store {admin.store}.")
    files = sorted(admin.files(entity, timeout), key=lambda f: (f.modified, f.key), reverse=newest)
    found: list[Record] = []
    for file in files:
        left = limit - len(found)
        rows_of_file = _read(admin, entity, file, layout)
        part = taken(rows_of_file, newest=newest, limit=left, timeout=end - time.monotonic())
        found = part.records + found if newest else found + part.records
        if not part.whole or len(found) >= limit:
            return Sampled(found, part.whole)
    return Sampled(found)


def record_at(
    admin: S3Admin, entity: str, path: str, number: int, layout: Layout, timeout: float
) -> Record | None:
    """A row of a file, as a job reads it; None where the file is gone, or does not come to it in time."""
    end = time.monotonic() + timeout
    file = admin.find_file(entity, path, timeout)
    if file is None:
        return None
    for chunk in rows(path, open_file(admin.client(timeout), admin.config.bucket, file), layout):
        if chunk[-1].number >= number:
            row = next((r for r in chunk if r.number == number), None)
            # What the reader has said of a row is all there is to say.
            return _record(file, entity, admin, row) if row is not None and row.reason is None else None
        if time.monotonic() > end:
            break
    return None


def _read(admin: S3Admin, entity: str, file: Found, layout: Layout | None = None) -> Iterator[Record]:
    """The rows of a file, by its layout or by what its name shows of its format."""
    from botocore.exceptions import BotoCoreError, ClientError

    layout = layout or Layout(format_of(file.key) or "json")
    path = file.key[len(admin.prefix(entity)) :]
    try:
        opened = open_file(admin.client(_TIMEOUT), admin.config.bucket, file)
        for chunk in rows(path, opened, layout):
            yield from (_record(file, entity, admin, row) for row in chunk)
    except (BotoCoreError, ClientError) as error:
        if is_gone(error) or is_changed(error):
            return  # it is not the file any more that was listed
        raise s3_error(admin.store, f"reading {file.key}", error, admin.config, _TIMEOUT) from None
    except StoreAway as error:
        raise s3_error(admin.store, f"reading {file.key}", error.cause, admin.config, _TIMEOUT) from None


def _record(file: Found, entity: str, admin: S3Admin, row: Row) -> Record:
    """A record: its file below the entity stands for the partition, the row for the offset."""
    fault = row.reason if row.fault is None else f"the file cannot be read: {row.fault}"
    value = row.value if fault is None else fault.encode()
    path = file.key[len(admin.prefix(entity)) :]
    return Record(None, value, path, row.number, file.modified, fault=fault)

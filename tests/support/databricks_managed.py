"""Managed tables of the facade of a Databricks workspace: a folder as volume, and real Spark with Delta Lake.

What open Delta Lake lacks is made from what it has. ``COPY INTO`` is an INSERT that is an application's transaction
of the Delta log, one for each file, so that a file is loaded once. Primary keys are kept here: they are not enforced.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delta_warehouse import DeltaWarehouse, delta_warehouse

VOLUME = "/Volumes/main/default/staging"
_CREATE = re.compile(r"CREATE TABLE `main`\.`(\w+)`\.`([^`]+)` \(")
_KEY = re.compile(r", CONSTRAINT `[^`]+` PRIMARY KEY \(([^)]+)\)")
_COPY = re.compile(
    r"COPY INTO (?P<table>\S+) FROM \((?P<columns>SELECT .+) FROM '(?P<folder>/Volumes/[^']+)'\)"
    r" FILEFORMAT = PARQUET FILES = \('(?P<file>[^']+)'\)\Z"
)


@dataclass
class ManagedTables:
    """The volume, and a warehouse that starts when it is first used.

    Attributes:
        folder: what stands for ``/Volumes`` and for the storage of managed tables.
    """

    folder: Path
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _started: DeltaWarehouse | None = None
    _starting: threading.Lock = field(default_factory=threading.Lock)
    _held: threading.Event | None = None

    def __post_init__(self) -> None:
        self.local(VOLUME).mkdir(parents=True)

    def local(self, path: str) -> Path:
        """Where a path of a volume lies on this machine."""
        return self.folder / path.lstrip("/")

    def location(self, schema: str, table: str) -> Path:
        """Where a managed table's files lie."""
        return self.folder / "tables" / (table if schema == "default" else f"{schema}.db/{table}")

    def files(self) -> list[str]:
        """What is in the volume, as paths below it."""
        root = self.local(VOLUME)
        return sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())

    def hold_next(self) -> threading.Event:
        """Have the next statement wait before it runs, until the event is set."""
        self._held = threading.Event()
        return self._held

    def run(
        self, statement: str, register: Callable[[str, str, list[str]], None] = lambda *_: None
    ) -> dict[str, Any]:
        """Run a statement in Spark.

        Args:
            statement: as a warehouse gets it.
            register: called with name, location and key of a new table.

        Raises:
            ValueError: what Spark says.
        """
        text = re.sub(r"`main`\.(?=`)", "", statement)
        text = text.replace("`/Volumes/", f"`{self.folder}/Volumes/")
        once, copied = None, _COPY.match(statement)
        if copied is not None:
            path = f"{copied['folder'].rstrip('/')}/{copied['file']}"
            once = f"copy {path}"
            table = copied["table"].removeprefix("`main`.")
            text = f"INSERT INTO {table} BY NAME {copied['columns']} FROM parquet.`{self.local(path)}`"
        created = _CREATE.match(statement)
        key = _KEY.search(text) if created is not None else None
        if key is not None:
            text = text.replace(key[0], "")
        held, self._held = self._held, None
        if held is not None:
            held.wait()
        if created is not None:
            self._warehouse().run(f"CREATE SCHEMA IF NOT EXISTS `{created[1]}`")
        found = self._warehouse().run(text, once)
        if "error" in found:
            raise ValueError(found["error"])
        if created is not None:
            keys = re.findall(r"`([^`]+)`", key[1]) if key is not None else []
            register(f"main.{created[1]}.{created[2]}", str(self.location(created[1], created[2])), keys)
        return found

    def drop(self, schema: str, table: str) -> None:
        """Drop a table with its files."""
        self._warehouse().run(f"DROP TABLE IF EXISTS `{schema}`.`{table}`")
        shutil.rmtree(self.location(schema, table), ignore_errors=True)

    def close(self) -> None:
        """Stop what was started."""
        self._stack.close()

    def _warehouse(self) -> DeltaWarehouse:
        with self._starting:
            if self._started is None:
                self._started = self._stack.enter_context(delta_warehouse(self.folder))
            return self._started

    # -- the Files API ---------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Answer a request for a file or a folder of a volume.

        Args:
            method: of HTTP.
            path: behind ``/api/2.0/fs/``.
            body: of the request.
        """
        what, _, place = path.partition("/")
        there = self.local(place)
        if (what, method) == ("directories", "PUT"):
            there.mkdir(parents=True, exist_ok=True)
            return 204, {}
        if (what, method) == ("files", "PUT"):
            if not there.parent.is_dir():
                return _missing(place)
            # Whole or not at all, as in a bucket.
            part = there.with_name(f".{there.name}.{threading.get_ident()}")
            part.write_bytes(body)
            part.replace(there)
            return 204, {}
        if not there.exists():
            return _missing(place)
        if method == "GET":
            return 200, {"contents": list(_entries(there, f"/{place.strip('/')}"))}
        with contextlib.suppress(OSError):
            there.unlink() if what == "files" else there.rmdir()
            return 204, {}
        return 400, {"error_code": "BAD_REQUEST", "message": f"{place} is not empty."}


def _missing(place: str) -> tuple[int, dict[str, Any]]:
    return 404, {"error_code": "NOT_FOUND", "message": f"/{place} does not exist."}


def _entries(folder: Path, path: str) -> Iterator[dict[str, Any]]:
    for one in sorted(folder.iterdir()):
        if not one.name.startswith("."):
            yield {"path": f"{path}/{one.name}", "name": one.name, "is_directory": one.is_dir()}

"""Looks at a catalog before a server begins to work on it: a lost one must not pass for a new one.

A server on an empty catalog knows of no object. The next apply of every user would create all of them again,
and their queries would read everything from the beginning into sinks that have it already.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from leatstream.errors import StackError, sentence
from leatstream.storage.migrate import revision

_OURS = re.compile(r"r\d{4}|base")
_BACKUP = "Restore it from a backup (docs/operations.md, Backup)"
_NEW = "to lose everything it held and begin with an empty one: leat catalog migrate --new"
# What SQLite's result codes mean for a file that cannot be used.
_FAULTS = {
    sqlite3.SQLITE_NOTADB: "is no SQLite database",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_PERM: "cannot be opened",
    sqlite3.SQLITE_READONLY: "cannot be written",
    sqlite3.SQLITE_IOERR: "cannot be read",
}


def check_catalog(url: str, data_dir: Path, checkpoints: str, *, new: bool = False) -> None:
    """See that the catalog can be used, and is there where a server has worked before.

    Args:
        url: of the catalog.
        data_dir: of the server.
        checkpoints: where checkpoints are: a directory or a URL, which is not looked into.
        new: whether a catalog that is lost may be replaced by an empty one.

    Raises:
        StackError: ``part-failed``, with the way out.
    """
    parsed = sa.make_url(url)
    file = Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None
    present = _revision_of_file(file) if file is not None else revision(url)
    if not _OURS.fullmatch(present):
        raise StackError(
            "part-failed",
            f"{_name(file)} belongs to another application: it has the schema {present!r}.",
            hint="Name another one in LEATSTREAM_CATALOG_URL.",
        )
    if present != "base" or new:
        return
    marks = _marks(data_dir, checkpoints, file)
    if marks:
        raise StackError(
            "part-failed",
            f"{_name(file)} {_state(file)}, but a server has worked here before: there is {marks[0]}.",
            hint=f"{_BACKUP}, or correct LEATSTREAM_CATALOG_URL and LEATSTREAM_DATA_DIR; {_NEW}",
        )


def require_catalog(url: str) -> None:
    """StackError part-failed unless there is a catalog; a missing file is not made."""
    parsed = sa.make_url(url)
    file = Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None
    present = _revision_of_file(file) if file is not None else revision(url)
    if present == "base" or not _OURS.fullmatch(present):
        raise StackError(
            "part-failed",
            f"{_name(file)} {_state(file)}." if present == "base" else f"{_name(file)} has {present}.",
            hint="Set LEATSTREAM_CATALOG_URL or LEATSTREAM_DATA_DIR as for the servers.",
        )


def _name(file: Path | None) -> str:
    return f"The catalog {file}" if file is not None else "The catalog in PostgreSQL"


def _state(file: Path | None) -> str:
    if file is None or (file.exists() and file.stat().st_size > 0):
        return "has no tables"
    return "is empty (0 bytes)" if file.exists() else "is missing"


def _revision_of_file(file: Path) -> str:
    """The schema of a file, which is not touched if it is empty: SQLite would delete the log beside it."""
    try:
        if not file.exists() or file.stat().st_size == 0:
            return "base"
        # Not by an engine of ours, which would make it a log of its own before anything is known of it.
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if result != "ok":
                raise _unusable(file, f"is damaged: {' '.join(str(result).split())}")
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = sorted(row[0] for row in found)
            if names and "alembic_version" not in names:
                return f"of the tables {', '.join(names[:3])}"
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall() if names else []
            return str(rows[0][0]) if rows else "base"
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StackError(
                "part-failed", f"{_name(file)} is in use by another process.", hint="End that one first."
            ) from None
        raise _unusable(file, _FAULTS.get(code, "cannot be read")) from None
    except OSError as error:
        raise _unusable(file, f"cannot be read: {error.strerror}") from None


def _unusable(file: Path, why: str) -> StackError:
    return StackError(
        "part-failed",
        sentence(f"{_name(file)} {why}"),
        hint=f"{_BACKUP}. It was not changed. If there is none, move it elsewhere first; then, {_NEW}",
    )


def _marks(data_dir: Path, checkpoints: str, file: Path | None) -> list[Path]:
    """What only a server that has had a catalog leaves, in its directory or with its queries' checkpoints."""
    found = [path for path in (data_dir / "server.id", data_dir / "token") if path.exists()]
    for folder in (data_dir / "views", *(() if "://" in checkpoints else (Path(checkpoints),))):
        found += [path for path in sorted(folder.glob("*")) if not path.name.startswith(".")][:1]
    log = file.with_name(f"{file.name}-wal") if file is not None else None
    return found + [path for path in (log,) if path is not None and path.exists() and path.stat().st_size]

"""What several servers on one catalog must have in common, checked before a server begins to work."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import secrets
from pathlib import Path
from typing import IO

import sqlalchemy as sa

from leatstream.errors import InternalError, StackError
from leatstream.ports import OpenUnit, SecretBox
from leatstream.services.environment import new_id
from leatstream.storage.leases import CatalogLeases

_LOG = logging.getLogger(__name__)
KEY_PROOF = "catalog/key-proof"
VIEWS_PASSWORD = "catalog/views-password"  # noqa: S105 - a reference


def hold(data_dir: Path, catalog: str) -> list[IO[str]]:
    """Hold the data directory, and the catalog if it is an SQLite file; both are freed with the process.

    Raises:
        StackError: ``already-running``.
    """
    hint = "End that one, or set LEATSTREAM_DATA_DIR to another directory."
    held = [_lock(data_dir / "server.lock", f"Another server works in {data_dir}.", hint)]
    file = sa.make_url(catalog).database
    if sa.make_url(catalog).get_backend_name() == "sqlite" and file:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        why = f"Another server works on the catalog {file}, and SQLite serves one process only."
        hint = "End that one, or put the catalog into PostgreSQL: LEATSTREAM_CATALOG_URL=postgresql://…"
        held.append(_lock(Path(f"{file}.lock"), why, hint))
    return held


def _lock(path: Path, why: str, hint: str) -> IO[str]:
    lock = path.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise StackError("already-running", why, hint=hint) from error
    return lock


def server_id(data_dir: Path) -> str:
    """This server's id: that of its data directory, so that a restart is the same server."""
    return _kept(data_dir / "server.id", new_id("srv"))


def join_servers(
    catalog: str, server: str, checkpoint_root: str, orphan_seconds: float, lease_seconds: float
) -> CatalogLeases | None:
    """Leases on the queries of a catalog that servers may share; None for one that they may not.

    Raises:
        StackError: ``part-failed``, a server that lives keeps its checkpoints elsewhere: a query that went
            from one to the other would start over.
    """
    if sa.make_url(catalog).get_backend_name() != "postgresql":
        return None
    place = _place_of(checkpoint_root)
    leases = CatalogLeases(catalog, server, place, orphan_seconds, lease_seconds)
    if not leases.join():
        raise StackError(
            "part-failed",
            f"Another server of this catalog keeps its checkpoints elsewhere than in {checkpoint_root}.",
            hint="Set LEATSTREAM_CHECKPOINT_ROOT of every server to one directory or URL that all reach.",
        )
    return leases


def refuse_living_servers(catalog: str, lease_seconds: float) -> None:
    """See that no server works on a catalog in PostgreSQL; of a file the lock shows it.

    Raises:
        StackError: ``already-running``.
    """
    if sa.make_url(catalog).get_backend_name() != "postgresql":
        return
    try:
        living = CatalogLeases(catalog, "", "", 0.0, lease_seconds).others()
    except sa.exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != "42P01":
            raise
        return  # schemas from before servers could share a catalog have no table of them
    if living:
        names = ", ".join(sorted(living))
        hint = f"End every server first; one that died counts as living for {lease_seconds:g} s."
        raise StackError("already-running", f"Servers work on this catalog: {names}.", hint=hint)


def prove_keys(open_unit: OpenUnit, box: SecretBox, *, alone: bool = False) -> None:
    """See that this server's key ring opens what others, or an earlier run, have sealed.

    Args:
        open_unit: of the catalog.
        box: with the key ring.
        alone: no other server works on the catalog: secrets whose key is lost can then be given again, so it
            is only said, once for each change of the key ring.

    Raises:
        StackError: ``part-failed``.
    """
    with open_unit() as unit:
        envelope = unit.secrets.find(KEY_PROOF)
        if envelope is None:
            unit.secrets.put(KEY_PROOF, box.seal(KEY_PROOF, "known"))
            unit.commit()
            return
    try:
        box.open(KEY_PROOF, envelope)
    except InternalError as error:
        message = "This server's key ring is not the one that the secrets of this catalog are sealed with."
        if alone:
            _LOG.error("%s: restore its keys.json, or give each store its secrets again", message)
            with open_unit() as unit:
                unit.secrets.put(KEY_PROOF, box.seal(KEY_PROOF, "known"))
                unit.commit()
            return
        raise StackError(
            "part-failed",
            message,
            hint="Give every server the key ring of the first: its keys.json, at LEATSTREAM_KEYS_FILE.",
        ) from error


def common_password(open_unit: OpenUnit, box: SecretBox, reference: str) -> str:
    """A password that all servers of a catalog know: created by the first, again if the key is lost."""
    with open_unit() as unit:
        envelope = unit.secrets.find(reference)
        if envelope is not None:
            with contextlib.suppress(InternalError):
                return box.open(reference, envelope)
        made = secrets.token_urlsafe(32)
        unit.secrets.put(reference, box.seal(reference, made))
        unit.commit()
    return made


def _place_of(root: str) -> str:
    """What distinguishes one place of checkpoints from another: a mark in a directory, else the URL."""
    if "://" in root:
        return root.rstrip("/")
    Path(root).mkdir(parents=True, exist_ok=True, mode=0o700)
    return _kept(Path(root) / ".place", secrets.token_hex(8))


def _kept(path: Path, new: str) -> str:
    """The text of a file, which is made with ``new`` if it is not there or empty; of two makers one wins."""
    with path.open("a+") as file:
        with contextlib.suppress(OSError):  # some shared disks have no locks: two must then not start at once
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        found = file.read().strip()
        if not found:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
    return found or new

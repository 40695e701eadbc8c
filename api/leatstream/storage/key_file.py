"""The key ring on disk: several keys, of which one seals new values and all open old ones."""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from leatstream.errors import CatalogError, StackError, sentence
from leatstream.storage.codec import look_into

KEY_BYTES = 32


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file holds: base64 keys by id, and which one seals new values."""

    primary: str
    keys: dict[str, str]


look_into(_KeyFile)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Master keys by id, in the order in which they were added, and the one that seals new values."""

    keys: Mapping[str, bytes]
    primary: str

    def __post_init__(self) -> None:
        """Check it; ValueError if a key has another length, or the primary is not among them."""
        if self.primary not in self.keys:
            raise ValueError(f"primary key {self.primary!r} is not in the key ring")
        for key_id, key in self.keys.items():
            if len(key) != KEY_BYTES:
                raise ValueError(f"key {key_id!r} has {len(key)} bytes instead of {KEY_BYTES}")

    def __repr__(self) -> str:
        """Ids only."""
        return f"KeyRing({', '.join(self.keys)}; primary {self.primary})"

    @property
    def newest(self) -> str:
        """Id of the key that was added last."""
        return list(self.keys)[-1]


def read_key_ring(path: Path) -> KeyRing:
    """The keys of a file.

    Raises:
        StackError: part-failed, it cannot be read, is readable by others, or is no key file.
    """
    try:
        open_to_others = _open_to_others(path.stat())
        content = path.read_bytes()
    except OSError as error:
        raise StackError(
            "part-failed",
            sentence(f"The key file {path} cannot be read: {error.strerror}"),
            hint="Correct LEATSTREAM_KEYS_FILE or LEATSTREAM_DATA_DIR, or run this as the server's account.",
        ) from error
    if open_to_others:
        raise StackError(
            "part-failed",
            f"The key file {path} can be read by other users.",
            hint=f"Run: chmod 600 {path}",
        )
    try:
        parsed = msgspec.json.decode(content, type=_KeyFile)
        keys = {key_id: base64.b64decode(text, validate=True) for key_id, text in parsed.keys.items()}
        return KeyRing(keys, parsed.primary)
    except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise StackError(
            "part-failed",
            f"{path} is not a key file.",
            hint="Restore it from a backup; without it no stored secret can be opened.",
        ) from error


def create_key_file(path: Path) -> None:
    """Make the file (mode 0600) with one key, if it is not there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    key_id, key = _new_key()
    draft = _draft(path, KeyRing({key_id: key}, key_id))
    try:
        # Linked into place: a crash leaves no half file, and of two starters one wins.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def add_key(path: Path) -> str:
    """Add a new key, with which nothing is sealed yet, and return its id.

    Raises:
        StackError: part-failed, the file cannot be used or written.
    """
    with _changing(path) as ring:
        key_id, key = _new_key()
        _replace(path, KeyRing({**ring.keys, key_id: key}, ring.primary))
    return key_id


def use_key(path: Path, key_id: str) -> None:
    """Seal new values with a key of the file from now on.

    Raises:
        CatalogError: not-found, there is no such key.
        StackError: part-failed, the file cannot be used or written.
    """
    if read_key_ring(path).primary == key_id:
        return  # a mounted Secret cannot be written, and need not be
    with _changing(path) as ring:
        require_key(ring, key_id, path)
        _replace(path, replace(ring, primary=key_id))


def remove_key(path: Path, key_id: str) -> None:
    """Remove a key.

    Raises:
        CatalogError: not-found, there is no such key; invalid-transition, it seals new values.
        StackError: part-failed, the file cannot be used or written.
    """
    with _changing(path) as ring:
        require_key(ring, key_id, path)
        if key_id == ring.primary:
            raise CatalogError(
                "invalid-transition",
                f"Key {key_id} of {path} is the primary: new values are encrypted with it.",
                hint="Run leat admin add-key and leat admin rotate-key first.",
            )
        _replace(path, KeyRing({k: v for k, v in ring.keys.items() if k != key_id}, ring.primary))


def require_key(ring: KeyRing, key_id: str, path: Path) -> None:
    """CatalogError not-found unless the ring has the key.

    Args:
        ring: of the file.
        key_id: that is wanted.
        path: of the file, for the message.
    """
    if key_id not in ring.keys:
        raise CatalogError(
            "not-found",
            f"The key file {path} has no key {key_id}; it has {', '.join(ring.keys)}.",
            hint="Add a key with leat admin add-key, or correct LEATSTREAM_KEYS_FILE.",
        )


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[KeyRing]:
    """The ring, while no other process changes the file; a fault of writing is a StackError."""
    try:
        with contextlib.ExitStack() as held:
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, folder)
            with contextlib.suppress(OSError):  # some shared disks have no locks: one person at a time then
                fcntl.flock(folder, fcntl.LOCK_EX)
            yield read_key_ring(path)
    except OSError as error:
        raise StackError(
            "part-failed",
            sentence(f"The key file {path} cannot be written: {error.strerror}"),
            hint="Change a copy, which LEATSTREAM_KEYS_FILE names, and put it where the servers get theirs.",
        ) from error


def _new_key() -> tuple[str, bytes]:
    return f"k{secrets.token_hex(4)}", os.urandom(KEY_BYTES)


def _replace(path: Path, ring: KeyRing) -> None:
    path = path.resolve()  # a link stays a link
    found = path.stat()
    draft = _draft(path, ring)
    try:
        if found.st_uid != os.geteuid():  # root changes the file of the server's account
            os.chown(draft, found.st_uid, found.st_gid)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _draft(path: Path, ring: KeyRing) -> Path:
    """A file beside the path that holds the ring, for its owner only."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    keys = {key_id: base64.b64encode(key).decode() for key_id, key in ring.keys.items()}
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(_KeyFile(ring.primary, keys)))
        file.flush()
        os.fsync(file.fileno())
    return draft


def _open_to_others(found: os.stat_result) -> bool:
    # A secret mounted by Kubernetes is root's and reaches the server by its group: that is no fault.
    forbidden = stat.S_IRWXO | stat.S_IWGRP | (stat.S_IRWXG if found.st_uid == os.geteuid() else 0)
    return bool(found.st_mode & forbidden)

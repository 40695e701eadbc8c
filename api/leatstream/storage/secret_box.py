"""Seals secrets: each value under a key of its own, that key wrapped under a master key of the key ring."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from leatstream.errors import InternalError, StackError
from leatstream.storage.codec import look_into

_KEY_BYTES = 32
_NONCE_BYTES = 12


class _Envelope(msgspec.Struct, frozen=True, array_like=True):
    """What is stored: format version, id of the master key, wrapped value key, nonce, ciphertext with tag."""

    version: int
    key_id: str
    wrapped: bytes
    nonce: bytes
    ciphertext: bytes


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The key ring on disk: base64 keys by id, and which one seals new values."""

    primary: str
    keys: dict[str, str]


look_into(_Envelope, _KeyFile)


class KeyRingBox:
    """Seals and opens secret values (``ports.SecretBox``).

    The reference is authenticated with the value: an envelope moved to another row cannot be opened.
    """

    def __init__(self, keys: Mapping[str, bytes], primary: str) -> None:
        """Make a box.

        Args:
            keys: 32-byte master keys by id; old ones stay as long as envelopes of theirs exist.
            primary: id of the key that seals new values.

        Raises:
            ValueError: a key has another length, or the primary is not among them.
        """
        if primary not in keys:
            raise ValueError(f"primary key {primary!r} is not in the key ring")
        for key_id, key in keys.items():
            if len(key) != _KEY_BYTES:
                raise ValueError(f"key {key_id!r} has {len(key)} bytes instead of {_KEY_BYTES}")
        self._keys = dict(keys)
        self._primary = primary

    def seal(self, reference: str, value: str) -> bytes:
        """Encrypt for this reference only."""
        data_key = AESGCM.generate_key(bit_length=_KEY_BYTES * 8)
        nonce = os.urandom(_NONCE_BYTES)
        ciphertext = AESGCM(data_key).encrypt(nonce, value.encode(), reference.encode())
        wrapped = aes_key_wrap(self._keys[self._primary], data_key)
        return msgspec.msgpack.encode(_Envelope(1, self._primary, wrapped, nonce, ciphertext))

    def open(self, reference: str, envelope: bytes) -> str:
        """Decrypt.

        Raises:
            InternalError: secret-unreadable, the envelope was made for another reference, by an unknown
                key, or is damaged.
        """
        try:
            parsed = msgspec.msgpack.decode(envelope, type=_Envelope)
            data_key = aes_key_unwrap(self._keys[parsed.key_id], parsed.wrapped)
            plain = AESGCM(data_key).decrypt(parsed.nonce, parsed.ciphertext, reference.encode())
        except (InvalidTag, InvalidUnwrap, KeyError, ValueError, msgspec.MsgspecError) as error:
            raise InternalError(
                "secret-unreadable",
                f"The secret {reference} cannot be opened: "
                "it was sealed with a key this server does not have, or it has been changed.",
                hint="Check that the key file belongs to this catalog, or set the secret again.",
            ) from error
        return plain.decode()


def open_secret_box(path: Path) -> KeyRingBox:
    """The box whose keys lie in a file, which is made (mode 0600) if it is not there.

    Raises:
        StackError: part-failed, the file is readable by others or is no key file.
    """
    _create_if_missing(path)
    if _open_to_others(path.stat()):
        raise StackError(
            "part-failed",
            f"The key file {path} can be read by other users.",
            hint=f"Run: chmod 600 {path}",
        )
    try:
        parsed = msgspec.json.decode(path.read_bytes(), type=_KeyFile)
        keys = {key_id: base64.b64decode(text, validate=True) for key_id, text in parsed.keys.items()}
        return KeyRingBox(keys, parsed.primary)
    except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise StackError(
            "part-failed",
            f"{path} is not a key file.",
            hint="Restore it from a backup; without it no stored secret can be opened.",
        ) from error


def _open_to_others(found: os.stat_result) -> bool:
    # A secret mounted by Kubernetes is root's and reaches the server by its group: that is no fault.
    forbidden = stat.S_IRWXO | stat.S_IWGRP | (stat.S_IRWXG if found.st_uid == os.geteuid() else 0)
    return bool(found.st_mode & forbidden)


def _create_if_missing(path: Path) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    key_id = f"k{secrets.token_hex(4)}"
    key = base64.b64encode(os.urandom(_KEY_BYTES)).decode()
    # Written beside and linked into place: a crash leaves no half file, and of two starters one wins.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(_KeyFile(key_id, {key_id: key})))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()

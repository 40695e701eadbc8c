"""Seals secrets: each value under a key of its own, that key wrapped under a master key of the key ring."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from leatstream.errors import InternalError, StackError
from leatstream.storage.codec import look_into
from leatstream.storage.key_file import KEY_BYTES, KeyRing, create_key_file, read_key_ring

_NONCE_BYTES = 12
_LOG = logging.getLogger(__name__)


class _Envelope(msgspec.Struct, frozen=True, array_like=True):
    """What is stored: format version, id of the master key, wrapped value key, nonce, ciphertext with tag."""

    version: int
    key_id: str
    wrapped: bytes
    nonce: bytes
    ciphertext: bytes


look_into(_Envelope)


class KeyRingBox:
    """Seals and opens secret values (``ports.SecretBox``).

    The reference is authenticated with the value: an envelope moved to another row cannot be opened.
    """

    def __init__(self, ring: KeyRing) -> None:
        """Make a box; old keys stay in the ring as long as envelopes of theirs exist."""
        self.ring = ring

    def seal(self, reference: str, value: str) -> bytes:
        """Encrypt for this reference only."""
        data_key = AESGCM.generate_key(bit_length=KEY_BYTES * 8)
        nonce = os.urandom(_NONCE_BYTES)
        ciphertext = AESGCM(data_key).encrypt(nonce, value.encode(), reference.encode())
        return self._wrap(data_key, nonce, ciphertext)

    def open(self, reference: str, envelope: bytes) -> str:
        """Decrypt.

        Raises:
            InternalError: secret-unreadable, the envelope was made for another reference, by an unknown
                key, or is damaged.
        """
        return self._unwrap(reference, envelope)[2].decode()

    def rewrap(self, reference: str, envelope: bytes) -> bytes:
        """The envelope under the primary key. The ciphertext stays, as its key is of this value only.

        Args:
            reference: of the value.
            envelope: under any key of the ring.

        Raises:
            InternalError: secret-unreadable, as ``open``.
        """
        data_key, parsed, _ = self._unwrap(reference, envelope)
        return self._wrap(data_key, parsed.nonce, parsed.ciphertext)

    def _wrap(self, data_key: bytes, nonce: bytes, ciphertext: bytes) -> bytes:
        primary = self.ring.primary
        wrapped = aes_key_wrap(self.ring.keys[primary], data_key)
        return msgspec.msgpack.encode(_Envelope(1, primary, wrapped, nonce, ciphertext))

    def _unwrap(self, reference: str, envelope: bytes) -> tuple[bytes, _Envelope, bytes]:
        """The value's key, the envelope's parts, and the value."""
        try:
            parsed = msgspec.msgpack.decode(envelope, type=_Envelope)
            data_key = aes_key_unwrap(self.ring.keys[parsed.key_id], parsed.wrapped)
            plain = AESGCM(data_key).decrypt(parsed.nonce, parsed.ciphertext, reference.encode())
        except (InvalidTag, InvalidUnwrap, KeyError, ValueError, msgspec.MsgspecError) as error:
            raise InternalError(
                "secret-unreadable",
                f"The secret {reference} cannot be opened: "
                "it was sealed with a key this server does not have, or it has been changed.",
                hint="Check that the key file belongs to this catalog, or set the secret again.",
            ) from error
        return data_key, parsed, plain


class KeyFileBox:
    """A box with the keys of a file, which is read again when it changes (``ports.SecretBox``).

    So keys are added and removed while servers run.
    """

    def __init__(self, path: Path) -> None:
        """Read the keys.

        Raises:
            StackError: part-failed, the file cannot be used.
        """
        self._path, self._lock = path, threading.Lock()
        self._seen = _signature(path)
        self._box = KeyRingBox(read_key_ring(path))

    def seal(self, reference: str, value: str) -> bytes:
        """Encrypt for this reference only."""
        return self.present.seal(reference, value)

    def open(self, reference: str, envelope: bytes) -> str:
        """Decrypt; InternalError secret-unreadable, as ``KeyRingBox.open``."""
        return self.present.open(reference, envelope)

    @property
    def present(self) -> KeyRingBox:
        """The box with the keys that the file holds now; those read before if it cannot be used."""
        seen = _signature(self._path)
        with self._lock:
            if seen != self._seen:
                self._seen = seen
                try:
                    self._box = KeyRingBox(read_key_ring(self._path))
                except StackError as error:
                    _LOG.error("%s The keys that were read before stay in use.", error.detail)
                else:
                    _LOG.info("the key file has changed: %s", self._box.ring)
            return self._box


def open_secret_box(path: Path) -> KeyFileBox:
    """The box whose keys lie in a file, which is made (mode 0600) if it is not there.

    Raises:
        StackError: part-failed, the file is readable by others or is no key file.
    """
    create_key_file(path)
    return KeyFileBox(path)


def key_of(envelope: bytes) -> str | None:
    """Id of the master key that an envelope is wrapped under; None if it is no envelope."""
    try:
        return msgspec.msgpack.decode(envelope, type=_Envelope).key_id
    except msgspec.MsgspecError:
        return None


def _signature(path: Path) -> tuple[int, ...]:
    """Changes with the file, also where a mounted Secret exchanges the link to it."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size

"""Values of secret stores outside the catalog: read when they are needed, kept in memory for a short time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from leatstream.errors import RequestError, SecretStoreError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.ports import SecretProvider

SETTING = "LEATSTREAM_OUTSIDE_SECRETS"
_QUIET_SECONDS = 3.0  # a provider that does not answer is left alone so long: all callers would wait
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Look:
    """The last look-up of a reference by this server.

    Attributes:
        at: when the value was last read; None = never.
        error: why the last try failed; None = it did not.
    """

    at: datetime | None = None
    error: str | None = None


class OutsideSecrets:
    """The providers that the operator has turned on, and what was read from them."""

    def __init__(self, providers: Mapping[str, SecretProvider] | None = None, seconds: float = 30.0) -> None:
        """Read nothing yet.

        Args:
            providers: by the word for them in references; those that are missing are off.
            seconds: how long a value counts after it was read.
        """
        self._providers, self._seconds = dict(providers or {}), seconds
        self._values: dict[str, tuple[str, float]] = {}
        self._looks: dict[str, Look] = {}
        self._quiet: dict[str, tuple[float, SecretStoreError]] = {}
        self._lock = threading.Lock()

    def permitted(self, text: str, pointer: str | None = None) -> OutsideReference:
        """The reference that a text is, if the operator permits it; no I/O.

        Args:
            text: as the user wrote it.
            pointer: of the text in the request.

        Raises:
            RequestError: validation.
        """
        try:
            reference = OutsideReference.read(text)
        except ValueError as error:
            raise RequestError("validation", str(error), pointer=pointer) from None
        why = self._refusal(reference)
        if why is not None:
            hint = f"An operator permits it in {SETTING} of the server."
            raise RequestError("validation", why, pointer=pointer, hint=hint)
        return reference

    def value(self, text: str, *, fresh: bool = False) -> str:
        """The value; what was read lately counts, unless it must be fresh.

        Args:
            text: the reference.
            fresh: whether the secret store is asked in any case.

        Raises:
            SecretStoreError: there is none.
        """
        with self._lock:
            value, read = self._values.get(text, ("", float("-inf")))
        if not fresh and time.monotonic() - read < self._seconds:
            return value
        try:
            value = self._read(OutsideReference.read(text))
        except SecretStoreError as error:
            self._note(text, None, error.detail)
            raise
        self._note(text, value, None)
        return value

    def known(self, text: str) -> str | None:
        """The value that was read last, or None; no I/O, so that it may be asked in a transaction."""
        with self._lock:
            found = self._values.get(text)
        return None if found is None else found[0]

    def look(self, text: str | None) -> Look:
        """Its last look-up by this server."""
        with self._lock:
            return self._looks.get(text or "", Look())

    def _read(self, reference: OutsideReference) -> str:
        why = self._refusal(reference)
        if why is not None:
            # The operator may have narrowed the setting since the reference was stored.
            hint = f"An operator permits it in {SETTING} of the server."
            raise SecretStoreError("secret-store-refused", why, hint=hint)
        with self._lock:
            until, error = self._quiet.get(reference.provider, (0.0, None))
        if error is not None and time.monotonic() < until:
            raise SecretStoreError(error.code, error.detail, hint=error.faults[0].hint)
        try:
            return self._providers[reference.provider].read(reference)
        except SecretStoreError as error:
            if error.retryable:
                with self._lock:
                    self._quiet[reference.provider] = time.monotonic() + _QUIET_SECONDS, error
            raise

    def _refusal(self, reference: OutsideReference) -> str | None:
        provider = self._providers.get(reference.provider)
        if provider is None:
            return f"References to {reference.provider} are off."
        return provider.permits(reference)

    def _note(self, text: str, value: str | None, error: str | None) -> None:
        with self._lock:
            if len(self._looks) >= _MOST:
                self._looks.clear()
                self._values.clear()
            before = self._looks.get(text, Look())
            if value is None:
                self._values.pop(text, None)
                self._looks[text] = Look(before.at, error)
            else:
                self._values[text] = value, time.monotonic()
                self._looks[text] = Look(datetime.now(UTC), None)

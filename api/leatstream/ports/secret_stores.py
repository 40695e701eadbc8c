"""Secret stores outside the catalog, to which secrets refer."""

from __future__ import annotations

from typing import Protocol

from leatstream.model.outside_secrets import OutsideReference


class SecretProvider(Protocol):
    """One kind of secret store, as the operator has set it up."""

    def permits(self, reference: OutsideReference) -> str | None:
        """None if the operator permits this reference, else the reason in a sentence; no I/O."""

    def read(self, reference: OutsideReference) -> str:
        """The value, within a few seconds.

        Raises:
            SecretStoreError: the store does not answer, refuses the server, or does not have the value.
        """

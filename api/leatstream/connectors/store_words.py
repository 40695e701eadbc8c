"""What ``CREATE STORE`` and ``UPDATE STORE`` say of a kind beyond one property for one setting.

The marks of a settings model (``settings.Sql``) are enough where each property holds one setting. A kind adds
a subclass of ``StoreWords`` where a property holds several, such as the ``uris`` of a database, or where one
switches others off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from leatstream.errors import Faults

Settings = dict[str, Any]
# Properties of the reference product that no kind takes, and (``NO_CHOICE``) none whose users give addresses.
NOWHERE = {
    "properties.file": "write the properties into the statement",
    "availability_zone": "leave it out: stores are reached directly",
}
NO_CHOICE = NOWHERE | {
    "access_region": "leave it out: stores are reached directly",
    "tls.cipher_suites": "the client's own choice is used",
    "tls.protocols": "the client's own choice is used",
}


class WithList(Protocol):
    """The WITH list of a statement, while it is read; faults gather in it.

    Attributes:
        given: property in lower case to its value; where it stands in the text is part of it.
        faults: all that is wrong.
    """

    given: dict[str, Any]
    faults: Faults

    def raw(self, key: str) -> Any:
        """The value as written, None where there is none."""

    def text(self, key: str) -> str | None:
        """The value as a text that is not empty; another one is a fault."""

    def flag(self, key: str, default: bool) -> bool:
        """The value as TRUE or FALSE; another one is a fault."""

    def wrong(self, key: str, detail: str, hint: str | None = None) -> None:
        """Note a fault of a property's value. Never quote the value: it may be a secret."""

    def where(self, key: str) -> dict[str, Any]:
        """Where a property's value stands, as keywords for ``faults.add``."""


@dataclass(frozen=True)
class StoreWords:
    """A kind's words in ``CREATE STORE … WITH``.

    Attributes:
        types: what ``'type'`` may be, in lower case.
        title: the kind in messages, such as ``a Kafka store``.
        more: further properties, which ``finish`` reads.
        unsupported: properties of the reference product that are refused, each with what to do instead.
    """

    types: tuple[str, ...]
    title: str
    more: tuple[str, ...] = ()
    unsupported: Mapping[str, str] = field(default_factory=dict)

    def finish(self, given: WithList, found: Settings) -> Settings:
        """Complete the settings that were read property by property.

        Args:
            given: the list; takes what is wrong.
            found: the settings so far, shaped as in REST.
        """
        return found

    def spelled(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Properties that say what ``finish`` reads, of a store that is being updated."""
        return {}

    def written(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Properties that say what ``finish`` reads, for a ``CREATE STORE`` that makes the same store again.

        Unlike those of an update, they leave nothing to what is stored.
        """
        return self.spelled(config)

    def unused(self, config: Mapping[str, Any], stored: Collection[str]) -> Collection[str]:
        """Secrets that a store of these settings does not use; ``CREATE STORE`` cannot say both.

        Args:
            config: the settings without secrets.
            stored: dotted paths of the store's secrets.
        """
        return ()

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """Remove from ``kept`` the store's properties that an update's own ones contradict.

        Args:
            given: the update's list.
            kept: the store's properties that the update does not name.
            present: the store's settings.
        """

    def settle(self, config: Settings, present: Mapping[str, Any], given: WithList) -> Settings:
        """Complete the settings after an update; ``given`` is the update's own list."""
        return config

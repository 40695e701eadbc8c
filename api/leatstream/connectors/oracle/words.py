"""WITH of an Oracle store: ``uris`` is ``host:1521/service``, with or without a scheme."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from leatstream.connectors.setting_values import host_and_port
from leatstream.connectors.store_words import Settings, StoreWords, WithList

_CA, _OFF = "tls.ca_cert_file", "tls.disabled"
_SCHEMES = {"oracle": False, "tcp": False, "tcps": True}
_JDBC = "jdbc:oracle:thin:@"
_SHAPE = "'uris' of an Oracle store is one address: 'db.example.com:1521/service'."
_SERVICE = re.compile(r"[A-Za-z0-9_$#.-]+\Z")


class OracleWords(StoreWords):
    """An Oracle store's words."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """Address and encryption."""
        config = found | _address(given)
        if _OFF in given.given:
            off = given.flag(_OFF, False)
            if off and config.get("tls"):
                given.wrong(_OFF, f"{_OFF!r} = TRUE contradicts tcps:// of 'uris'.")
            config["tls"] = not off
        if config.get("ca_certificate") is not None and not config.get("tls"):
            given.wrong(
                _CA, f"{_CA!r} has no meaning without TLS.", "Write 'uris' = 'tcps://host:2484/service'."
            )
        return {key: value for key, value in config.items() if value is not None}

    def spelled(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The address."""
        scheme = "tcps" if config.get("tls") else "tcp"
        address = host_and_port(config["host"], config.get("port", 1521))
        return {"uris": f"{scheme}://{address}/{config['service']}"}

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """An update that switches TLS off, or on, says so against the present address.

        Args:
            given: the update's list.
            kept: the store's properties that the update does not name.
            present: the store's settings.
        """
        if _OFF in given.given and "uris" in kept:
            bare = str(kept["uris"]).partition("://")[2]
            kept["uris"] = f"tcp://{bare}"
        plain = "uris" in given.given and not str(given.raw("uris")).startswith("tcps:")
        if plain or given.flag(_OFF, False):
            kept.pop(_CA, None)


def _address(given: WithList) -> Settings:
    text = given.text("uris")
    if text is None:
        if "uris" not in given.given:
            hint = "Write 'uris' = 'db.example.com:1521/service'."
            given.faults.add("invalid-property", "An Oracle store needs 'uris'.", hint=hint)
        return {}
    text = text.strip().removeprefix(_JDBC)
    if "://" not in text:
        text = f"oracle://{text.removeprefix('//')}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        given.wrong("uris", _SHAPE)
        return {}
    service = parts.path.removeprefix("/")
    if parts.username is not None or parts.password is not None:
        # An address is shown to everybody who may see the store.
        hint = "Write 'oracle.username' and 'oracle.password'."
        given.wrong("uris", "'uris' holds no user and no password.", hint)
        return {}
    if parts.scheme not in _SCHEMES or not host or not _SERVICE.match(service) or parts.query:
        given.wrong("uris", _SHAPE, "It names a service, not a SID. For TLS write tcps:// before it.")
        return {}
    tls = _SCHEMES[parts.scheme]
    return {"host": host, "port": port or (2484 if tls else 1521), "service": service, "tls": tls}

"""WITH of a ClickHouse store: ``uris`` is the address of the HTTP interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from leatstream.connectors.clickhouse.settings import HTTP_PORT, HTTPS_PORT
from leatstream.connectors.setting_values import host_and_port
from leatstream.connectors.store_words import Settings, StoreWords, WithList

_CA, _VERIFY, _OFF = "tls.ca_cert_file", "tls.verify_server_hostname", "tls.disabled"
_SHAPE = "'uris' of a ClickHouse store is one address: 'https://host:8443' or 'http://host:8123'."
_JDBC = ("jdbc:clickhouse:", "jdbc:ch:")


class ClickHouseWords(StoreWords):
    """A ClickHouse store's words."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """Address, database and encryption."""
        address = _address(given)
        off = given.flag(_OFF, False)
        encrypted = address.pop("encrypted", None)
        if off and encrypted:
            given.wrong(
                _OFF,
                f"{_OFF!r} contradicts 'uris', which begins with https.",
                "Leave it out, or begin with http.",
            )
        if not given.flag(_VERIFY, True):
            hint = f"Give the authority of the server's certificate as {_CA!r}."
            given.wrong(_VERIFY, "The certificate of a ClickHouse server is always checked.", hint)
        secure = not off if encrypted is None else encrypted
        if not secure and found.get("ca_certificate") is not None:
            given.wrong(_CA, f"{_CA!r} has no meaning without encryption.")
            found.pop("ca_certificate")
        if "host" in address:
            address.setdefault("port", HTTPS_PORT if secure else HTTP_PORT)
        return {
            key: value for key, value in (found | address | {"secure": secure}).items() if value is not None
        }

    def spelled(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The address."""
        secure = config.get("secure", True)
        port = config.get("port") or (HTTPS_PORT if secure else HTTP_PORT)
        database = quote(config.get("database") or "", safe="")
        scheme = "https" if secure else "http"
        return {
            "uris": f"{scheme}://{host_and_port(config['host'], port)}{'/' + database if database else ''}"
        }

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """An update that switches encryption off, or on, changes the address's scheme too."""
        if _OFF in given.given and "uris" in kept:
            scheme, _, rest = str(kept["uris"]).partition("://")
            kept["uris"] = f"{'http' if given.flag(_OFF, False) else 'https'}://{rest}" if scheme else rest
        uri = str(given.raw("uris") if "uris" in given.given else kept.get("uris", ""))
        if given.flag(_OFF, False) or uri.startswith("http:"):
            kept.pop(_CA, None)


def _address(given: WithList) -> Settings:
    text = given.text("uris")
    if text is None:
        if "uris" not in given.given:
            hint = "Write 'uris' = 'https://host:8443'."
            given.faults.add("invalid-property", "A ClickHouse store needs 'uris'.", hint=hint)
        return {}
    text = text.strip()
    bare = next((text[len(one) :] for one in _JDBC if text.startswith(one)), text)
    bare = f"jdbc:{bare}" if bare.startswith("//") else bare
    try:
        parts = urlsplit(bare)
        host, port = parts.hostname, parts.port
    except ValueError:
        given.wrong("uris", _SHAPE)
        return {}
    path = parts.path.strip("/")
    database = unquote(path)
    if parts.scheme not in ("http", "https", "jdbc") or not host or "/" in path:
        given.wrong("uris", _SHAPE)
        return {}
    if parts.username is not None or parts.password is not None:
        # An address is shown to everybody who may see the store.
        hint = "Write 'clickhouse.username' and 'clickhouse.password'."
        given.wrong("uris", "'uris' holds no user and no password.", hint)
        return {}
    if parts.query or parts.fragment:
        hint = "Available: 'clickhouse.username', 'clickhouse.password' and tls.…"
        given.wrong("uris", "'uris' of a ClickHouse store has no parameters.", hint)
        return {}
    found: Settings = {"host": host, "database": database or None}
    if port is not None:
        found["port"] = port
    if parts.scheme != "jdbc":
        found["encrypted"] = parts.scheme == "https"
    return found

"""WITH of a PostgreSQL store: ``uris`` is an address as libpq writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from leatstream.connectors.setting_values import host_and_port
from leatstream.connectors.store_words import Settings, StoreWords, WithList

_USER, _PASSWORD = "postgres.username", "postgres.password"
_CA, _VERIFY, _OFF = "tls.ca_cert_file", "tls.verify_server_hostname", "tls.disabled"
_SCHEMES = ("postgresql", "postgres")
_MODES = {
    "disable": "disable",
    "prefer": "prefer",
    "require": "require",
    "verify-ca": "verify_ca",
    "verify-full": "verify_full",
}


class PostgresWords(StoreWords):
    """A PostgreSQL store's words."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """Address and encryption."""
        address = _address(given)
        config = (
            found | address | _encryption(given, found.pop("ca_certificate", None), address.get("ssl_mode"))
        )
        return {key: value for key, value in config.items() if value is not None}

    def spelled(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The address."""
        database = quote(config["database"], safe="")
        address = host_and_port(config["host"], config.get("port", 5432))
        return {"uris": f"postgresql://{address}/{database}"}

    def written(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The address with how to encrypt: without it SQL checks the server's name, and REST does not."""
        mode = str(config.get("ssl_mode", "prefer")).replace("_", "-")
        name = config.get("application_name")
        more = f"&application_name={quote(name, safe='')}" if name is not None else ""
        return {"uris": f"{self.spelled(config)['uris']}?sslmode={mode}{more}"}

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """The authority stays where only the check of host names changes; ``settle`` keeps the rest."""
        if _VERIFY not in given.given or given.flag(_OFF, False):
            kept.pop(_CA, None)

    def settle(self, config: Settings, present: Mapping[str, Any], given: WithList) -> Settings:
        """How to encrypt stays where the update says nothing of it."""
        own_mode = "uris" in given.given and "sslmode=" in str(given.raw("uris"))
        if not own_mode and not {_OFF, _VERIFY, _CA} & given.given.keys():
            config.pop("ssl_mode", None)
            config |= {k: present[k] for k in ("ssl_mode", "ca_certificate") if k in present}
        if "application_name" in present:
            config.setdefault("application_name", present["application_name"])
        return config


def _address(given: WithList) -> Settings:
    text = given.text("uris")
    if text is None:
        if "uris" not in given.given:
            hint = "Write 'uris' = 'postgresql://host:5432/database'."
            given.faults.add("invalid-property", "A PostgreSQL store needs 'uris'.", hint=hint)
        return {}
    shape = "'uris' of a PostgreSQL store is one address: 'postgresql://host:5432/database'."
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        given.wrong("uris", shape)
        return {}
    database = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in _SCHEMES or not host or not database or "/" in database:
        given.wrong("uris", shape)
        return {}
    if parts.username is not None or parts.password is not None:
        # An address is shown to everybody who may see the store.
        given.wrong("uris", "'uris' holds no user and no password.", f"Write {_USER!r} and {_PASSWORD!r}.")
        return {}
    return {"host": host, "port": port or 5432, "database": database} | _parameters(given, parts.query)


def _parameters(given: WithList, query: str) -> dict[str, str]:
    """What may follow the address; libpq knows more, such as files and commands of the account."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "sslmode" and value in _MODES:
            found["ssl_mode"] = _MODES[value]
        elif name == "sslmode":
            given.wrong("uris", f"The parameter sslmode is one of {', '.join(_MODES)}.")
        elif name == "application_name":
            found[name] = value
        else:
            shown = re.sub(r"[^a-z_]", "?", name)[:40]
            detail = f"'uris' has the parameter {shown!r}, which is not allowed."
            given.wrong("uris", detail, "Available: sslmode and application_name.")
    return found


def _encryption(given: WithList, authority: str | None, of_address: str | None) -> Settings:
    """How to encrypt. It is on unless switched off, as in the reference product; ``sslmode`` says more."""
    if given.flag(_OFF, False):
        for key in (_CA, _VERIFY):
            if key in given.given:
                given.wrong(key, f"{key!r} has no meaning with {_OFF!r} = TRUE.")
        return {"ssl_mode": "disable", "ca_certificate": None}
    if of_address is not None and _VERIFY not in given.given:
        return {"ssl_mode": of_address, "ca_certificate": authority}
    checked = given.flag(_VERIFY, True)
    unchecked = "verify_ca" if authority else "require"
    return {"ssl_mode": "verify_full" if checked else unchecked, "ca_certificate": authority}

"""WITH of a PostgreSQL store: the words of the reference product to the typed settings of REST."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from leatstream.model.registered import SecretName
from leatstream.sql.property_values import PropertyReader

USER, PASSWORD = "postgres.username", "postgres.password"
_CA, _VERIFY, _OFF = "tls.ca_cert_file", "tls.verify_server_hostname", "tls.disabled"
_KNOWN = ("type", "uris", "schema_registry.name", USER, PASSWORD, _OFF, _VERIFY, _CA)
_UNBUILT = {
    "properties.file": "write the properties into the statement",
    "access_region": "stores are reached directly",
    "availability_zone": "stores are reached directly",
    "tls.cipher_suites": "the client's own choice is used",
    "tls.protocols": "the client's own choice is used",
    "tls.client.cert_file": "users log in with a password",
    "tls.client.key_file": "users log in with a password",
}
_MODES = {
    "disable": "disable",
    "prefer": "prefer",
    "require": "require",
    "verify-ca": "verify_ca",
    "verify-full": "verify_full",
}
_PARAMETERS = ("sslmode", "application_name")


def read_postgres(reader: PropertyReader) -> dict[str, Any]:
    """Settings of ``postgres {…}``; faults are noted in the reader."""
    for key in reader.given:
        if key in _UNBUILT:
            reader.unbuilt(key, _UNBUILT[key])
        elif key not in _KNOWN:
            reader.unknown(key, _KNOWN)
    for key, example in (
        ("uris", "'uris' = 'postgresql://host:5432/database'"),
        (USER, f"{USER!r} = '…'"),
    ):
        if key not in reader.given:
            detail = f"A PostgreSQL store needs {key!r}."
            reader.faults.add("invalid-property", detail, hint=f"Write {example}.")
    config = {"username": reader.text(USER), "password": reader.secret(PASSWORD)}
    address = _address(reader)
    config |= address
    config |= _encryption(reader, address.get("ssl_mode"))
    return {key: value for key, value in config.items() if value is not None}


def read_postgres_update(
    reader: PropertyReader, present: Mapping[str, Any], named: Mapping[str, str]
) -> dict[str, Any]:
    """Settings after UPDATE STORE: what it does not name stays."""
    encryption = {_OFF, _VERIFY, _CA} & reader.given.keys()
    stays = PASSWORD not in reader.given
    own_mode = "uris" in reader.given and "sslmode=" in str(reader.raw("uris"))
    host = f"[{present['host']}]" if ":" in present["host"] else present["host"]
    address = f"postgresql://{host}:{present.get('port', 5432)}/{quote(present['database'], safe='')}"
    for key, value in (("uris", address), (USER, present["username"])):
        reader.given.setdefault(key, value)
    authority = present.get("ca_certificate")
    if _VERIFY in encryption and _CA not in encryption and authority and not reader.flag(_OFF, False):
        reader.given[_CA] = authority
    config = read_postgres(reader)
    reader.faults.raise_if_any()
    if not encryption and not own_mode:
        config |= {k: present[k] for k in ("ssl_mode", "ca_certificate") if k in present}
        if "ssl_mode" not in present:
            config.pop("ssl_mode")
    if "application_name" in present:
        config.setdefault("application_name", present["application_name"])
    if stays:
        config["password"] = SecretName(named["password"]) if "password" in named else None
    return config


def _address(reader: PropertyReader) -> dict[str, Any]:
    text = reader.text("uris")
    if text is None:
        return {}
    shape = "'uris' of a PostgreSQL store is one address: 'postgresql://host:5432/database'."
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        reader.wrong("uris", shape)
        return {}
    database = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in ("postgresql", "postgres") or not host or not database or "/" in database:
        reader.wrong("uris", shape)
        return {}
    if parts.username is not None or parts.password is not None:
        # An address is shown to everybody who may see the store.
        reader.wrong("uris", "'uris' holds no user and no password.", f"write {USER!r} and {PASSWORD!r}")
        return {}
    found: dict[str, Any] = {"host": host, "port": port or 5432, "database": database}
    return found | _parameters(reader, parts.query)


def _parameters(reader: PropertyReader, query: str) -> dict[str, str]:
    """What may stand behind the address; libpq knows more, such as files and commands of the account."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "sslmode" and value in _MODES:
            found["ssl_mode"] = _MODES[value]
        elif name == "sslmode":
            reader.wrong("uris", f"sslmode is {', '.join(_MODES)}.")
        elif name == "application_name":
            found[name] = value
        else:
            known = " and ".join(_PARAMETERS)
            detail = (
                f"'uris' has the parameter {re.sub(r'[^a-z_]', '?', name)[:40]!r}, which is not let through."
            )
            reader.wrong("uris", detail, f"there is {known}")
    return found


def _encryption(reader: PropertyReader, told: str | None) -> dict[str, str | None]:
    """How to encrypt. It is on unless switched off, as in the reference product; ``sslmode`` says more."""
    authority = reader.text(_CA)
    if authority is not None and "-----BEGIN" not in authority:
        hint = "Give the PEM text itself; the server reads no files."
        reader.wrong(_CA, f"{_CA!r} is not a PEM text.", hint)
    if reader.flag(_OFF, False):
        for key in (_CA, _VERIFY):
            if key in reader.given:
                reader.wrong(key, f"{key!r} has no meaning with {_OFF!r} = TRUE.")
        return {"ssl_mode": "disable", "ca_certificate": None}
    if told is not None and _VERIFY not in reader.given:
        return {"ssl_mode": told, "ca_certificate": authority}
    checked = reader.flag(_VERIFY, True)
    unchecked = "verify_ca" if authority else "require"
    return {"ssl_mode": "verify_full" if checked else unchecked, "ca_certificate": authority}

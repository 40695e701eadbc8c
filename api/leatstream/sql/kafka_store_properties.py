"""WITH of CREATE STORE and UPDATE STORE for a Kafka store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream.model.registered import SecretName
from leatstream.sql.property_values import PropertyReader

_HASH, _USER, _PASSWORD = "kafka.sasl.hash_function", "kafka.sasl.username", "kafka.sasl.password"
_MECHANISMS = {
    "plain": "plain",
    "sha256": "scram_sha_256",
    "sha512": "scram_sha_512",
    "oauthbearer": "oauthbearer",
    "aws_msk_iam": "aws_msk_iam",
}
_HASH_WORDS = {mechanism: word for word, mechanism in _MECHANISMS.items()}
# Property to the member of sasl.oauth; the secret and the extensions are read in ways of their own.
_OAUTH = {
    "kafka.sasl.oauth.token_url": "token_url",
    "kafka.sasl.oauth.client_id": "client_id",
    "kafka.sasl.oauth.client_secret": "client_secret",
    "kafka.sasl.oauth.scope": "scope",
    "kafka.sasl.oauth.extensions": "extensions",
    "kafka.sasl.oauth.ca_cert_file": "ca_certificate",
}
_CLIENT_SECRET, _EXTENSIONS = "kafka.sasl.oauth.client_secret", "kafka.sasl.oauth.extensions"
_OAUTH_CA = "kafka.sasl.oauth.ca_cert_file"
_AWS = {
    "kafka.msk.aws_region": "region",
    "kafka.msk.iam_role_arn": "role_arn",
    "kafka.msk.external_id": "external_id",
    "kafka.msk.access_key_id": "access_key_id",
    "kafka.msk.secret_access_key": "secret_access_key",
}
_AWS_SECRET = "kafka.msk.secret_access_key"  # noqa: S105 - a property's name
# Mechanisms with a description of their own: its name in sasl, its properties, and which of them it needs.
_DESCRIBED = {
    "oauthbearer": ("oauth", _OAUTH, tuple(_OAUTH)[:3]),
    "aws_msk_iam": ("aws", _AWS, ("kafka.msk.aws_region",)),
}
_LOGIN = (_USER, _PASSWORD, *_OAUTH, *_AWS)
_CA, _CERT, _KEY = "tls.ca_cert_file", "tls.client.cert_file", "tls.client.key_file"
_TLS = ("tls.disabled", "tls.verify_server_hostname", _CA, _CERT, _KEY)
_KAFKA = ("type", "uris", "schema_registry.name", _HASH, *_LOGIN, *_TLS)
_UNBUILT = {
    "properties.file": "write the properties into the statement",
    "access_region": "stores are reached directly",
    "availability_zone": "stores are reached directly",
    "tls.cipher_suites": "the client's own choice is used",
    "tls.protocols": "the client's own choice is used",
}
# Where a secret stands: property to its dotted path.
_SECRETS = {
    _PASSWORD: "sasl.password",
    _CLIENT_SECRET: "sasl.oauth.client_secret",
    _AWS_SECRET: "sasl.aws.secret_access_key",
    _KEY: "tls.client_key",
}


def read_kafka(reader: PropertyReader) -> dict[str, Any]:
    """The settings of a Kafka store, shaped as in REST; faults gather in the reader."""
    for key in reader.given:
        if key in _UNBUILT:
            reader.unbuilt(key, _UNBUILT[key])
        elif key not in _KAFKA:
            reader.unknown(key, _KAFKA)
    if "uris" not in reader.given:
        hint = "write 'uris' = 'host:9092,…'"
        reader.faults.add("invalid-property", "A Kafka store needs 'uris'.", hint=hint)
    uris = reader.text("uris") or ""
    servers = ",".join(part.strip().removeprefix("kafka://") for part in uris.split(",") if part.strip())
    sasl, tls = _sasl(reader), _tls(reader)
    protocol = ("sasl_" if sasl else "") + ("plaintext" if tls is None else "ssl")
    config: dict[str, Any] = {"bootstrap_servers": servers, "security_protocol": protocol}
    return config | ({"sasl": sasl} if sasl else {}) | ({"tls": tls} if tls else {})


def update_kafka(
    reader: PropertyReader, present: Mapping[str, Any], named: Mapping[str, str]
) -> dict[str, Any]:
    """The settings after the change: what is not named stays; a secret that stays is None, or its name.

    Raises:
        RequestError: invalid-property or unsupported, with every fault found.
    """
    kept = {k: v for k, v in _as_properties(present).items() if k not in reader.given}
    if _HASH in reader.given:
        mine = _of_mechanism(str(reader.raw(_HASH) or "").lower())
        kept = {k: v for k, v in kept.items() if k in mine or k not in _LOGIN}
    if reader.flag("tls.disabled", False):
        kept = {k: v for k, v in kept.items() if k not in (_CA, _CERT, _KEY)}
    if _CERT in reader.given:
        kept.pop(_KEY, None)  # another certificate has another key
    reader.given |= kept
    config = read_kafka(reader)
    reader.faults.raise_if_any()
    for key in _SECRETS.keys() & kept.keys():
        *parents, leaf = _SECRETS[key].split(".")
        place: Any = config
        for parent in parents:
            place = place.get(parent, {})
        if leaf in place:
            name = named.get(_SECRETS[key])
            place[leaf] = None if name is None else SecretName(name)
    return config


def _of_mechanism(word: str) -> tuple[str, ...]:
    """The login properties that go with a mechanism."""
    if word not in _MECHANISMS:
        return ()
    return tuple(_DESCRIBED[word][1]) if word in _DESCRIBED else (_USER, _PASSWORD)


def _as_properties(config: Mapping[str, Any]) -> dict[str, str | bool]:
    """Kafka settings in SQL's words; secrets, which are not among them, stand as ``kept``."""
    found: dict[str, str | bool] = {"uris": config["bootstrap_servers"]}
    sasl, tls = config.get("sasl"), config.get("tls")
    if sasl:
        found |= {_HASH: _HASH_WORDS[sasl["mechanism"]]} | _login_as_properties(sasl)
    if not str(config.get("security_protocol", "plaintext")).endswith("ssl"):
        return found | {"tls.disabled": True}
    found["tls.verify_server_hostname"] = bool((tls or {}).get("verify_hostname", True))
    authority, certificate = ((tls or {}).get(name) for name in ("ca_certificate", "client_certificate"))
    found |= {_CERT: certificate, _KEY: "-----BEGIN kept"} if certificate else {}
    return found | ({_CA: authority} if authority else {})


def _login_as_properties(sasl: Mapping[str, Any]) -> dict[str, str | bool]:
    if sasl["mechanism"] not in _DESCRIBED:
        return {_USER: sasl["username"], _PASSWORD: "kept"}
    part, members, _ = _DESCRIBED[sasl["mechanism"]]
    told = {key: sasl[part][member] for key, member in members.items() if sasl[part].get(member)}
    if part == "aws":
        return told | ({_AWS_SECRET: "kept"} if "kafka.msk.access_key_id" in told else {})
    if _EXTENSIONS in told:
        told[_EXTENSIONS] = ",".join(f"{name}={value}" for name, value in told[_EXTENSIONS].items())
    return told | {_CLIENT_SECRET: "kept"}


def _sasl(reader: PropertyReader) -> dict[str, Any] | None:
    word = reader.choice(_HASH, ("none", *_MECHANISMS))
    mine = _of_mechanism(word or "")
    for key in _LOGIN:
        if key in reader.given and key not in mine and (word or _HASH not in reader.given):
            reader.wrong(key, f"{key!r} needs {_HASH!r} to be {_wanted(key)}.")
    if word in (None, "none"):
        return None
    described = _DESCRIBED.get(str(word))
    for key in described[2] if described else mine:
        if key not in reader.given:
            detail = f"{_HASH!r} = {str(word).upper()} needs {key!r}."
            reader.faults.add("invalid-property", detail, **reader.where(_HASH))
    settings: dict[str, Any] = {"mechanism": _MECHANISMS[str(word)]}
    if described is None:
        return settings | {"username": reader.text(_USER), "password": reader.secret(_PASSWORD)}
    part, members, _ = described
    found = {m: reader.secret(k) if k in _SECRETS else reader.text(k) for k, m in members.items()}
    return settings | {part: {member: v for member, v in _finished(reader, found).items() if v is not None}}


def _wanted(key: str) -> str:
    words = [word.upper() for word, (_, members, _) in _DESCRIBED.items() if key in members]
    return words[0] if words else "PLAIN, SHA256 or SHA512"


def _finished(reader: PropertyReader, found: dict[str, Any]) -> dict[str, Any]:
    """Settings of a described login with what is more than a text read; a half key is a fault."""
    if found.get("ca_certificate") and "-----BEGIN" not in found["ca_certificate"]:
        _no_pem(reader, _OAUTH_CA)
    if found.get("extensions"):
        pairs = [part.partition("=") for part in found["extensions"].split(",") if part.strip()]
        if not all(name.strip() and equals for name, equals, _ in pairs):
            reader.wrong(_EXTENSIONS, f"{_EXTENSIONS!r} is name=value, several joined by commas.")
        found["extensions"] = {name.strip(): value.strip() for name, _, value in pairs}
    for one, other in (("kafka.msk.access_key_id", _AWS_SECRET), (_AWS_SECRET, "kafka.msk.access_key_id")):
        if "region" in found and one in reader.given and other not in reader.given:
            reader.wrong(one, f"{one!r} needs {other!r}.")
    return found


def _tls(reader: PropertyReader) -> dict[str, Any] | None:
    """TLS settings; None if it is off. It is on unless switched off, as in the reference product."""
    if reader.flag("tls.disabled", False):
        for key in (_CA, _CERT, _KEY):
            if key in reader.given:
                reader.wrong(key, f"{key!r} has no meaning with 'tls.disabled' = TRUE.")
        return None
    verify = reader.flag("tls.verify_server_hostname", True)
    settings: dict[str, Any] = {"verify_hostname": verify}
    for key, member in ((_CA, "ca_certificate"), (_CERT, "client_certificate"), (_KEY, "client_key")):
        text = reader.secret(key) if key == _KEY else reader.text(key)
        if isinstance(text, str) and "-----BEGIN" not in text:
            _no_pem(reader, key)
        elif text is not None:
            settings[member] = text
    return settings


def _no_pem(reader: PropertyReader, key: str) -> None:
    reader.wrong(key, f"{key!r} is not a PEM text.", "give the PEM text itself; the server reads no files")

"""WITH of CREATE STORE and UPDATE STORE: SQL's keys to the typed settings that REST and Terraform use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leatstream.errors import RequestError
from leatstream.model.registered import SecretName
from leatstream.sql.postgres_properties import read_postgres, read_postgres_update
from leatstream.sql.property_values import Given, PropertyReader
from leatstream.sql.s3_store_properties import read_s3, update_s3

KINDS = {
    "kafka": "kafka",
    "confluent_kafka": "kafka",
    "msk": "kafka",
    "redpanda": "kafka",
    "kinesis": "kinesis",
    "s3": "s3",
    "snowflake": "snowflake",
    "databricks": "databricks",
    "postgresql": "postgres",
    "postgres": "postgres",
    "clickhouse": "clickhouse",
    "oracle": "oracle",
    "iceberg_glue": "iceberg_glue",
    "iceberg_rest": "iceberg_rest",
}
_HASHES = {"none": None, "plain": "plain", "sha256": "scram_sha_256", "sha512": "scram_sha_512"}
_HASH_WORDS = {mechanism: word for word, mechanism in _HASHES.items() if mechanism}
_MSK = "aws_msk_iam"
_HASH, _USER, _PASSWORD = "kafka.sasl.hash_function", "kafka.sasl.username", "kafka.sasl.password"
_CA, _CERT, _KEY = "tls.ca_cert_file", "tls.client.cert_file", "tls.client.key_file"
_TLS = ("tls.disabled", "tls.verify_server_hostname", _CA, _CERT, _KEY)
_REGISTRY = "schema_registry.name"
_KAFKA = ("type", "uris", _REGISTRY, _HASH, _USER, _PASSWORD, *_TLS)
_UNBUILT = {
    "properties.file": "write the properties into the statement",
    "access_region": "stores are reached directly",
    "availability_zone": "stores are reached directly",
    "tls.cipher_suites": "the client's own choice is used",
    "tls.protocols": "the client's own choice is used",
    "kafka.msk.iam_role_arn": "AWS_MSK_IAM is not built yet",
    "kafka.msk.aws_region": "AWS_MSK_IAM is not built yet",
}
_REGION, _ACCESS_REGION = "kinesis.region", "access_region"
_KEY_ID, _SECRET = "kinesis.access_key_id", "kinesis.secret_access_key"
_ROLE, _EXTERNAL = "kinesis.iam_role_arn", "kinesis.external_id"
_KINESIS = ("type", "uris", _REGISTRY, _REGION, _ACCESS_REGION, _KEY_ID, _SECRET, _ROLE, _EXTERNAL)
_KINESIS_UNBUILT = {
    "kinesis.account.id": "the credentials or the role tell the account",
    "properties.file": "write the properties into the statement",
    "availability_zone": "stores are reached directly",
    "tls.disabled": "the scheme of 'uris' tells it: http:// or https://",
}
_AWS_HOST = re.compile(r"https?://kinesis(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)/?\Z")
_REGION_WORD = re.compile(r"(?:AWS\s+)?([a-z]{2}(?:-[a-z]+)+-\d{1,2})\Z", re.I)


def read_store_properties(given: Given) -> tuple[str, dict[str, Any]]:
    """Read the WITH list of CREATE STORE.

    Returns:
        the store kind and its settings: for kinds that are built shaped as in REST (``bootstrap_servers``,
        ``sasl {mechanism, username, password}``, …; ``region``, …), for other kinds the properties as written
        without ``type``, so that the service can refuse the kind by name.

    Raises:
        RequestError: invalid-property or unsupported, with every fault found; values are never echoed.
    """
    reader = PropertyReader(given, "store")
    if "type" not in reader.given:
        reader.faults.add("invalid-property", "A store needs 'type'.", hint="write 'type' = KAFKA")
    word = reader.choice("type", tuple(KINDS))
    kind = KINDS[word] if word else None
    config: dict[str, Any] = {}
    if kind == "kafka":
        config = _kafka(reader)
    elif kind == "kinesis":
        config = _kinesis(reader)
    elif kind == "postgres":
        config = read_postgres(reader)
    elif kind == "s3":
        config = read_s3(reader)
    elif kind is not None:
        config = {key: reader.raw(key) for key in reader.given if key not in ("type", _REGISTRY)}
    reader.faults.raise_if_any()
    return kind or "", config


def read_store_registry(given: Given) -> str | None:
    """The schema registry that CREATE STORE or UPDATE STORE names.

    Raises:
        RequestError: invalid-property, it is no name.
    """
    reader = PropertyReader(given, "store")
    name = reader.name(_REGISTRY)
    reader.faults.raise_if_any()
    return name


def read_store_update(
    given: Given, kind: str, present: Mapping[str, Any], named: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Read the WITH list of UPDATE STORE: what it does not name stays.

    Args:
        given: the list.
        kind: of the store.
        present: its settings without secrets.
        named: dotted path to the secret that holds the value, where the store names one.

    Returns:
        the settings after the change; a secret that stays is there with the value None, or its name.

    Raises:
        RequestError: invalid-property or unsupported, with every fault found; values are never echoed.
    """
    if kind not in ("kafka", "kinesis", "postgres", "s3"):
        raise RequestError("unsupported", f"UPDATE STORE is not built for stores of kind {kind}.")
    reader = PropertyReader(given, "store")
    if "type" in reader.given:
        reader.wrong("type", "A store's 'type' cannot change.", "create another store")
        reader.given.pop("type")
    if kind == "kinesis":
        return _kinesis_update(reader, present, named or {})
    if kind == "postgres":
        return read_postgres_update(reader, present, named or {})
    if kind == "s3":
        return update_s3(reader, present, named or {})
    kept = {k: v for k, v in _as_properties(present).items() if k not in reader.given}
    if str(reader.raw(_HASH) or "").lower() == "none":
        kept = {k: v for k, v in kept.items() if k not in (_USER, _PASSWORD)}
    if reader.flag("tls.disabled", False):
        kept = {k: v for k, v in kept.items() if k not in (_CA, _CERT, _KEY)}
    if _CERT in reader.given:
        kept.pop(_KEY, None)  # another certificate has another key
    reader.given |= kept
    config = _kafka(reader)
    reader.faults.raise_if_any()
    if _PASSWORD in kept and "sasl" in config:
        config["sasl"]["password"] = _kept(named, "sasl.password")
    if _KEY in kept and "tls" in config:
        config["tls"]["client_key"] = _kept(named, "tls.client_key")
    return config


def _kept(named: Mapping[str, str] | None, path: str) -> SecretName | None:
    name = (named or {}).get(path)
    return None if name is None else SecretName(name)


def _kinesis_update(
    reader: PropertyReader, present: Mapping[str, Any], named: Mapping[str, str]
) -> dict[str, Any]:
    words = {
        "uris": "endpoint_url",
        _REGION: "region",
        _KEY_ID: "access_key_id",
        _ROLE: "role_arn",
        _EXTERNAL: "external_id",
    }
    kept = {k: present[v] for k, v in words.items() if k not in reader.given and present.get(v) is not None}
    if {"uris", _REGION, _ACCESS_REGION} & reader.given.keys():
        kept.pop(_REGION, None)  # an address may tell the region, and the old one would contradict it
        if "uris" not in reader.given and _AWS_HOST.match(str(present.get("endpoint_url") or "")):
            kept.pop("uris", None)
    secret_stays = _KEY_ID in kept and _SECRET not in reader.given
    if secret_stays:
        kept[_SECRET] = "kept"
    own_address = "uris" in reader.given and not _AWS_HOST.match(str(reader.raw("uris")))
    if own_address and not {_REGION, _ACCESS_REGION} & reader.given.keys():
        kept[_REGION] = present["region"]
    reader.given |= kept
    config = _kinesis(reader)
    reader.faults.raise_if_any()
    if secret_stays:
        config["secret_access_key"] = _kept(named, "secret_access_key")
    return config


def _as_properties(config: Mapping[str, Any]) -> dict[str, str | bool]:
    """Kafka settings in SQL's words; secrets, which are not among them, stand as ``kept``."""
    found: dict[str, str | bool] = {"uris": config["bootstrap_servers"]}
    sasl, tls = config.get("sasl"), config.get("tls")
    if sasl:
        found |= {_HASH: _HASH_WORDS[sasl["mechanism"]], _USER: sasl["username"], _PASSWORD: "kept"}
    if not str(config.get("security_protocol", "plaintext")).endswith("ssl"):
        return found | {"tls.disabled": True}
    found["tls.verify_server_hostname"] = bool((tls or {}).get("verify_hostname", True))
    authority, certificate = ((tls or {}).get(name) for name in ("ca_certificate", "client_certificate"))
    found |= {_CERT: certificate, _KEY: "-----BEGIN kept"} if certificate else {}
    return found | ({_CA: authority} if authority else {})


def _kafka(reader: PropertyReader) -> dict[str, Any]:
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


def _sasl(reader: PropertyReader) -> dict[str, Any] | None:
    word = reader.choice(_HASH, ("none", "plain", "sha256", "sha512", _MSK))
    if word == _MSK:
        detail = f"{_HASH!r} = AWS_MSK_IAM is not supported."
        hint = "there is NONE, PLAIN, SHA256, SHA512"
        reader.faults.add("unsupported", detail, hint=hint, **reader.where(_HASH))
        return None
    if word in (None, "none"):
        for key in (_USER, _PASSWORD):
            if key in reader.given and (word == "none" or _HASH not in reader.given):
                reader.wrong(key, f"{key!r} needs {_HASH!r} to be PLAIN, SHA256 or SHA512.")
        return None
    for key in (_USER, _PASSWORD):
        if key not in reader.given:
            detail = f"{_HASH!r} = {str(word).upper()} needs {key!r}."
            reader.faults.add("invalid-property", detail, **reader.where(_HASH))
    username, password = reader.text(_USER), reader.secret(_PASSWORD)
    return {"mechanism": _HASHES[str(word)], "username": username, "password": password}


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
            reader.wrong(
                key, f"{key!r} is not a PEM text.", "give the PEM text itself; the server reads no files"
            )
        elif text is not None:
            settings[member] = text
    return settings


def _kinesis(reader: PropertyReader) -> dict[str, Any]:
    for key in reader.given:
        if key in _KINESIS_UNBUILT:
            reader.unbuilt(key, _KINESIS_UNBUILT[key])
        elif key not in _KINESIS:
            reader.unknown(key, _KINESIS)
    uri = reader.text("uris")
    host = _AWS_HOST.match(uri) if uri else None
    if uri and not uri.startswith(("http://", "https://")):
        reader.wrong("uris", "'uris' of a Kinesis store is one address with http:// or https://.")
    region = _region(reader, host[1] if host else None)
    for key, other in ((_KEY_ID, _SECRET), (_SECRET, _KEY_ID)):
        if key in reader.given and other not in reader.given:
            reader.wrong(key, f"{key!r} needs {other!r}.")
    if _EXTERNAL in reader.given and _ROLE not in reader.given:
        reader.wrong(_EXTERNAL, f"{_EXTERNAL!r} needs {_ROLE!r}.")
    config: dict[str, Any] = {
        "region": region,
        # The region's own address is what the client takes anyway.
        "endpoint_url": None if host else uri,
        "access_key_id": reader.text(_KEY_ID),
        "secret_access_key": reader.secret(_SECRET),
        "role_arn": reader.text(_ROLE),
        "external_id": reader.text(_EXTERNAL),
    }
    return {key: value for key, value in config.items() if value is not None}


def _region(reader: PropertyReader, of_host: str | None) -> str | None:
    """The region by name, or by the address in ``uris``; they must not contradict each other."""
    key = _REGION if _REGION in reader.given else _ACCESS_REGION
    text = reader.text(key)
    if text is None:
        if of_host is None and key not in reader.given:
            hint = f"write {_REGION!r} = 'eu-west-1', or 'uris' = 'https://kinesis.eu-west-1.amazonaws.com'"
            reader.faults.add("invalid-property", "A Kinesis store needs its AWS region.", hint=hint)
        return of_host
    word = _REGION_WORD.match(text)
    if word is None:
        reader.wrong(key, f"{key!r} is an AWS region such as 'eu-west-1'.")
        return None
    region = word[1].lower()
    if of_host is not None and region != of_host:
        reader.wrong(key, f"{key!r} is another region than the one in 'uris'.")
    return region

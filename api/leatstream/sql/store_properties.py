"""WITH of CREATE STORE and UPDATE STORE: SQL's keys to the typed settings that REST and Terraform use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leatstream.errors import RequestError
from leatstream.model.registered import SecretName
from leatstream.sql.kafka_store_properties import read_kafka, update_kafka
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
_REGISTRY = "schema_registry.name"
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
        config = read_kafka(reader)
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
    return update_kafka(reader, present, named or {})


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

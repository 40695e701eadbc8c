"""The store kinds: one line each, and the names of those to come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.connectors.capabilities import Capabilities
from leatstream.errors import RequestError

KINDS = [
    "leatstream.connectors.clickhouse.connector:ClickHouseConnector",
    "leatstream.connectors.databricks.connector:DatabricksConnector",
    "leatstream.connectors.iceberg.connector:IcebergGlueConnector",
    "leatstream.connectors.iceberg.connector:IcebergRestConnector",
    "leatstream.connectors.kafka.connector:KafkaConnector",
    "leatstream.connectors.kinesis.connector:KinesisConnector",
    "leatstream.connectors.oracle.connector:OracleConnector",
    "leatstream.connectors.postgres.connector:PostgresConnector",
    "leatstream.connectors.s3.connector:S3Connector",
    "leatstream.connectors.snowflake.connector:SnowflakeConnector",
]
"""The connector class of each kind that can be used."""
PLANNED: dict[str, tuple[str, ...]] = {}
"""Kinds that are refused by name until their connectors are built, with their families of properties."""


@cache
def connector_classes() -> Mapping[str, type[Connector]]:
    """Kind to connector class, for every kind that can be used."""
    found: dict[str, type[Connector]] = {}
    for place in KINDS:
        module, _, name = place.partition(":")
        connector = getattr(import_module(module), name)
        found[connector.kind] = connector
    return found


def capabilities_of(kind: str) -> Capabilities:
    """What a kind can be used for; nothing for one that is not built."""
    found = connector_classes().get(kind)
    return found.capabilities if found is not None else Capabilities()


def kinds_that(can: str) -> str:
    """The kinds with a capability, for messages: ``kafka``, or ``kafka, kinesis or s3``."""
    kinds = [k for k, found in connector_classes().items() if getattr(found.capabilities, can)]
    return " or ".join([", ".join(kinds[:-1]), *kinds[-1:]] if len(kinds) > 1 else kinds)


def kinds_without(can: str, kinds: Iterable[str]) -> list[str]:
    """Those of some kinds that lack a capability, sorted, each once."""
    return sorted({kind for kind in kinds if not getattr(capabilities_of(kind), can)})


@cache
def property_families() -> tuple[str, ...]:
    """What the properties of relations begin with that only some kinds of store have."""
    built = (family for found in connector_classes().values() for family in found.property_families)
    return tuple(dict.fromkeys((*built, *(family for families in PLANNED.values() for family in families))))


@cache
def table_words() -> frozenset[str]:
    """Properties of relations that name a table, of every kind, without those that only repeat the store."""
    found = connector_classes().values()
    return frozenset(key for kind in found for key in kind.table_names if key not in kind.store_names)


@cache
def relation_words() -> frozenset[str]:
    """Properties that only relations in some kind of store have."""
    return frozenset(
        key for found in connector_classes().values() for key in (*found.table_names, *found.option_names)
    )


def open_connector(
    kind: str, name: str, config: Mapping[str, Any], secrets: Mapping[str, str] | None = None
) -> Connector:
    """Make the connector of one store.

    Args:
        kind: store kind, such as ``kafka``.
        name: the store's name, for messages.
        config: settings without secrets, as the catalog and the JobSpec hold them.
        secrets: field path (``sasl.password``) to value.

    Raises:
        RequestError: unsupported, for a kind that has no connector yet.
        pydantic.ValidationError: the settings are wrong; its text holds no input.
    """
    found = connector_classes().get(kind)
    if found is None:
        known = ", ".join(sorted(connector_classes()))
        raise RequestError("unsupported", f"Stores of kind {kind} cannot be used yet; usable: {known}.")
    return found(name, found.Config.model_validate(with_secrets(config, secrets or {})))


def with_secrets(config: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """The settings with secret values at their dotted paths; ``config`` itself stays as it is."""
    merged = _deep_copy(config)
    for path, value in secrets.items():
        *parents, leaf = path.split(".")
        place = merged
        for part in parents:
            place = place.setdefault(part, {})
        place[leaf] = value
    return merged


def _deep_copy(config: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _deep_copy(v) if isinstance(v, Mapping) else v for k, v in config.items()}

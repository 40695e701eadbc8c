"""The store kinds that can be used, each with its connector class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.errors import RequestError

PLANNED = ("clickhouse", "databricks", "iceberg_glue", "iceberg_rest", "oracle", "snowflake")
"""Kinds whose names are taken; a store of one of them is refused by name until its connector is built."""


def connector_classes() -> dict[str, type[Connector]]:
    """Kind to connector class, for every kind that can be used."""
    from leatstream.connectors.kafka.connector import KafkaConnector
    from leatstream.connectors.kinesis.connector import KinesisConnector
    from leatstream.connectors.postgres.connector import PostgresConnector
    from leatstream.connectors.s3.connector import S3Connector

    classes: tuple[type[Connector], ...] = (KafkaConnector, KinesisConnector, PostgresConnector, S3Connector)
    return {c.kind: c for c in classes}


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

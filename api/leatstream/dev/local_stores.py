"""The stores that the embedded stack may start beside Kafka, and how each is declared in its catalog."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from leatstream.dev import local_clickhouse, local_iceberg, local_kinesis
from leatstream.dev.local_server import LocalServer

LOCAL_STORES: dict[str, type[LocalServer]] = {
    "kinesis": local_kinesis.LocalKinesis,
    "iceberg": local_iceberg.LocalIceberg,
    "clickhouse": local_clickhouse.LocalClickHouse,
}


@dataclass(frozen=True, slots=True)
class Declaration:
    """A local store as the catalog has it: its name, kind and settings."""

    name: str
    kind: str
    config: dict[str, Any]
    secrets: dict[str, str | None] = field(repr=False)


def local_store(name: str, data_dir: Path, log_dir: Path) -> LocalServer:
    """The server of a store; Kinesis keeps nothing, the others a directory of their own.

    Args:
        name: one of ``LOCAL_STORES``.
        data_dir: of the stack.
        log_dir: takes its log.
    """
    directory = None if name == "kinesis" else data_dir / name
    return LOCAL_STORES[name](log_dir / f"{name}.log", directory)


def declaration(name: str, address: str) -> Declaration:
    """How a store is declared.

    Args:
        name: one of ``LOCAL_STORES``.
        address: where it listens.
    """
    if name == "kinesis":
        return Declaration(
            "embedded_kinesis",
            "kinesis",
            {
                "region": local_kinesis.REGION,
                "endpoint_url": address,
                "access_key_id": local_kinesis.ACCESS_KEY_ID,
            },
            {"secret_access_key": local_kinesis.SECRET_ACCESS_KEY},
        )
    if name == "iceberg":
        return Declaration(
            "embedded_iceberg",
            "iceberg_rest",
            {
                "uri": address,
                "warehouse": local_iceberg.WAREHOUSE,
                "client_id": local_iceberg.CLIENT,
                "scope": local_iceberg.SCOPE,
            },
            {"client_secret": local_iceberg.SECRET},
        )
    place = urlsplit(address)
    return Declaration(
        "embedded_clickhouse",
        "clickhouse",
        {
            "host": place.hostname,
            "port": place.port,
            "secure": False,
            "database": local_clickhouse.DATABASE,
            "username": local_clickhouse.USER,
        },
        {"password": local_clickhouse.PASSWORD},
    )

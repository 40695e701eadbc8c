"""Iceberg catalogs for tests, with their files in moto's S3: our own REST catalog, and moto's Glue."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aws_server import REGION, bucket
from iceberg_server import SECRET, WAREHOUSE, IcebergServer, iceberg_server
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.rest import RestCatalog

from leatstream.connectors.base import Connector
from leatstream.connectors.iceberg.null_lists import keep_null_lists
from leatstream.connectors.registry import open_connector

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEY, KEY_SECRET = "AKIAEXAMPLE", "a-secret"
_BUCKET = "lake"


@dataclass(frozen=True)
class Lake:
    """A catalog, as tests see it.

    Attributes:
        kind: of the store.
        config: settings without secrets.
        secrets: field path to value.
        address: of moto.
        catalog: pyiceberg's own, past leatstream.
        server: of the REST catalog.
    """

    kind: str
    config: Mapping[str, Any]
    secrets: Mapping[str, str]
    address: str
    catalog: Catalog
    server: IcebergServer | None = None

    def connector(self, **other: Any) -> Connector:
        """A connector of its own."""
        return open_connector(self.kind, "lake", dict(self.config) | other, self.secrets)

    def rows(self, entity: str) -> list[tuple[Any, ...]]:
        """A table's rows, sorted by the first column, with dictionaries for maps."""
        table = self.catalog.load_table(tuple(entity.split(".")))
        kinds = [str(one.field_type).partition("<")[0] for one in table.schema().fields]
        keep_null_lists()
        found = table.scan().to_arrow()
        rows = [
            tuple(
                dict(value) if kind == "map" and value is not None else value
                for kind, value in zip(kinds, row.values(), strict=True)
            )
            for row in found.to_pylist()
        ]
        return sorted(rows, key=lambda row: (row[0] is None, row[0]))

    def data_files(self, entity: str) -> set[str]:
        """Keys of the files of data that lie in a table's directory, whether or not a snapshot has them."""
        from aws_server import s3_of

        root = self.catalog.load_table(tuple(entity.split("."))).location().split("/", 3)[3]
        pages = s3_of(self.address).get_paginator("list_objects_v2").paginate(Bucket=_BUCKET, Prefix=root)
        keys = (one["Key"] for page in pages for one in page.get("Contents", ()))
        return {key for key in keys if key.endswith(".parquet")}


def file_access(address: str) -> dict[str, str]:
    """What pyiceberg needs for files in moto's S3."""
    return {
        "s3.endpoint": address,
        "s3.region": REGION,
        "s3.access-key-id": KEY,
        "s3.secret-access-key": KEY_SECRET,
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
    }


@contextmanager
def rest_lake(address: str) -> Iterator[Lake]:
    """Our own REST catalog over moto's S3."""
    bucket(address, _BUCKET)
    with iceberg_server(f"s3://{_BUCKET}/rest", file_access(address)) as server:
        login = {"credential": f"leat:{SECRET}", "scope": "PRINCIPAL_ROLE:ALL"}
        tokens = f"{server.address}/v1/oauth/tokens"
        catalog = RestCatalog(
            "tests", uri=server.address, warehouse=WAREHOUSE, **{"oauth2-server-uri": tokens}, **login
        )
        yield Lake("iceberg_rest", server.config(), {"client_secret": SECRET}, address, catalog, server)


@contextmanager
def glue_lake(address: str) -> Iterator[Lake]:
    """moto's Glue and S3."""
    bucket(address, _BUCKET)
    path = f"s3://{_BUCKET}/glue"
    access = file_access(address)
    glue = {key.replace("s3.", "glue."): value for key, value in access.items() if key.startswith("s3.")}
    config = {
        "region": REGION,
        "endpoint_url": address,
        "s3_endpoint_url": address,
        "warehouse_path": path,
        "access_key_id": KEY,
    }
    catalog = GlueCatalog("tests", **access, **glue, warehouse=path)
    yield Lake("iceberg_glue", config, {"secret_access_key": KEY_SECRET}, address, catalog)


@contextmanager
def duckdb_on(lake: Lake) -> Iterator[DuckDBPyConnection]:
    """DuckDB with a REST catalog as its database ``lake``; it shares no code with pyiceberg.

    Its extensions come as wheels, since a test downloads nothing.
    """
    import duckdb

    with duckdb.connect() as engine:
        for name in ("avro", "httpfs", "iceberg"):
            package = importlib.resources.files(f"duckdb_extension_{name}")
            engine.load_extension(
                str(package / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension")
            )
        engine.execute(
            f"CREATE SECRET files (TYPE S3, KEY_ID '{KEY}', SECRET '{KEY_SECRET}', REGION '{REGION}', "
            f"ENDPOINT '{lake.address.removeprefix('http://')}', USE_SSL false, URL_STYLE 'path')"
        )
        login = "AUTHORIZATION_TYPE 'none'"
        if "client_id" in lake.config:
            login = "SECRET catalog"
            engine.execute(
                f"CREATE SECRET catalog (TYPE ICEBERG, CLIENT_ID '{lake.config['client_id']}', "
                f"CLIENT_SECRET '{SECRET}', OAUTH2_SCOPE '{lake.config['scope']}', "
                f"OAUTH2_SERVER_URI '{lake.config['uri']}/v1/oauth/tokens')"
            )
        engine.execute(
            f"ATTACH '{WAREHOUSE}' AS lake (TYPE ICEBERG, {login}, ENDPOINT '{lake.config['uri']}', "
            "ACCESS_DELEGATION_MODE 'none')"
        )
        yield engine


def read_by_duckdb(lake: Lake, entity: str) -> list[tuple[Any, ...]]:
    """A table's rows by DuckDB's reader, sorted."""
    with duckdb_on(lake) as engine:
        return sorted(engine.execute(f"SELECT * FROM lake.{entity}").fetchall())

"""The two Iceberg kinds: what differs is how a catalog is opened, and the names that it can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from leatstream.connectors.aws.words import ACCESS_REGION, UNSUPPORTED
from leatstream.connectors.capabilities import Capabilities
from leatstream.connectors.iceberg import names
from leatstream.connectors.iceberg.settings import IcebergGlueConfig, IcebergRestConfig
from leatstream.connectors.iceberg.tables import CAPABILITIES, IcebergConnector
from leatstream.connectors.iceberg.words import GlueWords, RestWords
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords


class IcebergRestConnector(IcebergConnector):
    """The tables of a catalog that speaks Iceberg's REST protocol."""

    kind: ClassVar[str] = "iceberg_rest"
    capabilities: ClassVar[Capabilities] = replace(
        CAPABILITIES,
        verified_on="a catalog of the tests over pyiceberg's metadata code, files in moto's S3; tables that "
        "DuckDB reads and deletes from; tables of Nessie 0.99 by hand",
        unverified="Polaris, Lakekeeper, Unity Catalog, S3 Tables; a private authority",
    )
    Config: ClassVar[type[StoreSettings]] = IcebergRestConfig
    words: ClassVar[StoreWords] = RestWords(
        types=("iceberg_rest",),
        title="an Iceberg REST store",
        unsupported={
            **NO_CHOICE,
            "tls.disabled": "the scheme of 'uris' decides: http:// or https://",
            "tls.verify_server_hostname": "the name is always checked with https://",
            "tls.client.cert_file": "clients log in with OAuth2 or a token",
            "tls.client.key_file": "clients log in with OAuth2 or a token",
        },
    )
    _fault: ClassVar[Callable[[str], str | None]] = staticmethod(names.rest_fault)

    def __init__(self, name: str, config: StoreSettings) -> None:
        if not isinstance(config, IcebergRestConfig):
            raise TypeError("an Iceberg REST store takes an IcebergRestConfig")
        super().__init__(name, config, config.warehouse)

    def about(self, timeout: float) -> Mapping[str, str]:
        """The warehouse's name, and what the catalog says of itself."""
        with self.admin.catalog("asking the catalog", timeout) as catalog:
            prefix = catalog.properties.get("prefix")
        return {"catalog": "Iceberg REST"} | ({"prefix": str(prefix)} if prefix else {})


class IcebergGlueConnector(IcebergConnector):
    """The Iceberg tables of AWS Glue's Data Catalog."""

    kind: ClassVar[str] = "iceberg_glue"
    capabilities: ClassVar[Capabilities] = replace(
        CAPABILITIES,
        verified_on="moto's Glue and S3, with pyiceberg and boto3 as in production",
        unverified="AWS Glue itself, catalogs of another account, Lake Formation",
    )
    Config: ClassVar[type[StoreSettings]] = IcebergGlueConfig
    words: ClassVar[StoreWords] = GlueWords(
        types=("iceberg_glue",),
        title="an Iceberg Glue store",
        more=(ACCESS_REGION,),
        unsupported=dict(UNSUPPORTED),
    )
    _fault: ClassVar[Callable[[str], str | None]] = staticmethod(names.glue_fault)

    def __init__(self, name: str, config: StoreSettings) -> None:
        if not isinstance(config, IcebergGlueConfig):
            raise TypeError("an Iceberg Glue store takes an IcebergGlueConfig")
        super().__init__(name, config, config.catalog_id)

    def about(self, timeout: float) -> Mapping[str, str]:
        """Region and account."""
        self.admin.test(timeout)
        config = self.config
        region, account = getattr(config, "region", ""), getattr(config, "catalog_id", None)
        return {"catalog": "AWS Glue", "region": region} | ({"account": account} if account else {})

"""Page views from Kafka, kept in an Iceberg table and counted in a ClickHouse view, deployed as code.

``python main.py`` synthesizes to ``cdktf.out/`` beside this file; Terraform does the rest::

    terraform -chdir=cdktf.out/stacks/lakehouse init
    terraform -chdir=cdktf.out/stacks/lakehouse apply

Addresses and secrets are Terraform variables (``TF_VAR_catalog_uri``, …): none is written into the synthesis.
"""

from __future__ import annotations

import os
from pathlib import Path

from leatstream_cdktf import (
    ClickHouseStore,
    Construct,
    Database,
    IcebergRestStore,
    KafkaStore,
    LeatstreamProvider,
    Query,
    Schema,
    Sink,
    Stream,
    tf,
)

# The cdktf and cdktn command lines say where to synthesize to; by hand it is beside this file.
OUTDIR = os.environ.get("CDKTF_OUTDIR") or str(Path(__file__).parent / "cdktf.out")
WAIT = {"create": "5m"}


class LakehouseStack(tf.TerraformStack):
    """Three stores, one stream, two queries."""

    def __init__(self, scope: Construct, id_: str) -> None:
        """Declare everything.

        Args:
            scope: the app.
            id_: the stack's name.
        """
        super().__init__(scope, id_)
        # Terraform runs in cdktf.out/stacks/<stack>; the state stays beside cdktf.out, which may be deleted.
        tf.LocalBackend(self, path="../../../terraform.tfstate")
        LeatstreamProvider(self, "leatstream")
        kafka = KafkaStore(self, "kafka_store", bootstrap_servers=self._given("kafka_bootstrap_servers"))
        lake = IcebergRestStore(
            self,
            "lake",
            uri=self._given("catalog_uri"),
            warehouse=self._given("catalog_warehouse"),
            client_id=self._given("catalog_client_id"),
            client_secret=self._given("catalog_client_secret", sensitive=True),
            scope=self._given("catalog_scope", default="PRINCIPAL_ROLE:ALL"),
        )
        clickhouse = ClickHouseStore(
            self,
            "clickhouse",
            host=self._given("clickhouse_host"),
            port=tf.TerraformVariable(self, "clickhouse_port", type="number", default=8443).number_value,
            secure=tf.TerraformVariable(self, "clickhouse_secure", type="bool", default=True).boolean_value,
            username=self._given("clickhouse_username"),
            database=self._given("clickhouse_database", default="default"),
            password=self._given("clickhouse_password", sensitive=True),
        )
        shop = Schema(self, "shop", database=Database(self, "lakehouse"))
        pageviews = Stream(
            self,
            "pageviews",
            schema=shop,
            store=kafka,
            timestamp="viewtime",
            columns={"viewtime": "BIGINT", "userid": "VARCHAR", "pageid": "VARCHAR"},
        )
        # Every page view once: files of a batch and its number are one commit of the catalog.
        Query(
            self,
            "pageviews_kept",
            sql="SELECT viewtime, userid, pageid FROM {p} WITH ('starting.position' = 'earliest')",
            sources={"p": pageviews},
            sink=Sink(
                name="pageviews_kept", kind="table", store=lake, properties={"iceberg.namespace": "shop"}
            ),
            schema=shop,
            delete_sink_entity=True,
            timeouts=WAIT,
        )
        # A plain view in ClickHouse, for dashboards.
        Query(
            self,
            "views_per_page",
            sql="""
                SELECT pageid, count(*) AS views
                FROM {p} WITH ('starting.position' = 'earliest')
                GROUP BY pageid
            """,
            sources={"p": pageviews},
            sink=Sink(name="views_per_page", kind="materialized_view", store=clickhouse),
            schema=shop,
            timeouts=WAIT,
        )

    def _given(self, name: str, *, sensitive: bool = False, default: str | None = None) -> str:
        given = tf.TerraformVariable(self, name, type="string", sensitive=sensitive, default=default)
        return str(given.string_value)


def main() -> None:
    """Synthesize the stack."""
    app = tf.App(outdir=OUTDIR)
    LakehouseStack(app, "lakehouse")
    app.synth()


if __name__ == "__main__":
    main()

"""Page views joined with users, deployed as code.

``python main.py`` synthesizes to ``cdktf.out/`` beside this file; Terraform does the rest::

    terraform -chdir=cdktf.out/stacks/pageviews init
    terraform -chdir=cdktf.out/stacks/pageviews apply

Environment: LEATSTREAM_KAFKA names the Kafka brokers, ``host:port,…``; Terraform asks for them when it is not
set. The provider reads LEATSTREAM_URL and LEATSTREAM_TOKEN when Terraform runs; they never enter the files.
"""

from __future__ import annotations

import os
from pathlib import Path

from leatstream_cdktf import (
    Construct,
    Database,
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
BROKERS = os.environ.get("LEATSTREAM_KAFKA") or None


class PageviewsStack(tf.TerraformStack):
    """A store, two streams over its topics, and two queries."""

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
        brokers = tf.TerraformVariable(
            self,
            "kafka_bootstrap_servers",
            type="string",
            description="Kafka brokers that leatstream reads from and writes to, as host:port,…",
            default=BROKERS,
        )

        kafka = KafkaStore(self, "kafka", bootstrap_servers=brokers.string_value)
        demo = Database(self, "demo", comment="Example: pageviews and users")
        shop = Schema(self, "shop", database=demo)

        pageviews = Stream(
            self,
            "pageviews",
            schema=shop,
            store=kafka,
            columns={"viewtime": "BIGINT", "userid": "VARCHAR", "pageid": "VARCHAR"},
            value_format="json",
            key_format="primitive",
            key_type="VARCHAR",
        )
        users = Stream(
            self,
            "users",
            schema=shop,
            store=kafka,
            columns={
                "registertime": "BIGINT",
                "userid": "VARCHAR",
                "regionid": "VARCHAR",
                "gender": "VARCHAR",
            },
            value_format="json",
            key_format="primitive",
            key_type="VARCHAR",
        )

        # Partitions and replicas of the sink's topic are taken from pageviews, the left-most source.
        few_users = Query(
            self,
            "pageviews_few_users",
            sql="""
                SELECT viewtime, userid, pageid
                FROM {pageviews}
                WHERE userid IN ('User_1', 'User_2', 'User_3')
            """,
            sources={"pageviews": pageviews},
            sink=Sink(name="pageviews_few_users", store=kafka),
            timeouts={"create": "5m"},
        )
        enriched = Query(
            self,
            "pageviews_enriched",
            sql="""
                SELECT p.viewtime, p.userid, p.pageid, u.regionid, u.gender
                FROM {pageviews} p
                JOIN {users} u WITHIN 5 MINUTES ON p.userid = u.userid
            """,
            sources={"pageviews": pageviews, "users": users},
            sink=Sink(
                name="pageviews_enriched",
                store=kafka,
                properties={"topic.partitions": 1, "topic.replicas": 1},
            ),
            timeouts={"create": "5m"},
        )

        for query in (few_users, enriched):
            name = query.node.id
            tf.TerraformOutput(
                self, f"{name}_topic", value=query.sink_topic, description="Topic with the results"
            )
            tf.TerraformOutput(
                self, f"{name}_state", value=query.status.state, description="State of the job"
            )


def main() -> None:
    """Synthesize the stack."""
    app = tf.App(outdir=OUTDIR)
    PageviewsStack(app, "pageviews")
    app.synth()


if __name__ == "__main__":
    main()

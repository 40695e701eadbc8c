"""Queries over Kinesis and Kafka at once, deployed as code.

``python main.py`` synthesizes to ``cdktf.out/`` beside this file; Terraform does the rest::

    terraform -chdir=cdktf.out/stacks/multi-store init
    terraform -chdir=cdktf.out/stacks/multi-store apply

Environment: LEATSTREAM_KAFKA names the Kafka brokers (Terraform asks for them when it is not set),
LEATSTREAM_KINESIS the address of Kinesis where it is not the region's own. To see what cannot be inferred,
NEW_TOPIC=none leaves out what a Kafka topic made from a Kinesis stream must be told, and LEFT_MOST=users
turns the join around: both make the plan fail.
"""

from __future__ import annotations

import os
from pathlib import Path

from leatstream_cdktf import (
    Construct,
    Database,
    KafkaStore,
    KinesisStore,
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


class MultiStoreStack(tf.TerraformStack):
    """Three stores, two streams, three queries."""

    def __init__(self, scope: Construct, id_: str, *, tell_topic: bool = True, left_most: str = "pageviews"):
        """Declare everything.

        Args:
            scope: the app.
            id_: the stack's name.
            tell_topic: give the properties of the new Kafka topic, which nothing else can tell.
            left_most: ``pageviews`` or ``users``: the left side of the join.
        """
        super().__init__(scope, id_)
        # Terraform runs in cdktf.out/stacks/<stack>; the state stays beside cdktf.out, which may be deleted.
        tf.LocalBackend(self, path="../../../terraform.tfstate")
        LeatstreamProvider(self, "leatstream")
        brokers = self._variable("kafka_bootstrap_servers", "Kafka brokers, host:port,…", "LEATSTREAM_KAFKA")
        # A second name for the same cluster: the store that new Kafka topics go to.
        msk = KafkaStore(self, "MSK", bootstrap_servers=brokers)
        kafka = KafkaStore(self, "kafka_store", bootstrap_servers=brokers)
        kinesis = KinesisStore(
            self,
            "kinesis_store",
            region=os.environ.get("AWS_REGION", "us-east-1"),
            endpoint_url=os.environ.get("LEATSTREAM_KINESIS"),
            **self._keys(),
        )
        shop = Schema(self, "shop", database=Database(self, "multi_store"))

        pageviews = Stream(
            self,
            "pageviews_kinesis",
            schema=shop,
            store=kinesis,
            topic="pageviews",
            columns={"viewtime": "BIGINT", "userid": "VARCHAR", "pageid": "VARCHAR"},
            value_format="json",
            timestamp="viewtime",
        )
        users = Stream(
            self,
            "users_kafka",
            schema=shop,
            store=msk,
            topic="ds_users",
            columns={
                "registertime": "BIGINT",
                "userid": "VARCHAR",
                "regionid": "VARCHAR",
                "gender": "VARCHAR",
            },
            value_format="json",
            timestamp="registertime",
        )

        # Kinesis to Kafka. Without topic.partitions and topic.replicas the plan fails and says why.
        topic = {"topic.partitions": 1, "topic.replicas": 1} if tell_topic else {}
        Query(
            self,
            "pageviews_kafka",
            sql="SELECT * FROM {pageviews}",
            sources={"pageviews": pageviews},
            sink=Sink(name="pageviews_kafka", store=kafka, properties=topic),
            delete_sink_entity=True,
            timeouts=WAIT,
        )
        # Kinesis joined with Kafka, into Kinesis: topic.shards is that of the left-most source.
        tables = ("{pageviews} p", "{users} u")
        left, right = tables if left_most == "pageviews" else reversed(tables)
        Query(
            self,
            "pageviews_enriched",
            sql=f"""
                SELECT p.viewtime, p.userid AS userid, p.pageid, u.regionid, u.gender
                FROM {left}
                JOIN {right} WITHIN 5 MINUTES ON p.userid = u.userid
            """,
            sources={"pageviews": pageviews, "users": users},
            sink=Sink(name="pageviews_enriched", store=kinesis),
            delete_sink_entity=True,
            timeouts=WAIT,
        )
        # Kafka to Kafka: partitions and replicas come from users_kafka; the sink's store is the query's own.
        Query(
            self,
            "users_regions",
            sql="SELECT userid, regionid FROM {users}",
            sources={"users": users},
            store=kafka,
            sink=Sink(name="users_regions"),
            delete_sink_entity=True,
            timeouts=WAIT,
        )

    def _variable(self, name: str, description: str, environment: str, *, secret: bool = False) -> str:
        variable = tf.TerraformVariable(
            self,
            name,
            type="string",
            description=description,
            default=None if secret else os.environ.get(environment),
            sensitive=secret,
        )
        return str(variable.string_value)

    def _keys(self) -> dict[str, str]:
        """The access key of the environment; without one the leatstream server's own credentials count."""
        key = os.environ.get("AWS_ACCESS_KEY_ID")
        if not key:
            return {}
        # TF_VAR_secret_access_key: as text in the program it would stand in the synthesized JSON.
        secret = self._variable("secret_access_key", "Secret of the access key", "", secret=True)
        return {"access_key_id": key, "secret_access_key": secret}


def main() -> None:
    """Synthesize the stack."""
    app = tf.App(outdir=OUTDIR)
    MultiStoreStack(
        app,
        "multi-store",
        tell_topic=os.environ.get("NEW_TOPIC") != "none",
        left_most=os.environ.get("LEFT_MOST", "pageviews"),
    )
    app.synth()


if __name__ == "__main__":
    main()

"""What each kind of store needs to be known of its entities; imports no connector.

Every kind of the product's scope is here, so that sink-property inference is complete before every connector
is. A connector class takes its ``entity_properties`` from here.
"""

from __future__ import annotations

from leatstream.connectors.capabilities import EntityProperty

# Properties of a relation that name its table: database, schema, table.
TABLE_NAMES = ("postgresql.db.name", "postgresql.schema.name", "postgresql.table.name")

KIND_PROPERTIES: dict[str, tuple[EntityProperty, ...]] = {
    "kafka": (
        EntityProperty("topic.partitions", ("kafka.partitions",)),
        EntityProperty("topic.replicas", ("kafka.replicas",)),
    ),
    "kinesis": (EntityProperty("topic.shards", ("kinesis.shards",)),),
    # Tables and paths have no notion of partitions that a sink must be given.
    "postgres": (),
    "s3": (),
    "snowflake": (),
    "databricks": (),
    "clickhouse": (),
    "oracle": (),
    "iceberg_rest": (),
    "iceberg_glue": (),
}

"""A property that no relation of the kind has is refused with the one that was probably meant."""

from __future__ import annotations

import pytest

from leatstream.connectors.registry import connector_classes


@pytest.mark.parametrize(
    ("kind", "wrong", "hint"),
    [
        ("iceberg_rest", "iceberg.tablename", "Did you mean 'iceberg.table.name'?"),
        ("iceberg_glue", "iceberg.interval", "Did you mean 'iceberg.interval.millis'?"),
        ("iceberg_rest", "clickhouse.table.name", "Did you mean 'iceberg.table.name'?"),
        ("clickhouse", "snowflake.table.name", "Did you mean 'clickhouse.table.name'?"),
        ("snowflake", "snowflake.buffer.milis", "Did you mean 'snowflake.buffer.millis'?"),
        ("databricks", "databricks.tablename", "Did you mean 'databricks.table.name'?"),
        ("oracle", "oracle.schema", "Did you mean 'oracle.schema.name'?"),
        ("clickhouse", "clickhouse.zzz", "Available: 'clickhouse.db.name' and 'clickhouse.table.name'."),
        ("kafka", "postgresql.table.name", "Leave it out: the entity is named by 'topic'."),
        ("s3", "s3.partition", "Did you mean 's3.partition.by'?"),
    ],
)
def test_the_nearest_property_is_offered(kind: str, wrong: str, hint: str) -> None:
    _, (fault,) = connector_classes()[kind].relation_options({wrong: "x"}, ["a"], "json")
    assert fault.name == wrong
    assert fault.detail == f"{wrong} is no property of a relation in a store of kind {kind}."
    assert fault.hint == hint


def test_an_interval_says_what_it_may_be() -> None:
    _, (fault,) = connector_classes()["iceberg_rest"].relation_options(
        {"iceberg.interval.millis": "5s"}, [], "json"
    )
    assert fault.detail == "iceberg.interval.millis must be a whole number of milliseconds."
    assert fault.hint == "The default is 10000, and 60000 for a changelog."

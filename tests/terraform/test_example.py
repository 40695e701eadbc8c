"""``examples/terraform`` and ``examples/lakehouse`` as they stand: apply, records, an empty plan, destroy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clickhouse_server import PASSWORD as CLICKHOUSE_PASSWORD

from leatstream.dev.samples import SampleProducer

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "terraform"
SINKS = ("pageviews_one_user", "pageviews_enriched")


@pytest.fixture
def sample_data(leatstream_server: Any) -> Iterator[None]:
    """Page views and users, as ``leat dev`` produces them; the topics go when the test ends."""
    from confluent_kafka.admin import AdminClient

    producer = SampleProducer(leatstream_server.kafka_bootstrap)
    producer.start()
    yield
    producer.stop()
    admin = AdminClient({"bootstrap.servers": leatstream_server.kafka_bootstrap, "log_level": 0})
    present = set(admin.list_topics(timeout=10).topics) & {"pageviews", "users", *SINKS}
    for outcome in admin.delete_topics(sorted(present)).values():
        outcome.result(30)


def test_the_example(sample_data: None, terraform: Any, leatstream_server: Any) -> None:
    for file in EXAMPLE.glob("*.tf"):
        shutil.copy(file, terraform.folder)
    terraform.extra_env = {
        "TF_VAR_kafka_bootstrap_servers": leatstream_server.kafka_bootstrap,
        "TF_INPUT": "0",
    }
    terraform.init()
    terraform.run("validate")
    try:
        terraform.apply()
        sink = terraform.output("one_user_sink")
        assert sink["relation"] == "demo.shop.pageviews_one_user"
        assert sink["properties"]["topic.partitions"]["origin"] == "left_most_source"
        assert terraform.output("enriched_mode").startswith("micro_batch: ")
        with leatstream_server.client() as client:
            few, enriched = (_records(client, topic) for topic in SINKS)
        assert {record["userid"] for record in few} == {"User_6"}
        assert all(set(record) == {"userid", "pageid", "regionid", "gender"} for record in enriched)
        terraform.is_settled()
    finally:
        terraform.destroy()
    with leatstream_server.client() as client:
        for query in ("one_user", "enriched"):
            assert client.get(f"/v1/queries/{query}").status_code == 404
        assert client.get("/v1/databases/demo").status_code == 404
        assert client.get("/v1/stores/kafka_store").status_code == 404


def test_the_lakehouse(
    sample_data: None,
    terraform: Any,
    leatstream_server: Any,
    iceberg_rest: Any,
    clickhouse: Any,
    eventually: Callable[..., Any],
) -> None:
    """Page views reach an Iceberg table, as pyiceberg reads it, and are counted in ClickHouse."""
    for file in (EXAMPLES / "lakehouse" / "terraform").glob("*.tf"):
        shutil.copy(file, terraform.folder)
    catalog, views = iceberg_rest.config, clickhouse.config()
    own = {name: views[name] for name in ("host", "port", "secure", "username", "database")}
    terraform.extra_env = {
        "TF_VAR_kafka_bootstrap_servers": leatstream_server.kafka_bootstrap,
        "TF_VAR_catalog_uri": catalog["uri"],
        "TF_VAR_catalog_warehouse": catalog["warehouse"],
        "TF_VAR_catalog_client_id": catalog["client_id"],
        "TF_VAR_catalog_client_secret": iceberg_rest.secrets["client_secret"],
        "TF_VAR_clickhouse": json.dumps(own),
        "TF_VAR_clickhouse_password": CLICKHOUSE_PASSWORD,
        "TF_INPUT": "0",
    }
    terraform.init()
    try:
        terraform.apply()
        kept = eventually(lambda: iceberg_rest.rows("shop.pageviews_kept"), 120, "rows in Iceberg")
        assert all(len(row) == 3 and None not in row for row in kept)
        text = "SELECT pageid, views FROM shop.views_per_page"
        counted = eventually(lambda: clickhouse.rows(text), 120, "rows in ClickHouse")
        assert all(int(views) > 0 for _, views in counted)
        terraform.is_settled()
        said = terraform.state_text()
        assert CLICKHOUSE_PASSWORD not in said
        assert iceberg_rest.secrets["client_secret"] not in said
    finally:
        terraform.destroy()
    assert not iceberg_rest.catalog.table_exists(("shop", "pageviews_kept"))


def _records(client: Any, topic: str) -> list[dict[str, Any]]:
    answer = client.get(
        f"/v1/stores/kafka_store/entities/{topic}/records",
        params={"from": "beginning", "limit": 3, "timeout": "60s"},
    )
    assert answer.status_code == 200, answer.text
    found = [json.loads(line)["value"] for line in answer.text.splitlines()]
    assert len(found) == 3, topic
    return found

"""``examples/terraform`` as it stands, on a running stack: apply, records, an empty plan, destroy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leatstream.dev.samples import SampleProducer

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "terraform"
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


def _records(client: Any, topic: str) -> list[dict[str, Any]]:
    answer = client.get(
        f"/v1/stores/kafka_store/entities/{topic}/records",
        params={"from": "beginning", "limit": 3, "timeout": "60s"},
    )
    assert answer.status_code == 200, answer.text
    found = [json.loads(line)["value"] for line in answer.text.splitlines()]
    assert len(found) == 3, topic
    return found

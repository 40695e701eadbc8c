"""The CDKTF example on a real stack: apply, records on both sinks, an empty plan, destroy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leatstream.dev.samples import SampleProducer

TOPICS = ("pageviews_few_users", "pageviews_enriched")


@pytest.fixture
def sample_data(leatstream_server: Any) -> Iterator[None]:
    """Page views and users, produced while the test runs; the topics go when it ends."""
    from confluent_kafka.admin import AdminClient

    producer = SampleProducer(leatstream_server.kafka_bootstrap)
    producer.start()
    yield
    producer.stop()
    admin = AdminClient({"bootstrap.servers": leatstream_server.kafka_bootstrap, "log_level": 0})
    present = set(admin.list_topics(timeout=10).topics) & {"pageviews", "users", *TOPICS}
    for outcome in admin.delete_topics(sorted(present)).values():
        outcome.result(30)


def test_deploy_and_destroy(
    sample_data: None,
    leatstream_server: Any,
    tmp_path: Path,
    terraform_in: Callable[..., Any],
    synthesize_example: Callable[..., Path],
) -> None:
    folder = synthesize_example("cdktn", tmp_path / "cdktf.out", leatstream_server.kafka_bootstrap)
    terraform = terraform_in(
        folder, LEATSTREAM_URL=leatstream_server.url, LEATSTREAM_TOKEN=leatstream_server.token, TF_INPUT="0"
    )
    terraform.run("init")
    try:
        terraform.run("apply", "-auto-approve")
        outputs = {name: item["value"] for name, item in json.loads(terraform.run("output", "-json")).items()}
        assert {outputs[f"{topic}_topic"] for topic in TOPICS} == set(TOPICS)
        assert {outputs[f"{topic}_state"] for topic in TOPICS} == {"running"}
        few, enriched = (_records(leatstream_server, topic) for topic in TOPICS)
        assert {record["userid"] for record in few} <= {"User_1", "User_2", "User_3"}
        assert all(
            set(record) == {"viewtime", "userid", "pageid", "regionid", "gender"} for record in enriched
        )
        # Status 0: nothing to change.
        terraform.run("plan", "-detailed-exitcode")
    finally:
        terraform.run("destroy", "-auto-approve")
    with leatstream_server.client() as client:
        for topic in TOPICS:
            assert client.get(f"/v1/queries/{topic}").status_code == 404
        assert client.get("/v1/relations/demo.shop.pageviews").status_code == 404


def _records(server: Any, topic: str) -> list[dict[str, Any]]:
    """Three records of a topic, as soon as there are so many. The example's store must still exist."""
    path = f"/v1/stores/kafka/entities/{topic}/records"
    with server.client(timeout=120) as client:
        answer = client.get(path, params={"from": "beginning", "limit": 3, "timeout": "60s"})
    assert answer.status_code == 200, answer.text
    records = [json.loads(line)["value"] for line in answer.text.splitlines() if line]
    assert len(records) == 3
    return records

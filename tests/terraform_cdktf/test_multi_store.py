"""``examples/multi-store``: the tutorial over Kinesis and Kafka, in all its forms."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_server import aws_server

from leatstream.dev import local_kinesis
from leatstream.dev.kinesis_samples import KinesisOutlet
from leatstream.dev.samples import PAGEVIEWS, USERS, SampleOptions, SampleProducer

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOURCE_TOPICS = (PAGEVIEWS, USERS, "ds_users")
SHARDS = 2
SECRET = "never-to-be-shown"
SINKS = {
    "kafka_store/pageviews_kafka": {"viewtime", "userid", "pageid"},
    "kinesis_store/pageviews_enriched": {"viewtime", "userid", "pageid", "regionid", "gender"},
    "kafka_store/users_regions": {"userid", "regionid"},
}


@pytest.fixture(scope="module")
def kinesis(leatstream_server: Any) -> Iterator[str]:
    """A Kinesis and a Kafka into which records flow while the tests run; gives the address of Kinesis."""
    from confluent_kafka.admin import AdminClient

    with aws_server() as endpoint:
        options = SampleOptions(users_topics=(USERS, "ds_users"))
        outlet = KinesisOutlet(endpoint, PAGEVIEWS, SHARDS)
        producer = SampleProducer(leatstream_server.kafka_bootstrap, options, outlet)
        producer.start()
        yield endpoint
        producer.stop()
        assert producer.last_error is None
    admin = AdminClient({"bootstrap.servers": leatstream_server.kafka_bootstrap, "log_level": 0})
    for outcome in admin.delete_topics(list(SOURCE_TOPICS)).values():
        outcome.result(30)


@pytest.fixture
def environment(leatstream_server: Any, kinesis: str) -> dict[str, str]:
    """What Terraform needs to know."""
    return {
        "LEATSTREAM_URL": leatstream_server.url,
        "LEATSTREAM_TOKEN": leatstream_server.token,
        "TF_INPUT": "0",
        "TF_VAR_kafka_bootstrap_servers": leatstream_server.kafka_bootstrap,
        "TF_VAR_kinesis_endpoint": kinesis,
        "TF_VAR_access_key_id": local_kinesis.ACCESS_KEY_ID,
        "TF_VAR_secret_access_key": SECRET,
    }


def names_of_entities(client: Any, store: str) -> set[str]:
    """All of a store's entities: other tests share the broker, so they may fill more than one page."""
    names, token = set(), None
    while True:
        asked = {"page_token": token} if token else {}
        page = client.get(f"/v1/stores/{store}/entities", params=asked).json()
        names |= {item["name"] for item in page["items"]}
        token = page["next_page_token"]
        if token is None:
            return names


def one_line(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


@pytest.mark.long
def test_cdktf_from_refusals_to_records(
    kinesis: str,
    environment: dict[str, str],
    leatstream_server: Any,
    tmp_path: Path,
    terraform_in: Callable[..., Any],
    synthesize_example: Callable[..., Path],
) -> None:
    def synthesize(**told: str) -> Path:
        reached = {"LEATSTREAM_KINESIS": kinesis, "AWS_REGION": local_kinesis.REGION}
        keys = {"AWS_ACCESS_KEY_ID": local_kinesis.ACCESS_KEY_ID}
        brokers, example = leatstream_server.kafka_bootstrap, "multi-store/cdktf"
        return synthesize_example(
            "cdktn", tmp_path / "cdktf.out", brokers, example, **reached, **keys, **told
        )

    terraform = terraform_in(synthesize(NEW_TOPIC="none"), **environment)
    terraform.run("init")
    refused = one_line(terraform.run("plan", good=(1,)))
    assert "topic.partitions and topic.replicas must be given for the kafka sink" in refused
    assert "left-most source multi_store.shop.pageviews_kinesis is of kind kinesis" in refused
    synthesize(LEFT_MOST="users")
    assert "topic.shards must be given for the kinesis sink" in one_line(terraform.run("plan", good=(1,)))

    synthesize()
    try:
        terraform.run("apply", "-auto-approve")
        with leatstream_server.client() as client:
            enriched = client.get("/v1/queries/pageviews_enriched").json()["effective"]["topic.shards"]
            assert (enriched["value"], enriched["origin"]) == (SHARDS, "left_most_source")
            copied = client.get("/v1/queries/users_regions").json()["effective"]
            assert copied["topic.partitions"]["origin"] == "left_most_source"
            assert (copied["store"]["value"], copied["store"]["origin"]) == ("kafka_store", "session")
            for sink, columns in SINKS.items():
                store, entity = sink.split("/")
                assert entity in names_of_entities(client, store)
                assert set(record_of(client, store, entity)) == columns
        terraform.run("plan", "-detailed-exitcode")
        assert SECRET not in (tmp_path / "terraform.tfstate").read_text(encoding="utf-8")
    finally:
        terraform.run("destroy", "-auto-approve")
    with leatstream_server.client() as client:
        assert client.get("/v1/stores/kinesis_store").status_code == 404


@pytest.mark.long  # make demo plans and deploys it
def test_terraform_plans_it_before_anything_exists(
    environment: dict[str, str], tmp_path: Path, terraform_in: Callable[..., Any]
) -> None:
    for file in (EXAMPLES / "multi-store" / "terraform").glob("*.tf"):
        shutil.copy(file, tmp_path)
    terraform = terraform_in(tmp_path, **environment)
    terraform.run("init")
    assert "topic.partitions" in terraform.run("plan", "-var", "new_topic=null", good=(1,))
    assert "topic.shards" in terraform.run("plan", "-var", "left_most=users", good=(1,))
    terraform.run("plan", "-out", "plan")
    text = terraform.run("show", "-json", "plan")
    assert SECRET not in text
    sinks = json.loads(text)["planned_values"]["outputs"]["sinks"]["value"]
    shards = sinks["pageviews_enriched"]["properties"]["topic.shards"]
    assert (shards["value"], shards["from"]) == (str(SHARDS), "multi_store.shop.pageviews_kinesis")


def record_of(client: Any, store: str, entity: str) -> dict[str, Any]:
    path = f"/v1/stores/{store}/entities/{entity}/records"
    answer = client.get(path, params={"from": "beginning", "limit": 1, "timeout": "60s"}, timeout=90)
    assert answer.status_code == 200, answer.text
    (line,) = answer.text.splitlines()
    record: dict[str, Any] = json.loads(line)["value"]
    return record

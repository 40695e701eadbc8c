"""``examples/terraform`` and ``examples/lakehouse`` as they stand: apply, records, an empty plan, destroy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def test_the_example(sample_data: None, terraform: Any, leatstream_server: Any, tmp_path: Path) -> None:
    """Deployed, planned and watched by the steps of ``examples/pipelines``."""
    for file in EXAMPLE.glob("*.tf"):
        shutil.copy(file, terraform.folder)
    terraform.extra_env = {
        "TF_VAR_kafka_bootstrap_servers": leatstream_server.kafka_bootstrap,
        "TF_INPUT": "0",
    }
    shutil.copytree(EXAMPLES / "pipelines", tmp_path / "pipelines")
    variables = tmp_path / "pipelines" / "environments" / "dev.tfvars"
    variables.write_text(f'kafka_bootstrap_servers = "{leatstream_server.kafka_bootstrap}"\n')

    def step(name: str, **more: str) -> tuple[int, str]:
        done = terraform.script(
            tmp_path / "pipelines" / name, "dev", CONFIGURATION=str(terraform.folder), **more
        )
        return done.returncode, done.stdout + done.stderr

    try:
        status, said = step("deploy.sh", MAX_LAG="100000")
        assert (status, "| `leatstream_query.enriched` | created |" in said) == (0, True), said
        assert "Query enriched has caught up" in said
        sink = terraform.output("one_user_sink")
        assert sink["relation"] == "demo.shop.pageviews_one_user"
        assert sink["properties"]["topic.partitions"]["origin"] == "left_most_source"
        assert terraform.output("enriched_mode").startswith("micro_batch: ")
        with leatstream_server.client() as client:
            few, enriched = (_records(client, topic) for topic in SINKS)
        assert {record["userid"] for record in few} == {"User_6"}
        assert all(set(record) == {"userid", "pageid", "regionid", "gender"} for record in enriched)
        terraform.is_settled()
        with leatstream_server.client() as client, reading_token(client) as token:
            status, said = step("drift.sh", LEATSTREAM_TOKEN=token)
            assert (status, "dev is as configured." in said) == (0, True), said
            main = terraform.folder / "main.tf"
            text = main.read_text()
            main.write_text(text.replace("WITHIN 5 MINUTES", "WITHIN 6 MINUTES"))
            variables.write_text(variables.read_text() + 'userid                  = "User_7"\n')
            status, said = step("check.sh", LEATSTREAM_TOKEN=token)
            assert "`leatstream_query.one_user` | the job restarts where it stopped reading" in said, said
            assert "`leatstream_query.enriched` | **the state is lost**" in said
            assert (status, "**Refused**" in said) == (1, True)
            assert (tmp_path / "out" / "review.md").read_text() in said
            main.write_text(text)
    finally:
        terraform.destroy()
    with leatstream_server.client() as client:
        for query in ("one_user", "enriched"):
            assert client.get(f"/v1/queries/{query}").status_code == 404
        assert client.get("/v1/databases/demo").status_code == 404
        assert client.get("/v1/stores/kafka_store").status_code == 404


@pytest.mark.long  # test_table_stores.py has these stores
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


@contextmanager
def reading_token(client: Any) -> Iterator[str]:
    """A token of scope ``read`` in a role that may do everything, as pipelines plan with."""
    assert client.put("/v1/service-accounts/planner", json={"roles": ["sysadmin"]}).status_code == 201
    made = client.post("/v1/tokens/planner", json={"account": "planner", "scope": "read"})
    assert made.status_code == 201, made.text
    yield made.json()["value"]
    assert client.delete("/v1/service-accounts/planner").status_code == 204


def _records(client: Any, topic: str) -> list[dict[str, Any]]:
    answer = client.get(
        f"/v1/stores/kafka_store/entities/{topic}/records",
        params={"from": "beginning", "limit": 3, "timeout": "60s"},
    )
    assert answer.status_code == 200, answer.text
    found = [json.loads(line)["value"] for line in answer.text.splitlines()]
    assert len(found) == 3, topic
    return found

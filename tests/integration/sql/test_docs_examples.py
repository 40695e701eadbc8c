"""Every SQL block of the documentation, and each folder of examples, is run in a catalog and on servers of its own.

A page's file in ``tests/fixtures/docs`` says what the page takes for granted. Continuous queries are planned, typed by
Spark, and kept; their jobs are run elsewhere.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_server import aws_server
from clickhouse_server import PASSWORD as CLICKHOUSE_PASSWORD
from docs_world import FIXTURES, DocsWorld, Servers, docs_world
from google.protobuf import descriptor_pb2
from java_classes import jar, load, udf_class
from oracle_double import PASSWORD as ORACLE_PASSWORD

from leatstream.connectors.registry import with_secrets
from leatstream.formats.registry_client import RegistryAddress, RegistryClient, Schema
from leatstream.sql.parser import parse

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
BEFORE = re.compile(r"^-- before block (\d+)\n", re.MULTILINE)
WITH = re.compile(r"^-- with (\S+)\n", re.MULTILINE)
SCORES = b"def grade(points, best):\n    return None\n"


def blocks(page: str) -> list[str]:
    """The SQL blocks of a page, in order."""
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


PAGES = [
    page
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if blocks(page := path.relative_to(ROOT).as_posix())
]


EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/*/pipeline.sql"))


def taken_for_granted(page: str) -> dict[int, str]:
    """What is to run before which block of a page."""
    text = (FIXTURES / page.removeprefix("docs/").replace(".md", ".sql")).read_text(encoding="utf-8")
    text = WITH.sub(lambda match: (FIXTURES / match[1]).read_text(encoding="utf-8"), text)
    first, *rest = BEFORE.split(text)
    return {1: first} | dict(zip(map(int, rest[::2]), rest[1::2], strict=True))


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        yield address


@pytest.fixture
def world(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: Any,
    kafka_broker: str,
    postgres: Any,
    aws: str,
) -> Iterator[DocsWorld]:
    given = request.getfixturevalue
    others = {
        "clickhouse": lambda: given("clickhouse").config(password=CLICKHOUSE_PASSWORD),
        "oracle": lambda: given("oracle").config(password=ORACLE_PASSWORD),
        "snowflake": lambda: given("snowflake").config() | given("snowflake").secrets,
        "databricks": lambda: with_secrets(given("databricks").config(), given("databricks").secrets),
    }
    servers = Servers(kafka_broker, postgres, aws, lambda: given("schema_registry"), others)
    with docs_world(tmp_path, spark, servers) as made:
        yield made


def files(page: str) -> dict[str, str]:
    """The files that a page's SQL names, in base64: the first block in Python, a jar with the class that it shows."""
    text = (ROOT / page).read_text(encoding="utf-8")
    python = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return {
        "/home/ann/scores.py": base64.b64encode(python[1].encode() if python else SCORES).decode(),
        "build/scores.jar": jar(shop__Level=udf_class("shop.Level", 1, [load(1)])),
        "shop.desc": base64.b64encode(descriptors()).decode(),
    }


def descriptors() -> bytes:
    """What ``protoc`` makes of ``package shop; message Order { int64 id = 1; double price = 2; }``."""
    found = descriptor_pb2.FileDescriptorSet()
    file = found.file.add(name="shop.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate((("id", kinds.TYPE_INT64), ("price", kinds.TYPE_DOUBLE)), 1):
        order.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    return found.SerializeToString()


def orders_are_registered(world: DocsWorld, registry: Callable[[], str]) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "price", "type": "double"}]
    schema = json.dumps({"type": "record", "name": "Order", "fields": fields})
    client = RegistryClient(RegistryAddress("ours", "confluent", (registry(),)), 5.0)
    client.register("orders-value", Schema("AVRO", schema))
    client.close()


def views_have_rows(world: DocsWorld, registry: Callable[[], str]) -> None:
    world.view_has("visits")
    world.view_has("visits_per_minute")


def replacement_takes_over(world: DocsWorld, registry: Callable[[], str]) -> None:
    world.job_runs("views_per_page", 7)
    world.job_runs("views_per_page__green", 9)


def query_runs(world: DocsWorld, registry: Callable[[], str]) -> None:
    world.job_runs("long_views_v1")


def savepoint_is_taken(world: DocsWorld, registry: Callable[[], str]) -> None:
    world.job_ends("long_views_v1")
    world.run("RESTART QUERY long_views_v1")
    world.job_runs("long_views_v1")
    world.run("TERMINATE QUERY long_views_v1 WITH SAVEPOINT before_upgrade")
    world.job_ends("long_views_v1")


ATOMIC = {("docs/sql/atomic.md", 1)}
# What no statement does: other programs, and drivers, whose part the test plays.
MEANWHILE: dict[tuple[str, int], Callable[[DocsWorld, Callable[[], str]], None]] = {
    ("docs/sql/formats.md", 1): orders_are_registered,
    ("docs/sql/materialized-views.md", 3): views_have_rows,
    ("docs/sql/replacing.md", 2): replacement_takes_over,
    ("docs/sql/savepoints.md", 1): query_runs,
    ("docs/sql/savepoints.md", 2): savepoint_is_taken,
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page: str, world: DocsWorld, request: pytest.FixtureRequest) -> None:
    granted = taken_for_granted(page)
    told = blocks(page)
    assert max(granted) <= len(told)
    for number, text in enumerate(told, 1):
        if number in granted:
            world.run(granted[number], files(page))
        if (page, number) in MEANWHILE:
            MEANWHILE[page, number](world, lambda: request.getfixturevalue("schema_registry"))
        results = world.run(text, files(page), atomic=(page, number) in ATOMIC)
        assert len(results) == len(parse(text))


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_a_folder_is_planned(folder: Path, world: DocsWorld) -> None:
    world.run("CREATE STORE embedded WITH ('type' = KAFKA, 'uris' = '127.0.0.1:9092', 'tls.disabled' = TRUE)")
    texts = [(folder / f"{name}.sql") for name in ("stores", "pipeline", "sample")]
    for text in (path.read_text(encoding="utf-8") for path in texts if path.exists()):
        assert len(world.run(text)) == len(parse(text))


def test_an_example_with_a_fault_fails(world: DocsWorld) -> None:
    """Names and types are looked at, the latter by Spark."""
    world.run(taken_for_granted("docs/sql/batches.md")[1])
    for wrong, code in (("usrid", "unknown-column"), ("date_add(userid, TRUE) AS day", "type-mismatch")):
        with pytest.raises(AssertionError, match=code):
            world.run(f"CREATE STREAM wrong AS SELECT {wrong} FROM pageviews")

"""Schemathesis against the real services, with fakes behind the ports: every check, and chains of calls."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from scratch import memory_directory
from which_tests import amount

from leatstream.model.names import Fqn
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.rest import event_stream, waiting
from leatstream.rest.app import create_app
from leatstream.services.environment import Principal
from leatstream.services.nouns import databases, stores
from leatstream.services.relations import entities, relations

HERE = Path(__file__).parent
# What is left out of a run. The cases of these operations, a store, any object and statements, are two thirds of all.
SHORTER = {
    "core": "[phases.coverage]\nenabled = false\n",
    "all": """
[[operations]]
include-operation-id = ["put_store", "validate_object", "validate_statements"]
phases.coverage.enabled = false
""",
    "long": "",
}
EXAMPLES = int(os.environ.get("LEATSTREAM_CONTRACT_EXAMPLES", "3"))


def _seed(world: Any) -> None:
    """A store, a topic, a stream and a query to be found."""
    admin = Principal("ann", "sysadmin")
    databases.put_database(world.env, admin, "demo")
    stores.put_store(world.env, admin, "kafka_store", "kafka", {"bootstrap_servers": "localhost:9092"}, {})
    properties = {"topic.partitions": 3, "topic.replicas": 1}
    entities.put_entity(world.env, admin, "kafka_store", "pageviews", properties, {})
    columns = (Column("viewtime", parse_type("BIGINT")), Column("userid", parse_type("VARCHAR")))
    body = relations.RelationDefinition(columns, store="kafka_store", value_format="json")
    relations.put_relation(world.env, admin, Fqn("demo", "public", "pageviews"), body)


@pytest.fixture(scope="module")
def world() -> Iterator[Any]:
    """Services over fakes; nobody waits long for a state that never comes."""
    longest, waiting.LONGEST_WAIT = waiting.LONGEST_WAIT, 0.1
    whole, event_stream.LONGEST = event_stream.LONGEST, 0.0
    with memory_directory() as directory:
        made = fakes.make_world(Path(directory))
        made.env.passes.ended = math.inf  # nobody reconciles here, and a busy machine takes minutes
        _seed(made)
        yield made
        made.units.close()
    waiting.LONGEST_WAIT = longest
    event_stream.LONGEST = whole


@pytest.fixture(scope="module")
def api(world: Any) -> Any:
    """The document of the application over these services."""
    token = fakes.administrator(world)
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json",
        create_app(world.env),
        config=SchemathesisConfig.from_str((HERE / "schemathesis.toml").read_text() + SHORTER[amount()]),
    )

    @schema.auth()
    class Administrator:
        """Gives every case the administrator's token, unless the case is about its absence."""

        def get(self, case: Any, context: Any) -> str:
            return token

        def set(self, case: Any, data: str, context: Any) -> None:
            case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}

    return schema


@pytest.fixture
def node_name(request: pytest.FixtureRequest) -> None:
    """Schemathesis 4.32 keeps an operation's name in an attribute that pytest 9.2 no longer has."""
    request.node._nodeid = request.node.nodeid


# Made when it runs: the cases of all operations take a minute, and each process of a run collects all tests.
operations = schemathesis.pytest.from_fixture("api")


@operations.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.timeout(2700)
@pytest.mark.usefixtures("node_name")
def test_every_operation(case: Any) -> None:
    """No answer that the contract does not tell, and no crash."""
    case.call_and_validate()


def test_chains_of_calls(api: Any) -> None:
    """What one call makes, others read, change and delete."""
    api.as_state_machine().run(
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=8,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
    )

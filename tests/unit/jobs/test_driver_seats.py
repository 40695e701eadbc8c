"""What the queries of a shared driver have in common, and what they have not."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.plan.job_spec import StoreRef
from leatstream_jobs.driver.shared_driver import Seat, SharedDriver, ThreadTail

STORE = StoreRef(name="k", kind="kafka", config={"bootstrap_servers": "b:1"})


@pytest.fixture
def driver(tmp_path: Path) -> SharedDriver:
    client: Any = SimpleNamespace(another=lambda query_id: query_id)
    return SharedDriver(client, role="shared", slots=2, work_dir=tmp_path, warm_up_kafka=None)


def test_a_connector_lasts_as_long_as_a_query_that_uses_it(driver: SharedDriver) -> None:
    made: list[Any] = []

    def make(*asked: Any) -> Any:
        made.append(asked)
        return object()

    one, two, other = Seat(driver, "q1"), Seat(driver, "q2"), Seat(driver, "q3")
    first = one.connector(STORE, {"p": "old"}, make)
    assert two.connector(STORE, {"p": "old"}, make) is one.connector(STORE, {"p": "old"}, make) is first
    assert other.connector(STORE, {"p": "new"}, make) is not first
    driver.let_go(one)
    assert two.connector(STORE, {"p": "old"}, make) is first
    driver.let_go(two)
    driver.let_go(two)
    assert Seat(driver, "q1").connector(STORE, {"p": "old"}, make) is not first
    assert len(made) == 3


def test_lines_go_to_the_query_that_wrote_them() -> None:
    log = logging.getLogger("test_shared_driver")
    log.setLevel(logging.INFO)
    log.propagate = False
    tails = [ThreadTail("q1"), ThreadTail("q2")]  # of one thread here: what it writes is both's
    for tail in tails:
        log.addHandler(tail)
    try:
        log.info("from the attempt")

        def batch() -> None:
            logging.LoggerAdapter(log, {"query_id": "q2"}).info("from a batch")
            log.info("from nobody known")

        thread = threading.Thread(target=batch)
        thread.start()
        thread.join()
    finally:
        for tail in tails:
            log.removeHandler(tail)
    told = [[line.split("INFO ")[1] for line in tail.take()] for tail in tails]
    assert told == [["from the attempt"], ["from the attempt", "from a batch"]]

from __future__ import annotations

from pathlib import Path

from leatstream.dev import broker_config
from leatstream.dev.broker_config import properties, rotate, tail


def test_one_node_needs_one_replica_of_everything() -> None:
    found = properties(Path("/data"), 19092, 19093)
    assert {value for key, value in found.items() if "replication.factor" in key or "min.isr" in key} == {"1"}
    assert found["auto.create.topics.enable"] == "false"


def test_it_listens_on_loopback_only() -> None:
    found = properties(Path("/data"), 19092, 19093)
    assert found["listeners"] == "CLIENT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert found["advertised.listeners"] == "CLIENT://127.0.0.1:19092"


def test_a_large_log_is_set_aside(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("x" * 10)
    rotate(log)
    assert log.exists()
    log.write_bytes(b"x" * (broker_config.LOG_LIMIT + 1))
    rotate(log)
    assert not log.exists()
    assert (tmp_path / "broker.log.1").exists()


def test_the_tail_of_a_log_is_short(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    assert tail(log) == "(no log)"
    log.write_text("\n".join(map(str, range(100))))
    assert tail(log, 2) == "98\n99"

"""Bytes in and out of a query, from what the stores' clients and the sinks themselves have counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.connectors.writers import Written
from leatstream.plan.job_spec import Mode
from leatstream_jobs.attempt.progress import Progress
from leatstream_jobs.attempt.traffic import EVERY, Meter, Traffic
from leatstream_jobs.batches.common import BatchSink
from leatstream_jobs.runtime import clients as clients_module
from leatstream_jobs.writing import batch_sink

NOTHING = Progress([])


class Clients:
    """What a store's clients have counted, by topic or reader."""

    def __init__(self) -> None:
        self.read_by: dict[str, dict[str, int]] = {}
        self.sent_to: dict[str, dict[str, int]] = {}
        self.records_to: dict[str, dict[str, int]] = {}
        self.away = False

    def read(self, reader: str) -> dict[str, int]:
        if self.away:
            raise RuntimeError("the JVM is gone")
        return dict(self.read_by.get(reader, {}))

    def sent(self, entity: str) -> dict[str, int]:
        return dict(self.sent_to.get(entity, {}))

    def records_sent(self, entity: str) -> dict[str, int]:
        return dict(self.records_to.get(entity, {}))


def job(*sinks: str, query: str = "q", kinds: tuple[str, ...] = ("kafka",), **more: Any) -> Any:
    store = SimpleNamespace(kind=more.get("sink", "kafka"))
    specs = [
        SimpleNamespace(query_id=query, sink=SimpleNamespace(entity=name, view=None, store=store))
        for name in sinks
    ]
    for spec in specs:
        spec.delivery = more.get("delivery")
    first = specs[0]
    first.mode = more.get("mode", Mode.MICRO_BATCH)
    first.is_batch_job = more.get("batches", False)
    first.silent, first.hand_over = False, None
    first.members = specs[1:]
    first.of_member = lambda member: member
    first.sources = [SimpleNamespace(store=SimpleNamespace(kind=kind)) for kind in kinds]
    return first


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    found = Clients()
    counted: Any = SimpleNamespace(traffic=lambda spark: found, tables=False, takes_rows=False, streams=True)
    silent: Any = SimpleNamespace(traffic=lambda spark: None, tables=False, takes_rows=True, streams=False)
    for module in (clients_module, batch_sink):
        monkeypatch.setattr(module, "connector_classes", lambda: {"kafka": counted, "s3": silent})
    return found


def measured(spec: Any, clock: list[float]) -> Traffic:
    spark: Any = None
    return Traffic(spark, spec, lambda: clock[0])


def test_clients_come_and_go_and_what_others_had_counted_is_not_told_again() -> None:
    found = {"a": 100}
    meter = Meter(lambda: dict(found))
    assert meter.total == 0
    found |= {"a": 150, "b": 7}
    meter.look()
    assert meter.total == 57
    meter.look()
    del found["b"]  # it had nothing to do since the look before
    meter.look()
    found["a"] = 160
    meter.look()
    assert meter.total == 67
    found["b"] = 3  # a new one of the same name counts from 0
    meter.look()
    assert meter.total == 70


def test_a_client_that_is_closed_at_work_takes_its_last_count_along() -> None:
    found = {"a": 1}
    meter = Meter(lambda: dict(found))
    found["a"] = 9
    meter.look()
    found.clear()
    meter.look()
    assert meter.total is None, "nobody knows what it did since the look before"
    found["c"] = 4
    meter.look()
    assert meter.total is None


def test_bytes_count_from_the_attempts_begin_and_are_looked_at_rarely(clients: Clients) -> None:
    clock = [0.0]
    clients.read_by["leatstream-q"] = {"c1": 1000}
    clients.sent_to["out"] = {"p": 500}
    traffic = measured(job("out"), clock)
    clients.read_by["leatstream-q"]["c1"] = 1010
    clients.sent_to["out"]["p"] = 505
    traffic.look()
    assert traffic.as_json(NOTHING) == {"input_bytes_total": 0, "output_bytes_total": 0}, "not so soon"
    clock[0] += EVERY
    traffic.look()
    assert traffic.as_json(NOTHING) == {"input_bytes_total": 10, "output_bytes_total": 5}
    clients.sent_to["out"]["p"] = 506
    traffic.look(last=True)
    assert traffic.as_json(NOTHING)["output_bytes_total"] == 6


def test_two_jobs_of_a_process_that_write_one_topic_do_not_know_whose_bytes_they_are(
    clients: Clients,
) -> None:
    clock = [0.0]
    one, other = measured(job("t", query="a"), clock), measured(job("u", "t", query="b"), clock)
    apart = measured(job("v", query="c"), clock)
    for each in (one, other, apart):
        each.look(last=True)
    outs = [each.as_json(NOTHING)["output_bytes_total"] for each in (one, other, apart)]
    assert outs == [None, None, 0]
    one.end()
    other.end()
    assert one.as_json(NOTHING)["output_bytes_total"] is None
    again = measured(job("t", query="a"), clock)
    assert again.as_json(NOTHING)["output_bytes_total"] == 0
    again.end()
    apart.end()


def test_sinks_that_count_themselves_are_added_and_one_that_does_not_makes_the_sum_unknown(
    clients: Clients,
) -> None:
    sent: list[Written | None] = [Written(1, 3), Written(2, 4)]
    frame: Any = None
    shape: Any = None
    sink = BatchSink(shape, lambda _frame, number: sent[number])
    clock = [0.0]
    traffic = measured(job("f", sink="s3", kinds=("kafka", "s3")), clock)
    assert traffic.as_json(NOTHING)["output_bytes_total"] is None, "it is not open yet"
    traffic.sinks = (sink,)
    traffic.look(last=True)
    sink.write(frame, 0)
    sink.write(frame, 1)
    clock[0] += EVERY
    traffic.look()
    assert traffic.as_json(NOTHING) == {
        "input_bytes_total": 0,
        "output_bytes_total": 7,
        "output_rows_total": 3,
        "output_rows_per_second": 0.3,
    }
    sent.append(None)
    sink.write(frame, 2)
    told = traffic.as_json(NOTHING)
    assert (told["output_rows_total"], told["output_bytes_total"]) == (None, None)


def test_records_of_sources_that_nobody_counts_are_measured_and_added(clients: Clients) -> None:
    traffic = measured(job("measured", kinds=("kafka", "s3")), [0.0])
    clients.read_by["leatstream-q"] = {"c": 5}
    traffic.look(last=True)
    assert traffic.as_json(Progress([], read_bytes=7))["input_bytes_total"] == 12
    traffic.end()
    lasting = measured(job("measured", kinds=("s3",), mode=Mode.REALTIME), [0.0])
    assert lasting.as_json(NOTHING)["input_bytes_total"] is None
    lasting.end()


def test_records_for_a_sink_in_executors_are_measured(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    away: Any = SimpleNamespace(traffic=lambda spark: None, tables=False, takes_rows=False, streams=True)
    for module in (clients_module, batch_sink):
        monkeypatch.setattr(module, "connector_classes", lambda: {"kafka": away})
    told = measured(job("away"), [0.0]).as_json(Progress([], read_bytes=1, sent_bytes=2))
    assert told == {"input_bytes_total": 1, "output_bytes_total": 2}
    lasting = measured(job("away", mode=Mode.REALTIME), [0.0]).as_json(NOTHING)
    assert lasting == {"input_bytes_total": None, "output_bytes_total": None}


def test_the_rows_of_batches_are_those_that_the_clients_have_sent(clients: Clients) -> None:
    clock = [0.0]
    clients.records_to["rows"] = {"p": 100}
    traffic = measured(job("rows", batches=True), clock)
    clients.records_to["rows"]["p"] = 140
    clock[0] += EVERY
    traffic.look()
    assert "output_rows_total" not in traffic.as_json(NOTHING), "it has handed over: Spark writes, and counts"
    sink: Any = BatchSink(lambda frame: frame, lambda _frame, _number: None)
    traffic.sinks = (sink,)
    told = traffic.as_json(NOTHING)
    assert (told["output_rows_total"], told["output_rows_per_second"]) == (40, 4.0)
    traffic.end()


def test_figures_that_cannot_be_read_end_no_query(clients: Clients) -> None:
    traffic = measured(job("x"), [0.0])
    assert traffic.as_json(NOTHING) == {"input_bytes_total": 0, "output_bytes_total": 0}
    clients.away = True
    traffic.look(last=True)
    assert traffic.as_json(NOTHING) == {"input_bytes_total": None, "output_bytes_total": 0}
    traffic.end()

"""How a job runs: real-time mode where Spark allows it, micro-batch elsewhere, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leatstream.plan.job_spec import Delivery, Mode


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides about the mode.

    Attributes:
        stateful: joins and other operators that keep state.
        realtime_sources, realtime_sink: whether the store kinds support real-time mode.
        skips_records: a source skips undecodable records, which must be counted per batch.
        source_partitions: partitions of each source; every one needs a task slot for the whole batch.
        slots: task slots of a driver.
        user_functions: whether users' functions are called.
        lookups: whether rows of tables are looked up.
        described: whether records are read or written by schemas, as Avro, Protobuf and JSON Schema are.
        wanted: ``auto``, ``realtime`` or ``micro_batch`` as the user asked.
    """

    stateful: bool
    realtime_sources: bool
    realtime_sink: bool
    skips_records: bool
    source_partitions: Sequence[int]
    slots: int
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    user_functions: bool = False
    lookups: bool = False
    described: bool = False
    wanted: str = "auto"


def choose_mode(shape: Shape) -> tuple[Mode, str]:
    """The mode and its reason, one sentence for people."""
    if shape.wanted == "micro_batch":
        return Mode.MICRO_BATCH, "asked for by the query property 'mode'"
    obstacle = _obstacle(shape)
    if obstacle:
        return Mode.MICRO_BATCH, obstacle
    return Mode.REALTIME, "stateless, from real-time sources to a real-time sink, at least once"


def _obstacle(shape: Shape) -> str | None:
    needed = sum(shape.source_partitions)
    if shape.stateful:
        return "joins, aggregates and patterns keep state, which Spark's real-time mode does not run"
    if shape.lookups:
        return "a table's rows are looked up batch by batch, which Spark's real-time mode does not do"
    if shape.user_functions:
        return "users' functions run batch by batch"
    if shape.described:
        return "Avro, Protobuf and JSON Schema are read and written in worker processes, batch by batch"
    if not (shape.realtime_sources and shape.realtime_sink):
        return "Spark's real-time mode reads from and writes to Kafka only"
    if shape.delivery is Delivery.EXACTLY_ONCE:
        return "exactly-once delivery needs batches"
    if shape.skips_records:
        return "skipped records are counted per batch"
    if needed > shape.slots:
        return (
            f"real-time mode needs a task slot per source partition: {needed} partitions, {shape.slots} slots"
        )
    return None

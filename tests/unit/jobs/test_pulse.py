"""When a query counts as standing still, with a clock that the test moves."""

from __future__ import annotations

import pytest

from leatstream.plan.job_spec import ColumnSpec, JobSpec, Mode, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt.pulse import Pulse

STORE = StoreRef(name="k", kind="kafka", config={})
COLUMNS = [ColumnSpec(name="a", type="BIGINT")]
SOURCE = SourceSpec(
    view="v", relation="d.s.r", store=STORE, entity="orders", columns=COLUMNS, value_format="json"
)
SPEC = JobSpec(
    query_id="q",
    query_name="q",
    generation=1,
    attempt=1,
    fencing_token="f",
    sql="",
    sources=[SOURCE],
    sink=SinkSpec(relation="d.s.o", store=STORE, entity="o", columns=COLUMNS, value_format="json"),
    mode=Mode.MICRO_BATCH,
    mode_reason="",
    checkpoint="file:///c",
)
ASKING = "Getting offsets from KafkaV2[Subscribe[orders]]"


class Clock:
    at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_silent_topic_is_no_standstill(clock: Clock) -> None:
    """Spark's loop goes on asking: its status is another one at each look."""
    pulse = Pulse(SPEC, clock)
    for second in range(600):
        clock.at += 1
        pulse.look([second], ASKING)
        assert pulse.waits_for() is None
    assert pulse.as_json()["age_seconds"] == 0


def test_the_first_batch_is_known_while_it_lasts(clock: Clock) -> None:
    pulse = Pulse(SPEC, clock)
    pulse.look([1], ASKING)
    assert not pulse.first_batch
    pulse.look([2], "Processing new data")
    assert pulse.first_batch
    pulse.look([3], ASKING, [{"batchDuration": 500}])
    pulse.look([4], "Processing new data")
    assert not pulse.first_batch


def test_a_loop_that_hangs_is_told_with_what_it_waits_for(clock: Clock) -> None:
    pulse = Pulse(SPEC, clock)
    pulse.look([1], ASKING)
    clock.at += 19
    pulse.look([1], ASKING)
    assert pulse.waits_for() is None
    clock.at += 2
    pulse.look([1], ASKING)
    assert pulse.waits_for() == "orders in store k does not say what there is to read"
    assert pulse.as_json()["age_seconds"] == 21
    pulse.look([2], "Waiting for data to arrive")
    assert pulse.waits_for() is None


def test_long_batches_are_a_rhythm_of_their_own(clock: Clock) -> None:
    pulse = Pulse(SPEC, clock)
    pulse.look([1], "Processing new data", [{"batchDuration": 60_000}])
    assert pulse.rhythm == 180
    clock.at += 179
    pulse.look([1], "Processing new data")
    assert pulse.waits_for() is None
    clock.at += 2
    assert pulse.waits_for() == "the batch at work takes longer than those before it"
    # The rhythm is that of the last batches: a long one at the start does not count for ever.
    for number in range(5):
        pulse.look([2 + number], "", [{"batchDuration": 100}])
    assert pulse.rhythm == 20


def test_a_query_that_runs_once_an_hour_is_not_stalled(clock: Clock) -> None:
    pulse = Pulse(SPEC.model_copy(update={"trigger_interval_ms": 3_600_000}), clock)
    pulse.look([1], "Waiting for next trigger")
    clock.at += 3_600
    pulse.look([1], "Waiting for next trigger")
    assert pulse.waits_for() is None


def test_real_time_mode_reports_once_a_batch(clock: Clock) -> None:
    pulse = Pulse(SPEC.model_copy(update={"mode": Mode.REALTIME}), clock)
    pulse.look([1], "Processing new data")
    clock.at += 89
    assert pulse.waits_for() is None
    clock.at += 2
    assert pulse.waits_for() is not None


def test_a_store_that_does_not_answer_is_told_before_the_rhythm_is_over(clock: Clock) -> None:
    pulse = Pulse(SPEC.model_copy(update={"mode": Mode.REALTIME}), clock)
    pulse.look([1], "Processing new data")
    pulse.answered("k", "Store k: no Kafka broker answered at b:1 within 3 s.")
    assert pulse.waits_for() is None
    clock.at += 9
    pulse.answered("k", "Store k: no Kafka broker answered at b:1 within 3 s.")
    assert pulse.waits_for() == "store k does not answer: no Kafka broker answered at b:1 within 3 s"
    pulse.answered("k", None)
    assert pulse.waits_for() is None

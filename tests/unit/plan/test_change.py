"""Which changes of a query keep its checkpoint."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.plan.change import classify
from leatstream.plan.job_spec import ChangeFeed, JobSpec

STORE: dict[str, Any] = {"name": "k", "kind": "kafka", "config": {}}
COLUMNS = [{"name": "n", "type": "BIGINT"}]


def job(*, delay: int | None = None, topic: str = "out", **more: Any) -> JobSpec:
    source = {"view": "v", "relation": "r", "store": STORE, "entity": "in", "columns": COLUMNS}
    sink = {"relation": "o", "store": STORE, "entity": topic, "columns": COLUMNS, "value_format": "json"}
    document = {
        "query_id": "",
        "query_name": "",
        "generation": 0,
        "attempt": 0,
        "fencing_token": "",
        "sql": "SELECT 1",
        "sources": [source | {"value_format": "json", "watermark_delay_ms": delay}],
        "sink": sink,
        "mode": "micro_batch",
        "mode_reason": "test",
        "checkpoint": "",
    }
    return JobSpec.model_validate(document | more)


UPDATE = {"output_mode": "update"}


def matching(sql: str = "SELECT 1", **changed: Any) -> JobSpec:
    pattern = {
        "view": "m",
        "input": "SELECT n",
        "types": ["bigint"],
        "partitions": 1,
        "term": ["variable", "a"],
        "define": {"a": ["cell", 0, None, None]},
        "measures": [["cell", 0, None, None]],
        "results": {"p0": "BIGINT"},
        "within_ms": 5,
    }
    operator = {"kind": "match-recognize", "pattern": pattern | changed}
    return job(delay=1, sql=sql, operator=operator, state={"from": "x"})


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (job(), job(), "hot"),
        (job(), job(sql="SELECT 2"), "restart-from-offsets"),
        (job(), job(topic="other"), "refused"),
        (job(delay=1), job(delay=1, sql="SELECT 2"), "new-state"),
        (job(delay=1), job(delay=2), "restart-keep-state"),
        (
            job(delay=1, state={"keys": "x"}),
            job(delay=1, sql="SELECT 2", state={"keys": "x"}),
            "restart-keep-state",
        ),
        (job(delay=1, state={"keys": "x"}), job(delay=1, sql="SELECT 2", state={"keys": "y"}), "new-state"),
        # What an earlier release noted may have left something out; the statement as it was goes on.
        (
            job(delay=1, state={"keys": "x"}),
            job(delay=1, sql="SELECT 2", state={"keys": "x", "form": "2"}),
            "new-state",
        ),
        (job(delay=1, state={"keys": "x"}), job(delay=1, state={"keys": "x", "form": "2"}), "hot"),
        (job(delay=1), job(delay=1, trigger_interval_ms=5), "restart-keep-state"),
        # Groups without a window have no watermark, and state all the same.
        (job(**UPDATE), job(sql="SELECT 2", **UPDATE), "new-state"),
        (job(**UPDATE), job(trigger_interval_ms=5, **UPDATE), "restart-keep-state"),
        (job(delay=1), job(delay=1, **UPDATE), "new-state"),
        (job(), job(**UPDATE), "new-state"),
        (matching(), matching("SELECT 2"), "restart-keep-state"),
        (matching(), matching(measures=[["time"]], results={"m0": "TIMESTAMP_LTZ"}), "restart-keep-state"),
        (matching(), matching(measures=[["number"]], results={"m0": "BIGINT"}), "new-state"),
        (matching(), matching(term=["repeat", ["variable", "a"], 1, 2, True]), "new-state"),
        (matching(), matching(define={}), "new-state"),
        (matching(), matching(within_ms=6), "new-state"),
        (matching(), matching(to_next=True), "new-state"),
        (matching(), matching(memory=1), "new-state"),
        (matching(), matching(input="SELECT m"), "new-state"),
        (matching(), job(delay=1), "new-state"),
    ],
)
def test_change(old: JobSpec, new: JobSpec, kind: str) -> None:
    assert classify(old, new).kind == kind


@pytest.mark.parametrize(
    ("more", "kind"), [({}, "restart-from-offsets"), ({"delay": 1}, "restart-keep-state")]
)
def test_another_column_of_headers_of_the_sink_leaves_the_state(more: dict[str, Any], kind: str) -> None:
    old = job(**more)
    sink = old.sink.model_copy(update={"headers_column": "h"})
    assert classify(old, old.model_copy(update={"sink": sink})).kind == kind


@pytest.mark.parametrize("more", [{"headers_column": "b"}, {"key_only": ["b"]}])
def test_a_column_from_another_part_of_the_records_has_other_values_in_the_state(
    more: dict[str, Any],
) -> None:
    for old, kind in ((job(), "restart-from-offsets"), (job(delay=1), "new-state")):
        sources = [old.sources[0].model_copy(update=more)]
        assert classify(old, old.model_copy(update={"sources": sources})).kind == kind


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [(None, 5000, "new-state"), (5000, None, "new-state"), (5000, 6000, "restart-keep-state")],
)
def test_ticks_of_a_silent_source_are_a_second_source(
    before: int | None, after: int | None, kind: str
) -> None:
    def silent(timeout: int | None) -> JobSpec:
        old = job(delay=1)
        return old.model_copy(
            update={"sources": [old.sources[0].model_copy(update={"idle_timeout_ms": timeout})]}
        )

    assert classify(silent(before), silent(after)).kind == kind


def test_a_log_of_undecodable_records_is_a_second_reader() -> None:
    new = job()
    sources = [new.sources[0].model_copy(update={"log_entity": "bad"})]
    assert classify(job(), new.model_copy(update={"sources": sources})).kind == "new-state"


def feeding(entity: str, **feed: Any) -> JobSpec:
    made = job()
    read = made.sources[0].model_copy(update={"entity": entity, "feed": ChangeFeed(**feed)})
    return made.model_copy(update={"sources": [read]})


def test_a_replication_slot_is_not_left_behind() -> None:
    same, named = feeding("t"), feeding("t", slot="mine")
    assert classify(same, feeding("t", ignore_truncates=True)).kind == "restart-from-offsets"
    assert classify(same, named).kind == "new-state"
    for other in (job(), feeding("u")):
        found = classify(same, other)
        assert found.kind == "refused"
        assert "slot of t" in found.reason
    assert classify(job(), same).kind == "new-state"


def keyed(form: str, keys: str, columns: str = "a BIGINT, b VARCHAR", **more: Any) -> JobSpec:
    """A job whose sink has these columns, some of them its key."""
    made = [{"name": name, "type": kind} for name, kind in (c.split() for c in columns.split(", "))]
    sink = {"key_format": form, "key_columns": keys.split(), "columns": made} | more
    return job().model_copy(update={"sink": job().sink.model_validate(job().sink.model_dump() | sink)})


KEYS = [
    (keyed("json", "a b"), keyed("json", "b a"), True),
    (keyed("json", "a b"), keyed("json", "x b", "x BIGINT, b VARCHAR"), True),
    (keyed("json", "a b"), keyed("json", "a b", "b VARCHAR, a INTEGER"), False),
    (keyed("json", "a b"), keyed("json", "a"), True),
    (keyed("json", "a"), keyed("primitive", "a"), True),
    (keyed("primitive", "a"), keyed("primitive", "x", "x BIGINT, b VARCHAR"), False),
    (keyed("primitive", "a"), keyed("primitive", "a", "a INTEGER, b VARCHAR"), True),
    (keyed("primitive", "a"), keyed("primitive", "a", "a BIGINT, b BIGINT"), False),
    (keyed("avro", "a", key_schema="1"), keyed("avro", "a", key_schema="2"), True),
    (job(), keyed("primitive", "a"), False),
]


@pytest.mark.parametrize(("old", "new", "other"), KEYS)
def test_another_form_of_the_record_keys_is_told(old: JobSpec, new: JobSpec, other: bool) -> None:
    for delay in (None, 7):
        one, two = (
            j.model_copy(update={"sources": job(delay=delay).sources, "sql": sql})
            for j, sql in ((old, "SELECT 1"), (new, "SELECT 2"))
        )
        change = classify(one, two)
        assert change.kind == ("new-state" if delay else "restart-from-offsets")
        assert ("record keys get another form" in change.reason) is other


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"state": {"columns": "x"}}, "new-state"),
        ({"distinct": True}, "new-state"),
        ({"state": {"keys": "x"}}, "restart-keep-state"),
    ],
)
def test_keys_that_are_passed_on_are_part_of_rows_that_wait(more: dict[str, Any], kind: str) -> None:
    """Spark leaves the records' own keys out of the state where columns make those of the sink."""
    passed, made = job(delay=1, **more), keyed("json", "a").sink
    chosen = passed.model_copy(
        update={"sink": passed.sink.model_copy(update={"key_columns": made.key_columns})}
    )
    assert (classify(passed, chosen).kind, classify(chosen, passed).kind) == (kind, kind)
    assert classify(passed, passed).kind == "hot"

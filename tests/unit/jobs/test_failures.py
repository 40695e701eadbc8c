"""From exceptions to codes and sentences; real exceptions are in tests/integration/jobs/test_formats.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Record
from leatstream.errors import StoreError
from leatstream.plan.job_spec import ColumnSpec, JobSpec, Mode, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt.failed_records import with_record_faults
from leatstream_jobs.attempt.failures import Link, classify, redacted, source_gone

STORE = StoreRef(name="s", kind="kafka", config={})
COLUMNS = [ColumnSpec(name="a", type="BIGINT")]
SOURCE = SourceSpec(
    view="leat_src_0", relation="d.s.r", store=STORE, entity="t", columns=COLUMNS, value_format="json"
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
MARK = 'LEAT_UNDECODABLE leat_src_0 {"topic":"t","partition":1,"offset":42} LEAT_UNDECODABLE_END'


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "the request included a message larger than the max message size",
            "Raise the topic's max.message.bytes",
        ),
        ("larger than 33554432, which is the value of the max.request.size", "32 MiB that are sent at most"),
    ],
)
def test_whose_bound_a_record_exceeds(message: str, told: str) -> None:
    link = Link(
        "org.apache.kafka.common.errors.RecordTooLargeException", f"RecordTooLargeException: {message}"
    )
    failure = classify([link], SPEC)
    assert (failure.condition, failure.retryable) == ("RECORD_TOO_LARGE", False)
    assert told in failure.detail


@pytest.mark.parametrize(
    ("message", "condition", "code", "retryable"),
    [
        (
            f"[USER_RAISED_EXCEPTION] {MARK} SQLSTATE: P0001",
            "USER_RAISED_EXCEPTION",
            "undecodable-record",
            False,
        ),
        ("LEAT_NULL_COLUMN x LEAT_NULL_COLUMN_END", "USER_RAISED_EXCEPTION", "job-failed", False),
        ("UnknownTopicOrPartitionException: this server does not host it", None, "source-gone", False),
        ("[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] offsets", "KAFKA_DATA_LOSS.X", "source-gone", False),
        ("OffsetOutOfRangeException", None, "source-gone", False),
        ("SaslAuthenticationException: no", None, "job-failed", False),
        ("x", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "checkpoint-damaged", False),
        ("x", "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS", "checkpoint-damaged", False),
        ("[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] block rdd_1_2 not found", None, "job-failed", True),
        ("x", "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", "job-failed", True),
        (
            "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] state files have been deleted",
            "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
            "checkpoint-damaged",
            False,
        ),
        ("x", "DIVIDE_BY_ZERO", "job-failed", False),
        ("x", "STREAMING_REAL_TIME_MODE.OUTPUT_MODE_NOT_SUPPORTED", "job-rejected", False),
        ("AnalysisException: x", "UNRESOLVED_COLUMN", "job-rejected", False),
        ("LEAT_STORE source entity-not-found gone LEAT_STORE_END", "PYTHON_X", "source-gone", False),
        ("LEAT_STORE sink entity-not-found gone LEAT_STORE_END", "PYTHON_X", "job-failed", False),
        ("LEAT_STORE table entity-not-found gone LEAT_STORE_END", "PYTHON_X", "job-failed", False),
        ("LEAT_STORE source store-auth-failed no LEAT_STORE_END", "PYTHON_X", "job-failed", False),
        ("LEAT_STORE sink store-unreachable busy LEAT_STORE_END", "PYTHON_X", "job-failed", True),
        ("java.io.IOException: disk", None, "job-failed", True),
        ("java.io.IOException: No space left on device", None, "disk-full", True),
        (
            "[CANNOT_LOAD_STATE_STORE] x: No space left on device",
            "CANNOT_LOAD_STATE_STORE",
            "disk-full",
            True,
        ),
        ("OSError: [Errno 28] No space left on device: '/c/x'", "PYTHON_EXCEPTION", "disk-full", True),
    ],
)
def test_codes(message: str, condition: str | None, code: str, retryable: bool) -> None:
    found = classify([Link("java.lang.RuntimeException", message, condition)], SPEC).as_json()
    assert (found["code"], found["retryable"]) == (code, retryable)


@pytest.mark.parametrize(
    ("condition", "cause", "code", "told"),
    [
        ("ROCKSDB_STORE_PROVIDER_OUT_OF_MEMORY", "java.lang.OutOfMemoryError: x", "job-failed", None),
        ("UNRELEASED_THREAD_ERROR", "", "job-failed", None),
        ("UNCATEGORIZED", "java.lang.OutOfMemoryError: Java heap space", "job-failed", None),
        ("UNCATEGORIZED", "java.net.ConnectException: refused", "job-failed", "store-unreachable"),
        ("UNCATEGORIZED", "java.io.IOException: Stale file handle", "job-failed", None),
        ("UNCATEGORIZED", "java.io.IOException: Too many open files", "job-failed", None),
        ("UNCATEGORIZED", "java.io.IOException: x", "job-failed", "state-unreadable"),
        ("AUTO_SNAPSHOT_REPAIR_FAILED", "java.io.IOException: x", "job-failed", "state-unreadable"),
        ("CANNOT_READ_STREAMING_STATE_FILE", "java.io.FileNotFoundException: x", "checkpoint-damaged", None),
        ("CANNOT_READ_MISSING_SNAPSHOT_FILE", "", "checkpoint-damaged", None),
    ],
)
def test_a_state_that_cannot_be_loaded_now_is_told_from_one_that_is_damaged(
    condition: str, cause: str, code: str, told: str | None
) -> None:
    full = f"CANNOT_LOAD_STATE_STORE.{condition}"
    name, _, message = cause.partition(": ")
    aborted = Link("x.SparkException", f"Job aborted due to stage failure: x: [{full}] y\nCaused by: {cause}")
    links = [Link("x.SparkException", f"[{full}] y", full), Link(name or "x.RuntimeException", message)]
    for chain in ([aborted], links):
        failure = classify(chain, SPEC)
        assert (failure.code, failure.as_json()["retryable"]) == (code, code == "job-failed")
        assert told is None or failure.condition == told
        assert (failure.condition in ("state-unreadable", "store-unreachable")) is (told is not None)


@pytest.mark.parametrize(
    ("name", "frame", "code"),
    [
        (
            "com.fasterxml.jackson.core.io.JsonEOFException",
            "o.a.s.x.OffsetSeqLog.deserialize",
            "checkpoint-damaged",
        ),
        ("java.io.EOFException", "o.a.s.x.SchemaHelper$SchemaReader.readJsonSchema", "checkpoint-damaged"),
        ("java.nio.charset.MalformedInputException", "o.a.s.x.HDFSMetadataLog.get", "checkpoint-damaged"),
        (
            "java.lang.AssertionError",
            "o.a.s.x.MicroBatchExecution.populateStartOffsets",
            "checkpoint-damaged",
        ),
        ("com.fasterxml.jackson.core.io.JsonEOFException", "o.a.s.x.JsonToStructs.eval", "job-failed"),
        ("java.net.ConnectException", "o.a.s.x.HDFSMetadataLog.get", "job-failed"),
    ],
)
def test_nonsense_in_a_checkpoint_is_told_from_a_disk_that_is_away(name: str, frame: str, code: str) -> None:
    chain = [Link("org.apache.spark.SparkException", "x"), Link(name, "x", frames=(frame,))]
    assert classify(chain, SPEC).code == code


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("java.net.ConnectException", "Call From a/1 to b:8020 failed on connection exception: refused"),
        (
            "java.io.EOFException",
            'End of File Exception between local host is: "a/1"; destination host is: "b":8020',
        ),
        (
            "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            "Cannot create file /c. SafeModeException: x",
        ),
        ("java.io.IOException", "File /c could only be written to 0 of the 1 minReplication nodes."),
    ],
)
def test_an_hdfs_that_is_away_is_told_from_a_damaged_checkpoint(name: str, message: str) -> None:
    """A call that breaks off ends as a file does that was cut, and in the same places."""
    chain = [Link("x", "x"), Link(name, message, frames=("o.a.s.x.HDFSMetadataLog.get",))]
    failure = classify(chain, SPEC.model_copy(update={"checkpoint": "hdfs://b:8020/c"}))
    assert (failure.code, failure.condition, failure.retryable) == (
        "job-failed",
        "checkpoints-unreachable",
        True,
    )
    assert failure.detail.startswith("The file system of the checkpoint hdfs://b:8020/c does not answer: ")


@pytest.mark.parametrize(
    "message",
    [
        "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: x",
        "org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given in bootstrap.servers",
        "x.PythonException: psycopg.errors.AdminShutdown: terminating connection",
        "LEAT_STORE sink store-unreachable busy LEAT_STORE_END",
    ],
)
def test_a_server_that_is_away_is_told_from_a_fault_of_the_job(message: str) -> None:
    failure = classify([Link("x.SparkException", message)], SPEC)
    assert (failure.code, failure.condition) == ("job-failed", "store-unreachable")
    assert failure.as_json()["retryable"] is True


def test_a_topic_that_may_be_deleted_is_not_waited_for_for_ever() -> None:
    message = (
        "org.apache.kafka.common.errors.TimeoutException: Topic t not present in metadata after 60000 ms."
    )
    assert classify([Link("x.SparkException", message)], SPEC).condition != "store-unreachable"


def test_the_place_of_an_undecodable_record_is_named() -> None:
    detail = classify([Link("x.SparkException", MARK)], SPEC).detail
    assert "d.s.r" in detail
    assert "topic t, partition 1, offset 42" in detail


def test_no_stack_no_plan_no_class_names() -> None:
    message = (
        "Job aborted due to stage failure: Task 0 in stage 5.0 failed 1 times, most recent failure: Lost task 0.0 "
        "in stage 5.0 (TID 5) (localhost executor driver): org.apache.spark.SparkException: [X_Y] It broke. "
        "SQLSTATE: 42000\n\tat org.apache.spark.Foo.bar(Foo.scala:1)\n\nDriver stacktrace:\n\tat a.b.C"
    )
    detail = classify([Link("org.apache.spark.SparkException", message)], SPEC).detail
    assert detail == "The job ended with an error: It broke."


def test_secrets_do_not_pass() -> None:
    text = 'sasl.jaas.config=Plain required password="geheim"; token: geheim ssl.truststore.x = geheim'
    assert "geheim" not in redacted(text)
    more = """{"password": "geheim 1", 'token': 'geheim', secret_access_key=geheim} postgresql://u:geheim@h:1/db"""
    assert "geheim" not in redacted(more)
    assert "postgresql://u:***@h:1/db" in redacted(more)
    assert redacted("http://h:8585/a @ b") == "http://h:8585/a @ b"
    assert len(redacted("x" * 5000)) == 600


@pytest.mark.parametrize(
    ("condition", "word"), [("TOO_MANY_WAYS", "more ways to match"), ("DIVIDE_BY_ZERO", "divide by zero")]
)
def test_what_a_pattern_cannot_compute(condition: str, word: str) -> None:
    text = f"PythonException: PatternError: LEAT_PATTERN {condition} LEAT_PATTERN_END\n  File x"
    failure = classify([Link("PythonException", text, "PYTHON_EXCEPTION")], SPEC)
    assert (failure.code, failure.condition, failure.retryable) == ("job-failed", condition, False)
    assert word in failure.detail


def test_a_source_that_went_is_named() -> None:
    assert "does not exist any more" in source_gone(SOURCE, recreated=False).detail
    assert "created again" in source_gone(SOURCE, recreated=True).detail


def test_an_undecodable_record_is_named_and_read_again() -> None:
    """The driver looks at the record only after the failure, and says which column is to blame."""
    failure = classify([Link("x", f"[USER_RAISED_EXCEPTION] {MARK}")], SPEC)
    assert str(failure.record) == "t:1:42"
    asked: list[object] = []

    class Store:
        def records_at(self, source: SourceSpec, position: Mapping[str, Any], _: float) -> Iterator[Record]:
            asked.append((source.entity, position["partition"], position["offset"]))
            yield Record(None, b'{"a":"yesterday"}', 1, 42, None)

    told = with_record_faults(failure, SPEC, lambda _: Store())  # type: ignore[arg-type, return-value]
    assert asked == [("t", 1, 42)]
    assert told.shown == (
        "The record at topic t, partition 1, offset 42 is not JSON with the columns of d.s.r: "
        'column a is BIGINT, the record has the string "yesterday".'
    )
    assert "yesterday" not in told.detail  # which is logged
    body = told.as_json()
    assert (body["detail"], body["shown"]) == (told.detail, told.shown)
    assert body["record"] == {"entity": "t", "partition": "1", "offset": "42"}
    assert body["columns"] == ["a"]
    quiet = with_record_faults(failure, SPEC.model_copy(update={"excerpts": False}), lambda _: Store())  # type: ignore[arg-type, return-value]
    assert "yesterday" not in str(quiet.as_json())


def test_a_record_that_cannot_be_read_again_leaves_the_engines_words() -> None:
    failure = classify(
        [Link("x", MARK.replace("} LEAT", '} {"reason":"its key cannot be read"} LEAT'))], SPEC
    )

    def away(_: StoreRef) -> Connector:
        raise StoreError("store-unreachable", "away")

    told = with_record_faults(failure, SPEC, away)
    assert told.detail.endswith("with the columns of d.s.r: its key cannot be read.")
    assert told.columns == ()


CAST = (
    '[CAST_INVALID_INPUT] The value \'{}\' of the type "STRING" cannot be cast to "BIGINT" because it is malformed.'
    " Correct the value as per the syntax. SQLSTATE: 22018"
)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("k", "abc", 'the string "abc" is no BIGINT'),
        ("k", "it's, o'clock", "the string \"it's, o'clock\" is no BIGINT"),
        ("password", "hunter2", None),
        ("k", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "the string of 32 characters (not shown) is no BIGINT"),
    ],
)
def test_a_value_that_cannot_be_computed_names_the_expression(
    column: str, value: str, shown: str | None
) -> None:
    fragment = f"CAST(`t0`.`{column}` AS BIGINT)"
    spec = SPEC.model_copy(update={"sql": f"SELECT {fragment} AS x FROM leat_src_0 AS `t0`"})
    context = (7, 6 + len(fragment), fragment)
    chain = [
        Link("StreamingQueryException", CAST.format(value)),
        Link("x", CAST.format(value), "CAST_INVALID_INPUT", (), context),
    ]
    failure = classify(chain, spec)
    assert value not in failure.detail
    assert failure.span == context[:2]
    body = failure.as_json()
    assert "a text is no value of the type that it is cast to" in body["detail"]
    assert (shown is None) == ("shown" not in body)
    assert (shown or "") in body.get("shown", "")
    assert ("hunter2" in str(body), "sk_live" in str(body)) == (False, False)
    # The words of other SQL than the job's have no place in it.
    assert classify([Link("x", "", "DIVIDE_BY_ZERO", (), (0, 3, "1/0 "))], spec).span is None


@pytest.mark.parametrize(
    ("timestamp", "value", "told"),
    [
        ("t", b'{"a": 1, "t": "tomorrow"}', 'column t is VARCHAR, the record has the string "tomorrow"'),
        ("t", b'{"t": "tomorrow", "a": "x"}', 'column a is BIGINT, the record has the string "x"'),
    ],
)
def test_an_event_time_that_is_none_is_told(timestamp: str, value: bytes, told: str) -> None:
    columns = [*COLUMNS, ColumnSpec(name="t", type="VARCHAR")]
    source = SOURCE.model_copy(update={"columns": columns, "timestamp": timestamp})
    spec = SPEC.model_copy(update={"sources": [source]})

    class Store:
        def records_at(self, *_: object) -> Iterator[Record]:
            yield Record(None, value, 1, 42, None)

    failure = with_record_faults(classify([Link("x", MARK)], spec), spec, lambda _: Store())  # type: ignore[arg-type, return-value]
    assert failure.shown is not None
    assert told in failure.shown

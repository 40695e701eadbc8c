"""Which entity is missing, where Kafka's client only says that some topic is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.jobs.test_failures import SPEC

from leatstream.errors import StoreError
from leatstream.plan.job_spec import StoreRef
from leatstream_jobs.attempt.failures import Failure, Link, classify
from leatstream_jobs.attempt.missing_entities import with_missing_entity

NO_TOPIC = Link(
    "org.apache.kafka.common.errors.UnknownTopicOrPartitionException",
    "This server does not host this topic-partition.",
)
NOT_IN_METADATA = Link(
    "org.apache.kafka.common.errors.TimeoutException", "Topic o not present in metadata after 60000 ms."
)


class Cluster:
    """A store with some topics; None does not answer."""

    def __init__(self, *topics: str | None) -> None:
        self._topics = topics

    def incarnation(self, entity: str) -> str | None:
        if self._topics == (None,):
            raise StoreError("store-unreachable", "No broker answers.")
        return entity if entity in self._topics else None


def named(link: Link, *topics: str | None) -> Failure:
    def connect(store: StoreRef) -> Any:
        return Cluster(*topics)

    return with_missing_entity(classify([link], SPEC), [link], SPEC, connect)


@pytest.mark.parametrize("link", [NO_TOPIC, NOT_IN_METADATA])
def test_a_sink_that_was_deleted_is_not_taken_for_a_source(link: Link) -> None:
    failure = named(link, "t")
    assert (failure.code, failure.condition, failure.retryable) == ("job-failed", "SINK_ENTITY_GONE", False)
    assert failure.detail == "The sink's entity o of d.s.o in store s does not exist any more."


def test_a_source_that_was_deleted_is_named() -> None:
    failure = named(NO_TOPIC, "o")
    assert (failure.code, failure.condition) == ("source-gone", "SOURCE_ENTITY_GONE")
    assert failure.detail.startswith("Entity t of d.s.r in store s")


@pytest.mark.parametrize("topics", [("t", "o"), (None,)])
def test_without_a_missing_entity_the_failure_stays_as_it_is(topics: tuple[str | None, ...]) -> None:
    assert named(NO_TOPIC, *topics) == classify([NO_TOPIC], SPEC)


def test_other_failures_ask_no_store() -> None:
    link = Link("java.lang.IllegalStateException", "x")
    assert named(link) == classify([link], SPEC)

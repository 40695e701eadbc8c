from __future__ import annotations

from dataclasses import replace

import pytest

from leatstream.connectors.entities import Entity
from leatstream.connectors.registry import PLANNED, connector_classes
from leatstream.errors import RequestError
from leatstream.inference.sink_properties import LeftMostSource, SinkRequest, infer_sink_properties
from leatstream.model.objects import Origin

KIND_PROPERTIES = {
    kind: found.entity_properties for kind, found in connector_classes().items()
} | dict.fromkeys(PLANNED, ())
TOPIC = Entity("pageviews", {"topic.partitions": 6, "topic.replicas": 3})
STREAM = Entity("pageviews", {"topic.shards": 4})
KAFKA = LeftMostSource("demo.public.pageviews", "kafka", TOPIC)
KINESIS = LeftMostSource("demo.public.pageviews_kinesis", "kinesis", STREAM)


def request(kind: str, **more: object) -> SinkRequest:
    return SinkRequest(kind=kind, store="sink_store", declared=KIND_PROPERTIES[kind], **more)  # type: ignore[arg-type]


def values(request: SinkRequest) -> dict[str, tuple[object, str]]:
    return {k: (v.value, v.origin.value) for k, v in infer_sink_properties(request).items()}


def refusal(request: SinkRequest) -> RequestError:
    with pytest.raises(RequestError) as caught:
        infer_sink_properties(request)
    return caught.value


def test_kafka_to_kafka_takes_the_left_most_sources_numbers() -> None:
    found = infer_sink_properties(request("kafka", left_most=KAFKA))
    assert {k: v.as_json() for k, v in found.items()} == {
        "topic.partitions": {"value": 6, "origin": "left_most_source", "from": "demo.public.pageviews"},
        "topic.replicas": {"value": 3, "origin": "left_most_source", "from": "demo.public.pageviews"},
    }


def test_kinesis_to_kafka_names_both_properties_and_both_kinds() -> None:
    error = refusal(request("kafka", left_most=KINESIS))
    assert error.code == "property-required"
    assert error.sqlstate == "3D021"
    for word in (
        "topic.partitions",
        "topic.replicas",
        "kafka sink",
        "demo.public.pageviews_kinesis",
        "kinesis",
    ):
        assert word in error.detail
    assert "'topic.partitions' = 1, 'topic.replicas' = 1" in (error.faults[0].hint or "")


@pytest.mark.parametrize(
    ("sink", "left", "expected"),
    [
        ("kinesis", KINESIS, {"topic.shards": (4, "left_most_source")}),
        (
            "kafka",
            KAFKA,
            {"topic.partitions": (6, "left_most_source"), "topic.replicas": (3, "left_most_source")},
        ),
    ],
)
def test_the_join_order_that_infers(sink: str, left: LeftMostSource, expected: dict[str, object]) -> None:
    assert values(request(sink, left_most=left)) == expected


@pytest.mark.parametrize(
    ("sink", "left", "missing"), [("kinesis", KAFKA, "topic.shards"), ("kafka", KINESIS, "topic.partitions")]
)
def test_the_other_join_order_demands(sink: str, left: LeftMostSource, missing: str) -> None:
    assert missing in refusal(request(sink, left_most=left)).detail


def test_explicit_wins_over_the_source() -> None:
    found = values(request("kafka", left_most=KAFKA, explicit={"topic.partitions": 2, "topic.replicas": 1}))
    assert found == {"topic.partitions": (2, "explicit"), "topic.replicas": (1, "explicit")}


def test_one_explicit_one_inferred() -> None:
    found = values(request("kafka", left_most=KAFKA, explicit={"topic.replicas": 1}))
    assert found == {"topic.partitions": (6, "left_most_source"), "topic.replicas": (1, "explicit")}


def test_only_what_is_missing_is_demanded() -> None:
    error = refusal(request("kafka", left_most=KINESIS, explicit={"topic.replicas": 1}))
    assert "topic.partitions must be given" in error.detail
    assert "topic.replicas" not in error.detail


def test_an_existing_entity_gives_its_own_values_whatever_the_source() -> None:
    existing = Entity("out", {"topic.partitions": 9, "topic.replicas": 1})
    found = infer_sink_properties(request("kafka", left_most=KINESIS, existing=existing))
    assert found["topic.partitions"].as_json() == {
        "value": 9,
        "origin": Origin.EXISTING_ENTITY.value,
        "from": "sink_store/out",
    }


def test_explicit_values_equal_to_the_existing_entity_pass() -> None:
    existing = Entity("out", {"topic.partitions": 9, "topic.replicas": 1})
    found = values(request("kafka", existing=existing, explicit={"topic.partitions": 9}))
    assert found["topic.partitions"] == (9, "explicit")


def test_explicit_values_unlike_the_existing_entity_are_all_told() -> None:
    existing = Entity("out", {"topic.partitions": 9, "topic.replicas": 1})
    error = refusal(
        request("kafka", existing=existing, explicit={"topic.partitions": 3, "topic.replicas": 2})
    )
    assert error.code == "invalid-property"
    assert [
        f.detail for f in error.faults if "which has 9" in f.detail or "which has 1" in f.detail
    ].__len__() == 2


def test_more_replicas_than_brokers_is_told_with_the_count() -> None:
    error = refusal(request("kafka", left_most=KAFKA, limits={"topic.replicas": 1}))
    assert "topic.replicas = 3" in error.detail
    assert "1 broker" in error.detail
    error = refusal(
        request("kafka", explicit={"topic.partitions": 1, "topic.replicas": 2}, limits={"topic.replicas": 1})
    )
    assert "more than store 'sink_store' can give" in error.detail


def test_on_demand_kinesis_has_no_fixed_count() -> None:
    left = replace(KINESIS, entity=Entity("pageviews", {"topic.shards": None}))
    assert "no fixed value" in refusal(request("kinesis", left_most=left)).detail


def test_a_source_that_is_gone_is_not_guessed() -> None:
    error = refusal(request("kafka", left_most=replace(KAFKA, entity=None)))
    assert "gone" in error.detail


def test_no_source_and_no_entity() -> None:
    error = refusal(request("kafka", entity="orderz", reader="stream d.p.o", near="orders"))
    assert error.detail == "'orderz', which stream d.p.o reads, does not exist in store 'sink_store'."
    assert "Did you mean 'orders'?" in str(error.faults[0].hint)
    alone = refusal(request("kafka", entity="e"))
    assert alone.detail.endswith("must be given to create entity 'e' in store 'sink_store'.")


def test_a_property_of_another_kind_is_refused_with_those_that_fit() -> None:
    error = refusal(request("kafka", left_most=KAFKA, explicit={"topic.shards": 2}))
    assert error.code == "invalid-property"
    assert "topic.partitions" in error.detail


def test_too_small() -> None:
    assert "at least 1" in refusal(request("kafka", left_most=KAFKA, explicit={"topic.partitions": 0})).detail


@pytest.mark.parametrize("kind", sorted(KIND_PROPERTIES))
@pytest.mark.parametrize("left_kind", sorted(KIND_PROPERTIES))
def test_every_pair_of_kinds(kind: str, left_kind: str) -> None:
    declared = KIND_PROPERTIES[kind]
    left_entity = Entity("e", {p.name: 5 for p in KIND_PROPERTIES[left_kind]})
    asked = request(kind, left_most=LeftMostSource("d.s.r", left_kind, left_entity))
    if not declared:
        assert values(asked) == {}
    elif kind == left_kind:
        assert values(asked) == {p.name: (5, "left_most_source") for p in declared}
    else:
        error = refusal(asked)
        assert all(p.name in error.detail for p in declared)
        assert left_kind in error.detail
    assert values(replace(asked, explicit={p.name: 7 for p in declared})) == {
        p.name: (7, "explicit") for p in declared
    }

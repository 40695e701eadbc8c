"""The capability matrix says what the classes can do."""

from __future__ import annotations

from dataclasses import fields

from leatstream.connectors.base import Connector
from leatstream.connectors.capabilities import Capabilities
from leatstream.connectors.capability_page import _ROWS, matrix, page
from leatstream.connectors.registry import PLANNED, connector_classes
from leatstream.rest.schemas.server import CapabilitiesView


def test_every_kind_of_the_scope_has_a_row() -> None:
    rows = {row["kind"]: row for row in matrix(connector_classes())}
    assert set(rows) == {*connector_classes(), *PLANNED}
    assert {kind for kind, row in rows.items() if row["built"]} == set(connector_classes())
    assert rows["kinesis"]["properties"] == ["topic.shards"]


def test_what_a_class_claims_it_has() -> None:
    for kind, found in connector_classes().items():
        claims = found.capabilities
        assert claims.insert_values is (found.write_records is not Connector.write_records), kind
        batchwise = found.write_batch is not Connector.write_batch or found.tables or found.takes_rows
        assert claims.batches is batchwise, kind
        assert found.streams is (found.write_stream is not Connector.write_stream), kind
        assert found.tables is (found.table_writer is not Connector.table_writer), kind
        assert found.takes_rows is (found.row_writer is not Connector.row_writer), kind
        assert bool(claims.delivery) is claims.sink, kind
        assert claims.create_as is (claims.sink and claims.create_entity), kind
        assert claims.view is (found.show_view is not Connector.show_view), kind
        assert not claims.view_swap or found.create_view_rows is not Connector.create_view_rows, kind


def test_page_and_rest_tell_every_capability() -> None:
    known = {one.name for one in fields(Capabilities)}
    assert known - {"delivery", "verified_on", "unverified"} == set(_ROWS)
    assert known <= set(CapabilitiesView.model_fields)


def test_every_kind_says_what_it_was_tested_against() -> None:
    assert all(found.capabilities.verified_on for found in connector_classes().values())


def test_the_page_names_what_is_missing() -> None:
    text = page(connector_classes())
    assert ("refused by name" in text) is bool(PLANNED)
    assert "| kinesis | at_least_once |" in text
    assert "| s3 | exactly_once |" in text

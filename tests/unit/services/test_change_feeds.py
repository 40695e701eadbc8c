"""When people are told that a database keeps its log for a query."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.errors import RequestError
from leatstream.model.objects import Meta, Query, QueryKind, QueryState, QueryStatus
from leatstream.services.planning.change_feeds import FAR_BEHIND, NEARLY_LOST, behind, refuse_second_readers

NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = Meta(id="qry_1", generation=1, created_at=NOW, updated_at=NOW, created_by="a", owner="o")
SOURCE = {"store": {"name": "pg"}, "entity": "t", "feed": {"slot": None}}


def query(state: QueryState, **slot: Any) -> Query:
    metrics = {"sources": [{"relation": "r"}, {"relation": "s", "slot": {"name": "leat_1", **slot}}]}
    return Query(
        meta=META,
        name="q",
        kind=QueryKind.CREATE_CHANGELOG_AS,
        sql="",
        statement_hash="",
        context={},
        sources=(),
        sink="",
        job={"sources": [{**SOURCE, "feed": None}, SOURCE]},
        status=QueryStatus(state=state, metrics=metrics),
    )


@pytest.mark.parametrize(
    ("kept", "left", "told"),
    [
        (FAR_BEHIND - 1, None, False),
        (FAR_BEHIND, None, True),
        (0, NEARLY_LOST, False),
        (0, NEARLY_LOST - 1, True),
    ],
)
def test_a_running_query_that_is_far_behind(kept: int, left: int | None, told: bool) -> None:
    found = behind(query(QueryState.RUNNING, kept_bytes=kept, left_bytes=left))
    assert ["slot leat_1 makes the server keep" in text for text in found] == [True] * told
    assert all(("it is lost after" in text) is (left is not None) for text in found)


@pytest.mark.parametrize("state", [QueryState.STOPPED, QueryState.FAILED])
def test_nobody_reads_for_a_query_that_does_not_run(state: QueryState) -> None:
    (text,) = behind(query(state))
    assert text.startswith('store "pg" keeps its log for the slot of t') or text.startswith("store pg keeps")
    assert behind(replace(query(state), job={"sources": []})) == []


@pytest.mark.parametrize(
    ("deleting", "told", "hint"),
    [
        (False, "read by query q; a slot has one reader", "Name another slot, or none"),
        (True, "read by query q, which is being deleted", "Wait until it is gone"),
    ],
)
def test_a_slot_that_another_query_reads(deleting: bool, told: str, hint: str) -> None:
    """A query that is being deleted has its slot until it is gone, and then it is free."""
    store = {"name": "pg", "config": {"host": "h"}}
    job = {"sources": [{"store": store, "entity": "t", "feed": {"slot": "mine"}}]}
    other = replace(query(QueryState.STOPPED), job=job, deleting=deleting)
    unit: Any = SimpleNamespace(
        unfiltered=SimpleNamespace(queries=SimpleNamespace(page=lambda *, limit: [other]))
    )
    planned: Any = SimpleNamespace(model_dump=lambda *, mode: job)
    with pytest.raises(RequestError) as caught:
        refuse_second_readers(unit, planned, None)
    (fault,) = caught.value.faults
    assert (fault.code, told in fault.detail) == ("invalid-property", True), fault
    assert (fault.hint or "").startswith(hint)

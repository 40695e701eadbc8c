"""``leat relation sample``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

PLACE = {"partition": 0, "timestamp": 0, "key": "k"}
SAMPLE = {
    "relation": "d.s.r",
    "columns": [{"name": "id", "type": "BIGINT"}, {"name": "price", "type": "DECIMAL(4, 2)"}],
    "records": [
        {**PLACE, "offset": 7, "outcome": "row", "row": [9007199254740993, "1.50"], "reason": None},
        {**PLACE, "offset": 6, "outcome": "undecodable", "row": None, "reason": "it is empty"},
        {**PLACE, "offset": 5, "outcome": "passed_over", "row": None, "reason": "…"},
    ],
    "note": "more",
}


def test_a_sample_shows_rows_and_reasons(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/relations/d.s.r/sample", SAMPLE)
    done = leat("relation", "sample", "d.s.r", "--limit", "3", "--from", "earliest", "-o", "csv")
    assert (done.status, done.err) == (0, "more\n")
    assert done.out.splitlines() == [
        "place,time,key,not a row,id,price",
        "0:7,1970-01-01T00:00:00.000+00:00,k,,9007199254740993,1.50",
        "0:6,1970-01-01T00:00:00.000+00:00,k,it is empty,,",
        "0:5,1970-01-01T00:00:00.000+00:00,k,has no value,,",
    ]
    assert dict(service.requests[-1].url.params) == {"limit": "3", "from": "earliest"}


def test_a_sample_for_programs(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/relations/d.s.r/sample", SAMPLE)
    assert json.loads(leat("relation", "sample", "d.s.r", "-o", "json").out) == SAMPLE
    lines = leat("relation", "sample", "d.s.r", "-o", "ndjson").out.splitlines()
    assert [json.loads(line) for line in lines] == SAMPLE["records"]


def test_rows_of_a_table_have_no_place(service: Service, leat: Leat) -> None:
    row = {"partition": None, "offset": None, "outcome": "row", "row": [1, "1.50"]}
    service.answer("GET", "/v1/relations/d.s.r/sample", {**SAMPLE, "records": [row], "note": None})
    assert leat("relation", "sample", "d.s.r", "-o", "csv").out == "id,price\n1,1.50\n"

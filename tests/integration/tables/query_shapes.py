"""Which shapes of query reach a table, and what it holds after each run: a case for each shape, for each kind.

Rows of a stream that are appended, and changelogs that are passed on with their deletions, are in ``sink_suite``.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from postgres_server import PASSWORD
from short_form import later
from table_run import ITEMS_COLUMNS, Row, TableRun, TableServer

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.registry import open_connector
from leatstream.errors import Position
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import MemberSpec
from leatstream.services.planning.table_sinks import check_table

Records = dict[str, list[list[Any]]]


@dataclass(frozen=True)
class Shape:
    """A query, and what it makes of some records.

    Attributes:
        select: what is behind ``AS``.
        relations: that it reads.
        runs: the records of each run, and the table's rows behind it, in any order.
        makes: what the query creates.
        other: another SELECT of the same job, which has a table of its own.
        other_rows: what that table holds behind each run.
        items: the row that each run finds in the table ``items`` besides those of the runs before it.
        bounded: whether a run ends by itself, as with ``'query.trigger' = 'available_now'``.
    """

    select: str
    relations: Mapping[str, Mapping[str, Any]]
    runs: Sequence[tuple[Records, list[Row]]]
    makes: str = "CHANGELOG"
    other: str = ""
    other_rows: Sequence[list[Row]] = ()
    items: Sequence[tuple[str, str]] = ()
    bounded: bool = False

    def statement(self, select: str) -> str:
        """The statement with this SELECT."""
        return f"CREATE {self.makes} o WITH ('store'='x') AS {select}"


CHANGES = {"c": {"columns": "id VARCHAR, name VARCHAR", "primary_key": ["id"]}}
SEEN = {"s": {"columns": "name VARCHAR, at TIMESTAMP", "timestamp": "at"}}
VIEWS = {"v": {"columns": "n BIGINT, id VARCHAR"}}
REGIONS = {"r": {"columns": "code VARCHAR, label VARCHAR", "primary_key": ["code"]}}
_TUMBLE = "FROM TUMBLE(s, SIZE 1 MINUTE) GROUP BY window_start, window_end, name"


def changed(*rows: tuple[str, str | None], at: int = 1) -> Records:
    """Changes of ``c``; None deletes."""
    return {"c": [[key, None if name is None else {"id": key, "name": name}, at] for key, name in rows]}


def regions(*rows: tuple[str, str | None]) -> Records:
    """Changes of ``r``; None deletes."""
    return {"r": [[key, None if label is None else {"code": key, "label": label}, 1] for key, label in rows]}


def viewed(*rows: tuple[int, str], at: int) -> Records:
    """Rows of ``v``."""
    return {"v": [[None, {"n": n, "id": key}, at] for n, key in rows]}


def seen(*rows: tuple[str, str]) -> Records:
    """Rows of ``s``: name, and minute and second of its time."""
    return {"s": [[None, {"name": name, "at": f"2026-01-01 00:{time}"}, 1] for name, time in rows]}


def minute(number: int) -> datetime:
    """A minute of that hour."""
    return datetime(2026, 1, 1, 0, number)


SHAPES = {
    "windows": Shape(
        f"SELECT window_start, name, count(*) AS c {_TUMBLE} HAVING count(*) < 3",
        SEEN,
        [
            (
                seen(("a", "00:05"), ("a", "00:10"), ("b", "00:20"), ("a", "01:05")),
                [(minute(0), "a", 2), (minute(0), "b", 1), (minute(1), "a", 1)],
            ),
            (seen(("a", "00:30"), ("b", "00:40")), [(minute(0), "b", 2), (minute(1), "a", 1)]),
        ],
    ),
    "closed windows": Shape(
        f"SELECT window_end, name, count(*) AS c {_TUMBLE}",
        SEEN,
        [
            (seen(("a", "00:05"), ("a", "00:10"), ("a", "01:05")), []),
            (seen(("a", "02:30")), [(minute(1), "a", 2), (minute(2), "a", 1)]),
        ],
        makes="STREAM",
    ),
    "stream and changelog": Shape(
        "SELECT v.n, c.name FROM v LEFT JOIN c ON v.id = c.id",
        VIEWS | CHANGES,
        [
            (changed(("1", "a"), ("2", "b")) | viewed((7, "1"), at=5), [(7, "a")]),
            (
                changed(("1", None), at=7) | viewed((8, "1"), (9, "2"), at=8),
                [(7, "a"), (8, None), (9, "b")],
            ),
        ],
        makes="STREAM",
    ),
    "two changelogs": Shape(
        "SELECT c.id, r.label FROM c LEFT JOIN r ON c.name = r.code",
        CHANGES | REGIONS,
        [
            (changed(("1", "x"), ("2", "y")) | regions(("x", "X")), [("1", "X"), ("2", None)]),
            (
                changed(("1", None), ("3", "x")) | regions(("x", None), ("y", "Y")),
                [("2", "Y"), ("3", None)],
            ),
        ],
    ),
    "changelog's groups": Shape(
        "SELECT name, count(*) AS c FROM c GROUP BY name",
        CHANGES,
        [
            (changed(("1", "a"), ("2", "a"), ("3", "b")), [("a", 2), ("b", 1)]),
            (changed(("1", "b"), ("2", None)), [("b", 2)]),
        ],
    ),
    "lookup": Shape(
        "SELECT c.id, i.label FROM c JOIN items i ON c.name = i.item",
        CHANGES,
        [
            (changed(("1", "x"), ("2", "y"), ("3", "x")), [("1", "X"), ("3", "X")]),
            (changed(("1", "z"), ("2", "y"), ("3", None), ("4", "y")), [("2", "Y"), ("4", "Y")]),
        ],
        items=[("x", "X"), ("y", "Y")],
    ),
    "application": Shape(
        "SELECT id, name FROM c",
        CHANGES,
        [
            (changed(("1", "a"), ("2", "b"), ("3", "c")), [("1", "a"), ("2", "b"), ("3", "c")]),
            (changed(("1", None), ("2", "d"), ("3", "b")), [("2", "d"), ("3", "b")]),
        ],
        other="SELECT id, upper(name) AS name FROM c WHERE name <> 'b'",
        other_rows=[[("1", "A"), ("3", "C")], [("2", "D")]],
    ),
    "bounded runs": Shape(
        "SELECT id, name FROM c",
        CHANGES,
        [
            (changed(("1", "a"), ("2", "b")), [("1", "a"), ("2", "b")]),
            (changed(("1", None), ("3", "c")), [("2", "b"), ("3", "c")]),
        ],
        bounded=True,
    ),
}


APPENDED = ("closed windows", "stream and changelog")
"""Shapes whose rows are appended as those of any stream, which the suite shows; one kind has them in every run."""


class QueryShapes:
    """The cases; a kind provides the fixtures ``server`` and ``start`` of ``TableSinkSuite``."""

    @pytest.fixture
    def items(self, server: TableServer, request: pytest.FixtureRequest) -> Connector:
        """Where rows are looked up: in the same store, or in PostgreSQL if its kind has no lookups."""
        if server.connector().capabilities.lookup:
            return server.connector()
        postgres = request.getfixturevalue("postgres")
        return open_connector("postgres", "items", postgres.config(), {"password": PASSWORD})

    @pytest.mark.parametrize("name", later(SHAPES, APPENDED))
    def test_a_query_of_each_shape(
        self, name: str, start: Callable[..., TableRun], server: TableServer, request: pytest.FixtureRequest
    ) -> None:
        shape = SHAPES[name]
        if not shape.items:
            check(shape, start)
            return
        connector, entity = request.getfixturevalue("items"), f"i_{uuid.uuid4().hex[:8]}"
        entity = server.entity(entity) if connector.kind == server.kind else entity
        with items_table(connector, entity):
            check(shape, start, (connector, entity))


def check(shape: Shape, start: Callable[..., TableRun], items: tuple[Connector, str] | None = None) -> None:
    """Plan a shape's query on the table made for it, and run it over its records, each time as a new attempt."""
    job = start(shape.statement(shape.select), shape.relations, items=items)
    sink, made = job.spec.sink, job.target.find_entity(job.table)
    columns = [Column(c.name, parse_type(c.type), c.not_null) for c in sink.columns]
    check_table(job.target, made, columns, sink.key_columns, Position(1, 1, 0))
    other = start(shape.statement(shape.other), shape.relations) if shape.other else None
    if other is not None:
        own = {name: getattr(other.spec, name) for name in ("query_id", "sql", "sink", "delivery")}
        job.spec = job.spec.model_copy(update={"members": [MemberSpec(query_name="other", **own)]})
    job.spec = job.spec.model_copy(update={"available_now": shape.bounded})
    for number, (records, wanted) in enumerate(shape.runs):
        if items is not None:
            row = dict(zip(("item", "label"), shape.items[number], strict=True))
            items[0].write_records(items[1], [NewRecord(None, json.dumps(row).encode())])
        job.give(records)
        job.run(job.attempt(number + 1))
        assert in_order(job.rows()) == in_order(wanted), f"run {number}"
        if other is not None:
            assert in_order(other.rows()) == in_order(shape.other_rows[number]), f"run {number}"


@contextmanager
def items_table(connector: Connector, entity: str) -> Iterator[None]:
    """A table to look rows up in."""
    columns = parse_type(f"STRUCT<{ITEMS_COLUMNS}>")
    made = [Column(n, t) for n, t in zip(columns.fields, columns.arguments, strict=True)]
    connector.create_table(entity, made, ["item"])
    try:
        yield
    finally:
        connector.drop_entity(entity)


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows in an order of their own."""
    return sorted(rows, key=lambda row: [str(value) for value in row])

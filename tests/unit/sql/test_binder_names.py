"""Names count where a relation takes them, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.errors import Position, RequestError
from leatstream.sql.binder import bind
from leatstream.sql.parser import parse


def bound(sql: str, relation: Any, *, named: bool) -> str:
    (statement,) = parse(f"INSERT INTO x {sql}")
    return bind(statement.select, lambda name: relation, statement.text, named=named).sql


@pytest.fixture
def relation() -> Any:
    from datetime import UTC, datetime

    from leatstream.model.names import Fqn
    from leatstream.model.objects import Column, Meta, Relation, RelationKind
    from leatstream.model.types import parse_type

    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Relation(
        meta=Meta(id="r", generation=1, created_at=now, updated_at=now, created_by="a", owner="b"),
        fqn=Fqn("d", "s", "r"),
        kind=RelationKind.STREAM,
        columns=(Column("n", parse_type("BIGINT")),),
        store="k",
        entity="r",
        value_format="json",
    )


@pytest.mark.parametrize(
    "sql", ["SELECT n, CAST(n AS VARCHAR) FROM r", "SELECT n, n FROM r UNION ALL SELECT n, n FROM r"]
)
def test_a_doubled_name_counts_only_where_names_do(sql: str, relation: Any) -> None:
    assert bound(sql, relation, named=False)
    with pytest.raises(RequestError, match="twice") as caught:
        bound(sql, relation, named=True)
    assert isinstance(caught.value.faults[0].position, Position)
    assert len(caught.value.faults) == 1


def test_the_second_branch_of_a_union_names_nothing(relation: Any) -> None:
    assert bound("SELECT n, n AS m FROM r UNION ALL SELECT n, CAST(n AS BIGINT) FROM r", relation, named=True)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH q AS (SELECT nope AS a FROM pageviews) SELECT a FROM q UNION ALL SELECT a FROM q",
        "CREATE CHANGELOG x AS SELECT a FROM (SELECT b AS a FROM (SELECT nope AS b FROM accounts) p) q",
        "CREATE CHANGELOG x AS SELECT a, n FROM (SELECT a, count(*) AS n FROM (SELECT nope AS a FROM accounts) p "
        "GROUP BY a) q",
    ],
)
def test_a_fault_in_what_is_read_twice_is_told_once(bind_text: Any, sql: str) -> None:
    with pytest.raises(RequestError, match="no column nope") as caught:
        bind_text(sql)
    assert len(caught.value.faults) == 1

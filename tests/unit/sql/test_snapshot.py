"""SELECT over materialized views: what is wrong is told at once and in place, what is not built by name."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from leatstream.errors import RequestError
from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Meta, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.sql.parser import parse
from leatstream.sql.snapshot.compiler import Compiled, compile_select
from leatstream.sql.snapshot.shared import Source
from leatstream.sql.statements import Name, Select

NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="admin", owner="admin")
COLUMNS = {
    "k": "VARCHAR",
    "n": "BIGINT",
    "d": "DECIMAL(10, 2)",
    "r": "DOUBLE",
    "b": "BOOLEAN",
    "at": "TIMESTAMP",
    "day": "DATE",
    "list": "ARRAY<BIGINT>",
    "raw": "BYTES",
    "s": "STRUCT<a BIGINT>",
}
VIEW = Relation(
    meta=META,
    fqn=Fqn("demo", "public", "v"),
    kind=RelationKind.MATERIALIZED_VIEW,
    columns=tuple(Column(n, parse_type(t)) for n, t in COLUMNS.items()),
    store="",
    entity="",
    value_format="",
)


def compiled(text: str, database: Any = "sqlite", oldest: int | None = None) -> Compiled:
    (statement,) = parse(text)
    assert isinstance(statement, Select)

    def resolve(name: Name) -> Source:
        if name.parts[-1] not in ("v", "w"):
            raise RequestError("unknown-relation", f"There is no relation {'.'.join(name.parts)}.")
        return Source(VIEW, "v0.leat_rows", oldest)

    return compile_select(statement.select, resolve, database, NOW)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("unknown-relation", "SELECT a FROM »nothing«"),
        ("unknown-column", "SELECT »m« FROM v"),
        ("unknown-relation", "SELECT »x.*« FROM v"),
        ("ambiguous-column", "SELECT »k« FROM v a JOIN v b ON a.n = b.n"),
        ("type-mismatch", "SELECT k FROM v WHERE k = »n«"),
        ("type-mismatch", "SELECT k FROM v WHERE »n«"),
        ("type-mismatch", "SELECT »k« + 1 AS a FROM v"),
        ("type-mismatch", "SELECT k FROM v WHERE at > »'noon'«"),
        ("type-mismatch", "SELECT CAST(»'20260101'« AS DATE) AS a FROM v"),
        ("type-mismatch", "SELECT k FROM v WHERE at > »'2026-W01-1'«"),
        ("type-mismatch", "SELECT k || »n« AS a FROM v"),
        ("type-mismatch", "SELECT CASE WHEN b THEN k ELSE »n« END AS a FROM v"),
        ("type-mismatch", "SELECT »upper«(k, k) AS a FROM v"),
        ("type-mismatch", "SELECT upper(»n«) AS a FROM v"),
        ("type-mismatch", "SELECT sum(»k«) AS a FROM v"),
        ("type-mismatch", "SELECT »date_trunc«('eon', at) AS a FROM v"),
        ("type-mismatch", "SELECT date_trunc('month', »-3«) AS a FROM v"),
        ("type-mismatch", "SELECT year(»TRUE«) AS a FROM v"),
        ("sql-syntax", "SELECT k FROM v »LIMIT« k"),
        ("type-mismatch", "SELECT k FROM v UNION ALL »SELECT k, n FROM v«"),
        ("type-mismatch", "SELECT k FROM v UNION ALL »SELECT n FROM v«"),
        ("type-mismatch", "SELECT k FROM v WHERE n IN (»SELECT k, n FROM v«)"),
        ("not-grouped", "SELECT »k«, count(*) AS a FROM v"),
        ("not-grouped", "SELECT »k« FROM v GROUP BY n"),
        ("not-grouped", "SELECT k FROM v WHERE »count«(*) > 1"),
        ("not-grouped", "SELECT sum(»max«(n)) AS a FROM v"),
        ("not-grouped", "SELECT k FROM v GROUP BY k, »1«"),
        ("not-grouped", "SELECT k FROM v GROUP BY k ORDER BY »n«"),
        ("unknown-column", "SELECT k FROM v ORDER BY »2«"),
        ("unsupported", "SELECT »stddev«(n) AS a FROM v"),
        ("unsupported", "SELECT »uper«(k) AS a FROM v"),
        ("unsupported", "SELECT »s->a« FROM v"),
        ("unsupported", "SELECT »list[1]« AS a FROM v"),
        ("unsupported", "SELECT max(»raw«) AS a FROM v"),
        ("unsupported", "SELECT »list < list« AS a FROM v"),
        ("unsupported", "SELECT »TRY_CAST(k AS BIGINT)« AS a FROM v"),
        ("unsupported", "SELECT »CAST(r AS VARCHAR)« AS a FROM v"),
        ("unsupported", "SELECT k FROM TUMBLE(»v«, SIZE 1 MINUTE)"),
        ("unsupported", "SELECT k FROM v »EXCEPT« ALL SELECT k FROM v"),
        ("unsupported", "SELECT k FROM v UNION SELECT k FROM v »INTERSECT« ALL SELECT k FROM v"),
        ("type-mismatch", "SELECT k FROM v INTERSECT »SELECT n FROM v«"),
        ("unsupported", "SELECT a.k FROM v a, v b »RIGHT JOIN v c ON b.k = c.k«"),
        ("unknown-column", "SELECT k FROM v a WHERE EXISTS (SELECT 1 FROM v b WHERE b.n = »a.n«)"),
        ("unsupported", "SELECT k FROM v WHERE n > »(SELECT max(n) AS n FROM v)«"),
        ("unsupported", "SELECT DISTINCT k FROM v ORDER BY »n«"),
        ("unsupported", "SELECT »(SELECT k FROM v)« AS a FROM v"),
        ("type-mismatch", f"SELECT k FROM v WHERE n > »{'9' * 5000}«"),
        ("type-mismatch", f"SELECT k FROM v WHERE n > -»{'9' * 39}«"),
        ("type-mismatch", f"SELECT k FROM v WHERE d > »1.{'0' * 38}«"),
        ("type-mismatch", f"SELECT at + »INTERVAL '{'9' * 400}' DAY« AS a FROM v"),
        ("type-mismatch", f"SELECT at - »INTERVAL '{'9' * 400}' MONTH« AS a FROM v"),
        ("type-mismatch", "SELECT at - »INTERVAL '+-5' MONTH« AS a FROM v"),
        ("unknown-column", f"SELECT k FROM v ORDER BY »{'9' * 5000}«"),
        ("ambiguous-column", "SELECT »x.k« FROM (SELECT a.k, b.k FROM v a JOIN v b ON a.n = b.n) x"),
        ("ambiguous-column", "SELECT »*« FROM (SELECT k, n AS k FROM v) x"),
        ("unsupported", "SELECT a.k FROM v a »JOIN v b WITHIN 5 MINUTES ON a.k = b.k«"),
    ],
)
def test_faults(code: str, text: str) -> None:
    offset, end = text.index("»"), text.index("«") - 1
    with pytest.raises(RequestError) as told:
        compiled(text.replace("»", "").replace("«", ""))
    fault = told.value.faults[0]
    assert fault.code == code, fault.detail
    assert fault.position is not None
    assert (fault.position.offset, fault.position.offset + fault.position.length) == (offset, end)
    assert fault.hint or fault.code != "unsupported", fault.detail


def test_every_fault_is_told() -> None:
    with pytest.raises(RequestError) as told:
        compiled("SELECT m, uper(k) AS a, n + k AS b FROM v WHERE o = 1 ORDER BY p")
    assert [f.code for f in told.value.faults] == [
        "unknown-column",
        "unsupported",
        "type-mismatch",
        "unknown-column",
        "unknown-column",
    ]
    assert told.value.faults[1].hint == "Did you mean upper?"


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_what_the_user_wrote_is_no_part_of_the_sql(database: str) -> None:
    evil = "x''); DROP TABLE leat_rows; --"
    made = compiled(f"SELECT k AS \"{evil}\" FROM v WHERE k = '{evil}' OR k LIKE '{evil}'", database)
    assert "DROP" not in made.sql
    assert made.columns[0][0] == evil
    assert evil.replace("''", "'") in made.parameters


def test_retention_is_kept_to_the_moment() -> None:
    made = compiled("SELECT k FROM v", oldest=7)
    assert "leat_time >= ?1" in made.sql
    assert list(made.parameters) == [7]


def test_result_types() -> None:
    made = compiled("SELECT n + 1 AS a, d * d AS b, d / 3 AS c, n / 2 AS e, sum(d) AS f FROM v GROUP BY n, d")
    assert [str(kind) for _, kind in made.columns] == [
        "BIGINT",
        "DECIMAL(21, 4)",
        "DECIMAL(14, 6)",
        "BIGINT",
        "DECIMAL(20, 2)",
    ]


def test_a_negative_literal_keeps_every_digit() -> None:
    made = compiled("SELECT k FROM v WHERE d = -1234567890123456789012345678901.5", "postgresql")
    assert list(made.parameters) == [Decimal("-1234567890123456789012345678901.5")]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_many_arguments_make_a_text_as_long(database: str) -> None:
    """SQLite's form once doubled with each."""
    made = compiled("SELECT greatest(" + ", ".join(["n"] * 250) + ") AS g FROM v", database)
    assert len(made.sql) < 5_000


def with_chain(steps: int, reads: int) -> str:
    """Each name of WITH reads the one before it several times."""
    parts = ["c0 AS (SELECT k FROM v)"]
    for i in range(1, steps):
        joins = " ".join(f"CROSS JOIN c{i - 1} a{j}" for j in range(1, reads))
        parts.append(f"c{i} AS (SELECT a0.k FROM c{i - 1} a0 {joins})")
    return f"WITH {', '.join(parts)} SELECT k FROM c{steps - 1}"


def nested(form: str, times: int) -> str:
    text = "k"
    for _ in range(times):
        text = form.format(text)
    return f"SELECT {text} AS a FROM v"


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    "text",
    [
        with_chain(15, 3),
        nested("right({0}, length({0}))", 9),
        nested("substring({0}, length({0}), 2)", 9),
        "SELECT k FROM v WHERE n IN " + "(SELECT n FROM v WHERE n IN " * 14 + "(1)" + ")" * 14,
    ],
    ids=["with", "right", "substring", "in"],
)
def test_what_is_written_has_a_bound(text: str, database: str) -> None:
    with contextlib.suppress(RequestError):
        assert len(compiled(text, database).sql) <= 1_000_000


def test_a_chain_of_with_that_is_too_long_is_told() -> None:
    with pytest.raises(RequestError) as told:
        compiled(with_chain(8, 3))
    assert told.value.code == "too-complex"
    assert told.value.faults[0].detail.startswith(
        "This SELECT over materialized views consists of more than 500"
    )
    assert len(compiled(with_chain(5, 3)).sql) < 100_000


def test_zeros_before_a_number_do_not_count() -> None:
    assert compiled(f"SELECT k FROM v WHERE n > {'0' * 5000}7").sql.endswith("> 7)")


def test_a_limit_of_many_digits_is_told() -> None:
    with pytest.raises(RequestError) as told:
        parse(f"SELECT k FROM s LIMIT {'9' * 5000}")
    assert told.value.faults[0].detail.startswith("LIMIT must be between 1 and")


def test_a_full_join_in_postgresql_needs_an_equality() -> None:
    """Its planner has no other way; the database itself would say so, too late and without a place."""
    text = "SELECT a.k FROM v a FULL JOIN v b ON a.n > b.n"
    assert "FULL JOIN" in compiled(text).sql
    with pytest.raises(RequestError) as told:
        compiled(text, "postgresql")
    fault = told.value.faults[0]
    assert fault.code == "unsupported"
    assert fault.position is not None
    assert text[fault.position.offset :].startswith("FULL JOIN")
    assert "FULL JOIN" in compiled(f"{text} AND a.k = b.k", "postgresql").sql


def test_round_gives_the_digits_that_are_asked_for() -> None:
    made = compiled("SELECT round(d) AS a, round(d, 1) AS b, round(d, 5) AS c, round(d, -1) AS e FROM v")
    shown = [str(kind) for _, kind in made.columns]
    assert shown == ["DECIMAL(9, 0)", "DECIMAL(10, 1)", "DECIMAL(11, 2)", "DECIMAL(9, 0)"]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_whole_days_leave_a_date_a_date(database: str) -> None:
    moved = ", ".join(
        f"day + INTERVAL '1' {unit} AS {unit.lower()}s" for unit in ("DAY", "WEEK", "MONTH", "HOUR")
    )
    made = compiled(f"SELECT {moved} FROM v", database)
    assert [str(kind) for _, kind in made.columns] == ["DATE", "DATE", "DATE", "TIMESTAMP_LTZ"]


def test_a_sub_query_is_apart_from_what_is_around_it() -> None:
    with pytest.raises(RequestError) as told:
        compiled(
            "SELECT k FROM v a WHERE k IN (SELECT k FROM v b WHERE EXISTS (SELECT 1 FROM w WHERE w.n = a.n))"
        )
    hint = told.value.faults[0].hint
    assert hint is not None
    assert hint.count("does not see the columns around it") == 1


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_intersect_binds_more_tightly(database: str) -> None:
    part = "SELECT k FROM v WHERE k = '{}'"
    a, b, c, d = (part.format(one) for one in "abcd")
    plain = compiled(f"{a} EXCEPT {b} INTERSECT {c} UNION {d}", database)
    assert plain == compiled(f"(({a}) EXCEPT ({b} INTERSECT {c})) UNION {d}", database)
    assert plain != compiled(f"(({a} EXCEPT {b}) INTERSECT {c}) UNION {d}", database)
    assert "UNION ALL" not in plain.sql


def test_types_of_numbers_of_single_precision() -> None:
    f = "CAST(d AS FLOAT)"
    made = compiled(
        f"SELECT {f} + {f} AS a, {f} / {f} AS b, {f} * n AS c, round({f}) AS e, abs({f}) AS g FROM v"
    )
    assert [str(kind) for _, kind in made.columns] == ["FLOAT", "DOUBLE", "DOUBLE", "FLOAT", "FLOAT"]


def test_nothing_escapes_in_like_unless_it_is_said() -> None:
    text = "SELECT k FROM v WHERE k LIKE 'C:\\Users%'"
    assert " ESCAPE " not in compiled(text).sql
    assert list(compiled(text, "postgresql").parameters)[-1:] == [""]
    assert " ESCAPE " in compiled(f"{text} ESCAPE '!'").sql

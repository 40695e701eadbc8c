"""The function table is whole, and what it says of the arguments is checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from leatstream.errors import RequestError
from leatstream.plan.logical import LogicalPlan
from leatstream.sql.function_page import page
from leatstream.sql.function_table import functions, refusals, table

Bind = Callable[[str], LogicalPlan]


def faults(bind_text: Bind, expression: str) -> list[tuple[str, str, str | None]]:
    with pytest.raises(RequestError) as caught:
        bind_text(f"SELECT {expression} AS a FROM pageviews")
    return [(f.code or "", f.detail, f.hint) for f in caught.value.faults]


def test_no_name_means_two_things() -> None:
    names = [name for f in table() for name in (f.name, *f.aliases)]
    assert len(names) == len(set(names))
    assert not functions().keys() & refusals().keys()


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("upper", 1, 1),
        ("log", 1, 2),
        ("unix_timestamp", 0, 2),
        ("convert_timezone", 2, 3),
        ("concat", 1, None),
        ("array", 0, None),
        ("mask", 1, 5),
        ("pi", 0, 0),
    ],
)
def test_number_of_arguments(name: str, least: int, most: int | None) -> None:
    assert (functions()[name].least, functions()[name].most) == (least, most)


@pytest.mark.parametrize("name", sorted(functions()))
def test_too_many_arguments_are_told(bind_text: Bind, name: str) -> None:
    function = functions()[name]
    if function.most is None or function.aggregate or function.category == "Record" or name == "extract":
        return
    given = ", ".join(["DAY" if name in ("timestampadd", "timestampdiff") else "1", *["1"] * function.most])
    ((code, detail, _),) = faults(bind_text, f"{name}({given})")
    assert code == "type-mismatch" or "TO" in detail or name == "trim", detail


@pytest.mark.parametrize(
    ("expression", "code", "detail", "hint"),
    [
        ("concat_ws()", "type-mismatch", "concat_ws takes at least 1 argument, not 0.", None),
        (
            "lpad('a')",
            "type-mismatch",
            "lpad takes 2 to 3 arguments, not 1.",
            "Write lpad(text, length[, filler]).",
        ),
        ("reverze('a')", "unknown-function", "There is no function reverze.", "Did you mean reverse?"),
        (
            "X'0'",
            "type-mismatch",
            "These are no hexadecimal digits.",
            "Write X'0aff', two digits for each byte.",
        ),
        ("FLOOR(1 TO PARSEC)", "sql-syntax", "Expected a time unit such as HOUR, found PARSEC.", None),
    ],
)
def test_what_is_wrong_is_told(
    bind_text: Bind, expression: str, code: str, detail: str, hint: str | None
) -> None:
    assert faults(bind_text, expression) == [(code, detail, hint)]


@pytest.mark.parametrize(
    "literal",
    [
        "DATE '20260101'",
        "DATE '2026-W01-1'",
        "DATE '2026-02-30'",
        "TIMESTAMP '20260101T120000'",
        "TIMESTAMP '2026-01-01x12:00:00'",
        "TIMESTAMP '2026-01-01 12:00:00,5'",
        "TIMESTAMP '2026-01-01 24:00:00'",
        "TIMESTAMP_LTZ '2026-01-01 12:00+01:00'",
        "TIMESTAMP_LTZ '2026-01-01 12:00:00+23:00'",
        "TIMESTAMP_LTZ '2026-01-01 12:00:00+02:99'",
    ],
)
def test_times_that_spark_cannot_read_are_refused(bind_text: Bind, literal: str) -> None:
    word = literal.split()[0]
    form = "YYYY-MM-DD" if word == "DATE" else "YYYY-MM-DD HH:MM:SS"
    expected = ("type-mismatch", f"This is no {word}.", f"Write {word} '{form}'.")
    assert faults(bind_text, literal) == [expected]


@pytest.mark.parametrize("zone", ["Z", "+02:00", "-0530", ".5+01"])
def test_a_timestamp_has_no_zone(bind_text: Bind, zone: str) -> None:
    text = f"2026-01-01 12:00:00{zone}"
    hint = f"Write TIMESTAMP_LTZ '{text}', or leave the zone out."
    expected = ("type-mismatch", "A TIMESTAMP has no zone.", hint)
    assert faults(bind_text, f"TIMESTAMP '{text}'") == [expected]
    assert (
        f"CAST('{text}' AS TIMESTAMP)" in bind_text(f"SELECT TIMESTAMP_LTZ '{text}' AS a FROM pageviews").sql
    )


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01",
        "2026-01-01 12",
        "2026-01-01 12:30",
        "2026-01-01T12:30:00",
        "2026-01-01 12:30:00.5",
        "2026-01-01 12:30:00.123456789",
    ],
)
def test_a_timestamp_may_leave_its_end_out(bind_text: Bind, text: str) -> None:
    assert f"CAST('{text}' AS TIMESTAMP_NTZ)" in bind_text(f"SELECT TIMESTAMP '{text}' a FROM pageviews").sql


@pytest.mark.parametrize("name", sorted(refusals()))
def test_refusals_give_their_reason(bind_text: Bind, name: str) -> None:
    ((code, detail, _),) = faults(bind_text, f"{name}(1)")
    assert code == "unsupported"
    assert refusals()[name].reason in detail


def test_the_page_shows_every_function() -> None:
    text = page()
    assert all(f"| `{f.shown.replace('|', chr(92) + '|')}`" in text for f in table())


@pytest.mark.parametrize(
    "predicate",
    [
        "viewtime IN (1, 2)",
        "viewtime BETWEEN 1 AND 2",
        "viewtime IS NOT NULL",
        "userid LIKE 'a!%' ESCAPE '!'",
        "userid LIKE 'a'",
    ],
)
def test_a_predicate_keeps_together_in_a_form(bind_text: Bind, predicate: str) -> None:
    written = bind_text(f"SELECT {predicate} AS a FROM pageviews").sql
    written = written.removeprefix("SELECT ").partition(" AS `a`")[0]
    for call in ("json_string", "json_array"):
        assert f" ({written}) IS NOT NULL" in bind_text(f"SELECT {call}({predicate}) AS a FROM pageviews").sql
    group = (
        f"CREATE CHANGELOG c AS SELECT userid, first_value({predicate}) AS a FROM pageviews GROUP BY userid"
    )
    assert f" ({written}) IS NOT NULL" in bind_text(group).sql


def test_a_predicate_that_stands_alone_takes_no_parentheses(bind_text: Bind) -> None:
    """The text of an aggregate is part of the digest by which a group's state is kept."""
    values = "any_value(viewtime IN (1, 2)) AS a, listagg(viewtime IS NOT NULL) AS b"
    sql = bind_text(f"CREATE CHANGELOG c AS SELECT userid, {values} FROM pageviews GROUP BY userid").sql
    assert "any_value(`t0`.`viewtime` IN (1, 2), true)" in sql
    assert "collect_list(CAST(`t0`.`viewtime` IS NOT NULL AS STRING))" in sql


def test_split_index_of_a_negative_index_is_null(bind_text: Bind) -> None:
    """try_element_at counts it from the end, and fails at what was -1."""
    part = "try_element_at(split(`t0`.`d`, concat('\\\\Q', ',', '\\\\E'), -1), ({0}) + 1)"
    for index, shown in (("-1", "- 1"), ("CAST(a AS INTEGER)", "CAST(`t0`.`a` AS INT)")):
        sql = bind_text(f"SELECT split_index(d, ',', {index}) AS x FROM t").sql
        assert f"(CASE WHEN ({shown}) >= 0 THEN {part.format(shown)} END) AS `x`" in sql
    # The text is part of the digests of state, so an index that cannot be negative is asked as ever.
    assert f"SELECT {part.format('2')} AS `x`" in bind_text("SELECT split_index(d, ',', 2) AS x FROM t").sql


@pytest.mark.parametrize(
    "value", ["interests", "array_sort(interests)", "split(userid, ',')", "ARRAY[1, 2]", "u.interests"]
)
def test_an_array_has_no_element_0(bind_text: Bind, value: str) -> None:
    with pytest.raises(RequestError) as caught:
        bind_text(f"SELECT {value}[0] AS a, userid AS b FROM users u WHERE {value}[0] IS NULL")
    expected = (
        "type-mismatch",
        "Arrays count from 1: there is no element 0.",
        "Write [1] for the first one.",
    )
    found = caught.value.faults
    assert [(f.code, f.detail, f.hint) for f in found] == [expected] * 2
    assert [f.position.column for f in found[:1] if f.position] == [8]


def test_a_map_may_have_the_key_0(bind_text: Bind) -> None:
    sql = bind_text(
        "SELECT MAP[0, 'a'][0] AS a, scores['0'] AS b, element_at(interests, 1)[0] AS c FROM users"
    ).sql
    assert "try_element_at(map(0, 'a'), 0)" in sql

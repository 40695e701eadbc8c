"""What binding refuses as nothing could be made of it: groups without a key, and text that grows too long."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.errors import RequestError

_NO_KEY = "has no column that could be the changelog's primary key"
_NOTHING = r"GROUPING_ID\(\) has nothing to tell"
_WINDOWED = "FROM TUMBLE(t, SIZE 1 MINUTE) GROUP BY window_start, window_end, GROUPING SETS (())"


@pytest.mark.parametrize(
    ("sql", "reason", "place"),
    [
        ("SELECT count(*) AS n FROM t GROUP BY GROUPING SETS (())", _NO_KEY, "GROUP BY"),
        ("SELECT count(*) AS n FROM t GROUP BY GROUPING SETS ((), ())", _NO_KEY, "GROUP BY"),
        (
            "SELECT count(*) AS n, GROUPING_ID() AS g FROM t GROUP BY GROUPING SETS (())",
            _NOTHING,
            "GROUPING_ID()",
        ),
        ("SELECT b, GROUPING_ID() AS g FROM t GROUP BY b, GROUPING SETS (())", _NOTHING, "GROUPING_ID()"),
        ("SELECT b, GROUPING(b) AS g FROM t GROUP BY b, GROUPING SETS (())", "GROUPING takes columns", "b"),
        ("SELECT DISTINCT 'x' AS a, 1 AS b FROM t", _NO_KEY, "DISTINCT"),
    ],
)
def test_a_changelog_without_a_key_is_refused(bind_text: Any, sql: str, reason: str, place: str) -> None:
    text = f"CREATE CHANGELOG c AS {sql}"
    with pytest.raises(RequestError, match=reason) as caught:
        bind_text(text)
    at = caught.value.faults[0].position
    assert at is not None
    assert text[at.offset : at.offset + at.length] == place


def test_a_window_is_a_key_of_its_own(bind_text: Any) -> None:
    assert bind_text(f"CREATE STREAM o AS SELECT count(*) AS n {_WINDOWED}").sql
    plan = bind_text(f"CREATE CHANGELOG c AS SELECT window_start, count(*) AS n {_WINDOWED}")
    assert plan.primary_key == ("window_start",)
    with pytest.raises(RequestError, match=_NOTHING):
        bind_text(f"CREATE STREAM o AS SELECT GROUPING_ID() AS g {_WINDOWED}")


def test_the_group_of_all_rows_has_a_key_by_a_column_that_is_the_same_in_all(bind_text: Any) -> None:
    sql = "SELECT part, count(*) AS n FROM (SELECT 'all' AS part, a FROM t) x GROUP BY part"
    assert bind_text(f"CREATE CHANGELOG c AS {sql}").primary_key == ("part",)


@pytest.mark.parametrize("form", ["truncate({})", "json_string({})", "CEIL({} TO DAY)"])
@pytest.mark.parametrize(
    "statement", ["SELECT {0} AS x FROM t", "CREATE CHANGELOG c AS SELECT {0} AS x FROM t GROUP BY {0}"]
)
def test_text_that_multiplies_is_cut_off(bind_text: Any, form: str, statement: str) -> None:
    value = "a"
    for _ in range(40):
        value = form.format(value)
    with pytest.raises(RequestError) as caught:
        bind_text(statement.format(value))
    (fault,) = caught.value.faults
    assert fault.code == "too-complex"
    assert fault.position is not None
    assert fault.hint is not None


def test_what_is_nested_a_little_passes(bind_text: Any) -> None:
    assert bind_text("SELECT truncate(truncate(json_string(json_string(a)))) AS x FROM t").sql


@pytest.mark.parametrize(
    ("word", "hint"), [("FILTER (WHERE b)", "count_if"), ("OVER (PARTITION BY a)", "window functions")]
)
def test_what_stands_behind_a_function_is_refused_with_what_to_write(
    bind_text: Any, word: str, hint: str
) -> None:
    with pytest.raises(RequestError) as caught:
        bind_text(f"CREATE CHANGELOG c AS SELECT a, count(*) {word} AS n FROM t GROUP BY a")
    (fault,) = caught.value.faults
    assert fault.code == "unsupported"
    assert hint in (fault.hint or "")

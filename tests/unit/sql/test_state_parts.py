"""What equal parts say of a state, beyond the edits that Spark has shown (tests/fixtures/changes)."""

from __future__ import annotations

from typing import Any

import pytest

JOINED = "FROM pageviews p JOIN users u WITHIN 1 HOUR ON p.userid = u.userid"
TWICE = f"{JOINED} JOIN users v WITHIN 1 HOUR ON p.pageid = v.userid"


def parts(bind_text: Any, sql: str, kind: str = "STREAM") -> dict[str, str]:
    found: dict[str, str] = bind_text(f"CREATE {kind} o AS {sql}").state
    assert found
    return found


def differing(bind_text: Any, before: str, after: str) -> list[str]:
    """The names of the parts that a change makes others."""
    old, new = (parts(bind_text, sql) for sql in (before, after))
    return [part for part in dict.fromkeys([*old, *new]) if old.get(part) != new.get(part)]


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        # Only conditions of one side read these, so the state has no room for them.
        ("u.gender AS v", "u.regionid AS v", f"{JOINED} WHERE u.gender <> '' AND u.regionid <> ''"),
        ("p.pageid", "p.pageid, u.gender", f"{JOINED} WHERE u.gender = 'F'"),
        ("u.gender AS v", "u.regionid AS v", f"{JOINED} AND u.gender <> '' AND u.regionid <> ''"),
        # Spark may put the literal in, which leaves a condition of one side.
        ("p.viewtime", "p.viewtime, u.regionid", f"{JOINED} WHERE p.pageid = 'x' AND p.pageid = u.regionid"),
        # Of the first of two joins, what nothing reads behind it is let go.
        ("p.userid AS v", "u.userid AS v", TWICE),
        # Of a STRUCT only the fields that are read are kept.
        ("u.contact.phone AS v", "u.contact.city.zip AS v", JOINED),
        ("(u.contact).phone AS v", "(u.contact).phone AS v, u.contact AS w", JOINED),
    ],
)
def test_a_join_keeps_the_columns_that_are_shown(
    bind_text: Any, before: str, after: str, joined: str
) -> None:
    assert differing(bind_text, f"SELECT {before} {joined}", f"SELECT {after} {joined}") == ["columns"]


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("p.pageid, u.gender", "u.gender, upper(p.pageid) AS x", f"{JOINED} WHERE u.gender = 'F'"),
        ("p.userid, u.gender", "u.userid, u.gender", JOINED),
        ("p.pageid, u.gender", "v.userid, u.gender", TWICE),
    ],
)
def test_what_a_join_keeps_may_be_shown_otherwise(
    bind_text: Any, before: str, after: str, joined: str
) -> None:
    assert differing(bind_text, f"SELECT {before} {joined}", f"SELECT {after} {joined}") == []


WINDOWED = (
    "SELECT window_start, pageid, count(*) AS c, max(userid) AS u"
    " FROM TUMBLE(pageviews, SIZE 1 MINUTE) GROUP BY window_start, window_end, pageid"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Spark asks these before it groups.
        ("HAVING pageid = 'a'", "HAVING pageid = 'b'"),
        ("HAVING pageid = 'a'", ""),
        ("HAVING count(*) > 5 AND pageid = 'a'", "HAVING count(*) > 5"),
        ("HAVING (upper(pageid) = 'A' AND count(*) > 5)", "HAVING count(*) > 5"),
        ("HAVING window_start < TIMESTAMP '2026-01-01 00:00:00'", ""),
        ("HAVING FALSE", ""),
        # And what follows from those that name a key beside an aggregate.
        ("HAVING NOT (pageid = 'a' OR count(*) > 5)", "HAVING NOT (pageid = 'b' OR count(*) > 5)"),
        (
            "HAVING max(userid) = 'x' AND pageid = max(userid)",
            "HAVING max(userid) = 'y' AND pageid = max(userid)",
        ),
    ],
)
def test_having_on_keys_is_a_filter_before_groups_that_are_written_once(
    bind_text: Any, before: str, after: str
) -> None:
    old, new = f"{WINDOWED} {before}", f"{WINDOWED} {after}"
    assert differing(bind_text, old, new) == ["filter"]
    changelogs = [parts(bind_text, sql, "CHANGELOG") for sql in (old, new)]
    assert changelogs[0]["filter"] == changelogs[1]["filter"]


def test_having_of_aggregates_is_asked_of_groups(bind_text: Any) -> None:
    key = "HAVING pageid = 'a' AND"
    assert differing(bind_text, f"{WINDOWED} {key} count(*) > 5", f"{WINDOWED} {key} max(userid) > 'x'") == []
    assert differing(bind_text, WINDOWED, f"{WINDOWED} HAVING count(*) > 5 OR max(userid) = 'x'") == []


def test_having_is_not_taken_for_where(bind_text: Any) -> None:
    asked = WINDOWED.replace(" GROUP", " WHERE pageid = 'a' GROUP")
    assert differing(bind_text, asked, f"{WINDOWED} HAVING pageid = 'a'") == ["filter"]

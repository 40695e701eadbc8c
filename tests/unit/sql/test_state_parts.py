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

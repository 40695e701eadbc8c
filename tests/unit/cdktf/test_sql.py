"""Names in braces inside SQL text."""

from __future__ import annotations

import pytest

from leatstream_cdktf._sql import (
    PLAIN_FQN,
    escape_templates,
    fill,
    first_word,
    place_holders,
    quote_exact,
    quote_name,
    quote_property,
    tidy,
)

TOKEN = "${TfToken[TOKEN.7]}"
NAMES = {"pageviews": TOKEN, "users": "demo.public.users"}


def test_declared_names_are_replaced() -> None:
    sql = "SELECT * FROM {pageviews} p JOIN {users} u WITHIN 5 MINUTES ON p.userid = u.userid"
    expected = f"SELECT * FROM {TOKEN} p JOIN demo.public.users u WITHIN 5 MINUTES ON p.userid = u.userid"
    assert fill(sql, NAMES) == expected


def test_a_name_may_come_twice() -> None:
    assert (
        fill("SELECT * FROM {a} UNION ALL SELECT * FROM {a}", {"a": "x"})
        == "SELECT * FROM x UNION ALL SELECT * FROM x"
    )
    assert place_holders("{b} {a} {b}") == ["b", "a"]


@pytest.mark.parametrize(
    "text",
    [
        "'{pageviews}'",
        "'it''s {pageviews}'",
        '"{pageviews}"',
        '"a""{pageviews}"',
        "-- {pageviews}\n",
        "/* {pageviews} {nobody} */",
        "'{\"k\": {}}'",
        "{ 'k': 1 }",
        "{}",
        "{1}",
        "'unclosed {pageviews}",
    ],
)
def test_other_braces_survive(text: str) -> None:
    assert fill(f"SELECT {text}", {}) == f"SELECT {text}"


def test_an_undeclared_name_is_an_error_with_its_place_and_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="did you mean") as caught:
        fill("SELECT *\n  FROM {pageview}", {"pageviews": "x"})
    text = str(caught.value)
    assert "{pageview} at line 2, column 8 is not declared in sources (declared: pageviews)" in text
    assert "did you mean {pageviews}?" in text


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ValueError, match="not declared") as caught:
        fill("SELECT * FROM {a} JOIN {b} ON ${var.x}", {"zebra": "x"})
    text = str(caught.value)
    assert "{a} at line 1, column 15" in text
    assert "{b} at line 1, column 24" in text
    assert "'${' at line 1, column 31 is Terraform's template syntax" in text
    assert "write {name} for a relation" in text
    assert "the source 'zebra' is not used" in text


def test_a_source_inside_quotes_only_is_told_as_unused() -> None:
    with pytest.raises(ValueError, match="outside quotes and comments"):
        fill("SELECT '{pageviews}'", {"pageviews": "x"})


def test_templates_in_literals_are_escaped_and_tokens_kept() -> None:
    assert fill("SELECT '${x}', '%{if}', '$', '100%'", {}) == "SELECT '$${x}', '%%{if}', '$', '100%'"
    assert fill(f"SELECT '{TOKEN} ${{x}}' FROM {TOKEN}", {}) == f"SELECT '{TOKEN} $${{x}}' FROM {TOKEN}"
    assert (
        escape_templates("#{TfToken[TOKEN.1]} &{TfToken[TOKEN.2]}")
        == "#{TfToken[TOKEN.1]} &{TfToken[TOKEN.2]}"
    )


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("select 1", "SELECT"),
        ("  -- note\n /* more\n */ CREATE STREAM x", "CREATE"),
        ("((SELECT 1))", "SELECT"),
        ("WITH a AS (SELECT 1) SELECT 2", "WITH"),
        ("", ""),
        ("-- only a comment", ""),
        ("'x'", ""),
    ],
)
def test_first_word(sql: str, word: str) -> None:
    assert first_word(sql) == word


def test_the_margin_of_a_text_in_triple_quotes_goes() -> None:
    assert tidy("\n        SELECT a,\n          b\n        FROM x\n    ") == "SELECT a,\n  b\nFROM x"
    assert tidy("SELECT a\n    FROM x") == "SELECT a\nFROM x"
    literal = "SELECT 'a\n        b'\n        FROM x"
    assert tidy(f"  {literal}\n") == literal


def test_names_are_quoted_where_they_must_be() -> None:
    assert [quote_name(name) for name in ("a_1$", "Pageviews", 'a"b', "größe", "1a")] == [
        "a_1$", '"Pageviews"', '"a""b"', '"größe"', '"1a"',
    ]  # fmt: skip


def test_a_name_that_only_terraform_knows_is_quoted_in_any_case() -> None:
    assert [quote_exact(name) for name in ("msk", 'a"b', TOKEN, f'x"{TOKEN}')] == [
        '"msk"', '"a""b"', f'"{TOKEN}"', f'"x""{TOKEN}"',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "written"),
    [
        ("store", "MSK", '"MSK"'),
        ("store", 'a"b', '"a""b"'),
        ("store", TOKEN, f'"{TOKEN}"'),
        ("Timestamp", "viewTime", '"viewTime"'),
        ("topic", "Views", "'Views'"),
        ("topic", "it's", "'it''s'"),
        ("timestamp.format", "iso8601", "'iso8601'"),
    ],
)
def test_properties_that_are_names_are_exact(key: str, value: str, written: str) -> None:
    """In single quotes SQL folds them: the store MSK would be msk, which is not there."""
    assert quote_property(key, value) == written


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("demo.public.users", True),
        ('demo."Ü x".u', True),
        ("u", True),
        ("a b", False),
        ("a.b.c.d", False),
        ("", False),
        ("x; DROP STREAM y", False),
        ("(SELECT 1)", False),
    ],
)
def test_full_names(text: str, good: bool) -> None:
    assert bool(PLAIN_FQN.match(text)) is good


def test_long_texts_take_linear_time() -> None:
    text = "SELECT " + "'" * 100_001 + "{" * 100_000
    assert fill(text, {}) == text

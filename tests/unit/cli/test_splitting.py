from __future__ import annotations

import pytest

from leatstream.cli.splitting import is_blank, is_complete


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;",
        "SELECT ';';",
        "SELECT 1; -- done",
        "SELECT 1; /* a ; b */\n",
        'SELECT "a;b";',
        "A; B;",
        ";",
    ],
)
def test_complete(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1",
        "SELECT ';'",
        "SELECT ';",
        "SELECT 'it''s;",
        'SELECT "a;',
        "SELECT 1 -- ;",
        "SELECT 1; /* ;",
    ],
)
def test_incomplete(text: str) -> None:
    assert not is_complete(text)


def test_blank() -> None:
    assert is_blank("  -- only a remark\n ; ;")
    assert not is_blank("x")


def test_an_application_ends_with_its_own_words() -> None:
    """The semicolons inside it end statements, not the text."""
    begun = "BEGIN APPLICATION a USE DATABASE d; INSERT INTO x SELECT 'END APPLICATION;' FROM y;"
    assert not is_complete(begun)
    assert is_complete(f"{begun} end application;")
    assert is_complete("SELECT begin FROM application;")

"""Paths of json_value: what they mean, and what is refused at plan."""

from __future__ import annotations

import pytest

from leatstream.sql.json_paths import UnfitPath, steps_of


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b[0]", ("a", "b", 0)),
        ('$."a.b"', ("a.b",)),
        ('$."a\\"b".c', ('a"b', "c")),
        ("$['a.b']['c']", ("a.b", "c")),
        ('$["it\'s"][12]', ("it's", 12)),
        ("$.größe-2_x", ("größe-2_x",)),
        ('$."".a', ("", "a")),
    ],
)
def test_paths(path: str, steps: tuple[object, ...]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a", "begins with"),
        ("", "begins with"),
        ("lax $.a", "begins with"),
        ("$.a[*]", "wildcard or a filter at character 4"),
        ("$.*", "wildcard"),
        ("$..a", "wildcard"),
        ("$.a[?(@.b)]", "filter"),
        ("$.a b", "from character 4"),
        ("$.a[-1]", "from character 4"),
        ("$.a[b]", "from character 4"),
        ('$."a', "from character 2"),
        ("$.", "from character 2"),
        ("$a", "from character 2"),
        ("$.a[1 to 3]", "from character 4"),
    ],
)
def test_refused_paths(path: str, why: str) -> None:
    with pytest.raises(UnfitPath, match=why):
        steps_of(path)

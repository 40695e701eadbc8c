"""Names in stores that fold to upper case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leatstream.connectors.upper_names import canonical, for_login, quoted, shown, stored


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("orders", "ORDERS"),
        ("a_1$", "A_1$"),
        ("Orders", "Orders"),
        ("mixed case", "mixed case"),
        ("größe", "größe"),
        ("1st", "1st"),
    ],
)
def test_a_name_there_and_back(name: str, there: str) -> None:
    assert stored(name) == there
    assert shown(there) == name


def test_what_only_quotes_make_in_lower_case_has_no_name_here() -> None:
    assert shown("orders") is None
    assert shown('a"b') is None


def test_a_user_may_write_a_name_as_the_store_does() -> None:
    assert canonical("ORDERS") == "orders"
    assert canonical("Orders") == "Orders"


def test_quotes() -> None:
    assert quoted("order") == '"ORDER"'
    assert quoted('a"b') == '"a""b"'
    assert (for_login("loader"), for_login("LOADER"), for_login("My Role")) == (
        "LOADER",
        "LOADER",
        '"My Role"',
    )


@given(st.text(min_size=1, max_size=8))
def test_no_two_tables_share_a_name(name: str) -> None:
    back = shown(name)
    assert back is None or stored(back) == name

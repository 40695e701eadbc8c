from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leatstream_terraform.names import (
    fill_path,
    fqn,
    import_id,
    quote_ident,
    read_import_id,
    split_fqn,
)

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)


@given(NAMES, NAMES, NAMES)
def test_quoted_names_read_back_as_themselves(one: str, two: str, three: str) -> None:
    assert split_fqn(fqn(one, two, three)) == (one, two, three)


@given(NAMES, NAMES, NAMES)
def test_import_ids_read_back(one: str, two: str, three: str) -> None:
    template = "{database}.{schema}.{name}"
    names = {"database": one, "schema": two, "name": three}
    assert read_import_id(template, import_id(template, names)) == names


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,9}", fullmatch=True))
def test_a_name_that_stands_alone_needs_no_quotes(name: str) -> None:
    assert read_import_id("{name}", name) == {"name": name}
    assert read_import_id("{name}", f'"{name}"') == {"name": name}


@pytest.mark.parametrize(
    ("template", "text", "names"),
    [
        ("{name}", "my.Query", {"name": "my.Query"}),
        ("{store}/{name:raw}", "kafka/orders.v1/x", {"store": "kafka", "name": "orders.v1/x"}),
        ("{database}.{name}", 'demo."a.b"', {"database": "demo", "name": "a.b"}),
        ("{database}.{name}", "demo.Öffentlich", {"database": "demo", "name": "Öffentlich"}),
        ("{database}.{name}", "demo", None),
        ("{database}.{name}", "a.b.c", None),
        ("{name}", "", None),
    ],
)
def test_import_ids(template: str, text: str, names: dict[str, str] | None) -> None:
    assert read_import_id(template, text) == names


def test_paths_are_quoted_and_encoded() -> None:
    value = {"store": "My Store", "name": "a/b.c", "database": "demo"}
    assert fill_path("/v1/stores/{store}/entities/{name:raw}", value) == (
        "/v1/stores/%22My%20Store%22/entities/a%2Fb.c"
    )
    assert fill_path("/v1/databases/{database}", value) == "/v1/databases/demo"


@pytest.mark.parametrize(
    ("name", "quoted"), [("a_1$", "a_1$"), ("A", '"A"'), ('a"b', '"a""b"'), ("1a", '"1a"')]
)
def test_quoting(name: str, quoted: str) -> None:
    assert quote_ident(name) == quoted


@pytest.mark.parametrize("bad", ["", "a..b", "a b", 'a."'])
def test_what_is_no_dotted_name(bad: str) -> None:
    assert split_fqn(bad) is None


def test_unquoted_parts_fold() -> None:
    assert split_fqn('Demo."Public".X') == ("demo", "Public", "x")

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
            "write lpad(text, length[, filler])",
        ),
        ("reverze('a')", "unknown-function", "There is no function reverze.", "did you mean reverse?"),
        (
            "X'0'",
            "type-mismatch",
            "These are no hexadecimal digits.",
            "write X'0aff', two digits for each byte",
        ),
        ("FLOOR(1 TO PARSEC)", "sql-syntax", "Expected a time unit such as HOUR, found PARSEC.", None),
    ],
)
def test_what_is_wrong_is_told(
    bind_text: Bind, expression: str, code: str, detail: str, hint: str | None
) -> None:
    assert faults(bind_text, expression) == [(code, detail, hint)]


@pytest.mark.parametrize("name", sorted(refusals()))
def test_refusals_give_their_reason(bind_text: Bind, name: str) -> None:
    ((code, detail, _),) = faults(bind_text, f"{name}(1)")
    assert code == "unsupported"
    assert refusals()[name].reason in detail


def test_the_page_shows_every_function() -> None:
    text = page()
    assert all(f"| `{f.shown.replace('|', chr(92) + '|')}`" in text for f in table())

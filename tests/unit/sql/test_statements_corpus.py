"""Every statement shape of the reference: the built ones keep their meaning in canonical form, the others say no.

A case is ``-- <what>``, the text, and for a refused one ``=> code``; ``=> bind`` is refused by the binder only.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from leatstream.errors import Position, RequestError
from leatstream.model.types import parse_type
from leatstream.sql.canonical import canonical, statement_hash
from leatstream.sql.parser import parse
from leatstream.sql.statements import ColumnDefinition, Value

CORPUS = Path(__file__).parents[2] / "fixtures" / "statements" / "corpus.sql"


def read() -> list[tuple[str, str, str | None]]:
    """Title, text and code of each case."""
    cases = []
    for block in CORPUS.read_text(encoding="utf-8").strip().split("\n\n"):
        title, _, rest = block.partition("\n")
        text, _, code = rest.partition("\n=> ")
        cases.append((title.removeprefix("-- "), text, code or None))
    return cases


CASES = read()
BUILT = [case for case in CASES if case[2] in (None, "bind")]
REFUSED = [case for case in CASES if case[2] not in (None, "bind")]


def shape(thing: Any) -> Any:
    """What a statement means: its parts without where they stand and how they were spelt."""
    if isinstance(thing, Position):
        return None
    if isinstance(thing, ColumnDefinition):
        return thing.name, str(parse_type(thing.type)), thing.not_null, thing.comment
    if isinstance(thing, Value):
        return thing.kind, thing.value.lower() if thing.kind == "keyword" and isinstance(
            thing.value, str
        ) else thing.value
    if is_dataclass(thing) and not isinstance(thing, type):
        named = {f.name: getattr(thing, f.name) for f in fields(thing)}
        return type(thing).__name__, {k: shape(v) for k, v in named.items() if k not in ("text", "position")}
    if isinstance(thing, exp.Expression):
        meta = {k: shape(v) for k, v in thing.meta.items() if k != "source" and "span" not in k}
        return type(thing).__name__, {k: shape(v) for k, v in thing.args.items() if v}, meta
    if isinstance(thing, dict):
        return {k: shape(v) for k, v in thing.items()}
    if isinstance(thing, tuple) and len(thing) == 2 and all(type(item) is int for item in thing):
        return None  # a stretch of the text
    if isinstance(thing, list | tuple):
        return [shape(item) for item in thing]
    return thing


@pytest.mark.parametrize(("title", "text", "code"), BUILT, ids=[c[0] for c in BUILT])
def test_canonical_form_means_the_same(title: str, text: str, code: str | None) -> None:
    """Two texts count as one statement when their canonical forms are equal, so that form must lose nothing."""
    written = canonical(text)
    assert [shape(s) for s in parse(written)] == [shape(s) for s in parse(text)]
    assert canonical(written) == written
    assert statement_hash(written) == statement_hash(text)


@pytest.mark.parametrize(("title", "text", "code"), REFUSED, ids=[c[0] for c in REFUSED])
def test_refused_by_name(title: str, text: str, code: str) -> None:
    """With the code, its SQLSTATE, and a place inside the text."""
    with pytest.raises(RequestError) as caught:
        parse(text)
    fault = caught.value.faults[0]
    assert fault.code == code
    assert fault.sqlstate == {"unsupported": "0A000", "sql-syntax": "42601"}[code]
    assert fault.position is not None
    assert 0 <= fault.position.offset <= len(text)


def test_titles_are_unique() -> None:
    """So that a failing case can be found."""
    titles = [case[0] for case in CASES]
    assert len(set(titles)) == len(titles) >= 100

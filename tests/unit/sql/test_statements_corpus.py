"""Every statement shape of the reference: the built ones keep their meaning in canonical form, the others say no.

A case is ``-- <what>``, the text, and for a refused one ``=> code``; ``=> bind`` is refused by the binder only.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from statement_forms import form

from leatstream.errors import RequestError
from leatstream.sql.canonical import canonical, statement_hash
from leatstream.sql.parser import parse

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


@pytest.mark.parametrize(("title", "text", "code"), BUILT, ids=[c[0] for c in BUILT])
def test_canonical_form_means_the_same(title: str, text: str, code: str | None) -> None:
    """Two texts count as one statement when their canonical forms are equal, so that form must lose nothing."""
    written = canonical(text)
    assert form(parse(written)) == form(parse(text))
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

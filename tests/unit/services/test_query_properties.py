"""QUERY WITH: words that no query has, and those that are known and not built."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.errors import RequestError
from leatstream.services.planning.query_properties import check_words
from leatstream.sql.parser import parse


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("state.ttl.millis", "unsupported", "retention"),
        ("resume.from.query.name", "unsupported", "from.query"),
        ("resume.from.query.version", "unsupported", "from.query"),
        ("nope", "invalid-property", "known: query.name"),
    ],
)
def test_what_no_query_has(name: str, code: str, told: str) -> None:
    (statement,) = parse(f"CREATE STREAM o AS SELECT a FROM t QUERY WITH ('{name}' = 'x')")
    made: Any = statement
    with pytest.raises(RequestError) as caught:
        check_words(made.query_properties)
    (fault,) = caught.value.faults
    assert (fault.code, fault.position is not None) == (code, True)
    assert told in f"{fault.detail} {fault.hint}"

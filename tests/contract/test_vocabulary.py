"""The words of SQL over REST: those that the shell completes, and signatures of every function."""

from __future__ import annotations

from starlette.testclient import TestClient

from leatstream.services.statements.vocabulary import read_vocabulary
from leatstream.sql.function_table import functions


def test_the_vocabulary_is_that_of_the_shell(client: TestClient) -> None:
    answer = client.get("/v1/sql/vocabulary")
    assert answer.status_code == 200
    body, words = answer.json(), read_vocabulary()
    for kind in ("statements", "clauses", "types"):
        assert body[kind] == list(getattr(words, kind))
    assert "uris" in body["properties"]["store"]
    assert "stream" in body["nouns"]["create"]
    named = {name for one in body["functions"] for name in (one["name"], *one["aliases"])}
    assert named == set(functions())
    lengths = next(one for one in body["functions"] if one["name"] == "char_length")
    assert (lengths["signature"], lengths["returns"]) == ("char_length(text)", "INTEGER")


def test_it_needs_a_token(client: TestClient) -> None:
    assert client.get("/v1/sql/vocabulary", headers={"Authorization": ""}).status_code == 401

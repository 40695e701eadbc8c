"""What TAB offers, by what stands before the cursor."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leatstream.cli.catalog_names import ServerNames
from leatstream.cli.completion import Relation, offers
from leatstream.services.statements import vocabulary
from leatstream.services.statements.vocabulary import CLAUSES, Vocabulary, read_vocabulary

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Service

NAMES = {
    "database": ["demo", '"Pläne"'],
    "store": ["embedded", "kafka_store"],
    "query": ["enriched"],
    "entity": ["orders"],
}
RELATIONS = [
    Relation("pageviews", "stream", ("viewtime", "userid")),
    Relation("users", "changelog", ("userid", "regionid")),
    Relation("demo.public.pageviews", "stream", ("viewtime", "userid")),
    Relation("by_region", "materialized_view", ("n",)),
]
WORDS = read_vocabulary()


class Catalog:
    def of(self, noun: str) -> Iterable[str]:
        return NAMES.get(noun, [])

    def relations(self) -> Iterable[Relation]:
        return RELATIONS


def offered(text: str, words: Vocabulary = WORDS) -> list[str]:
    return [offer.text for offer in offers(text, words, Catalog())]


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("CREA", ["CREATE"]),
        ("crea", ["create"]),
        ("LIST STORES; DESC", ["DESCRIBE"]),
        ("CREATE ", ["OR REPLACE", "STREAM", "MATERIALIZED VIEW", "SCHEMA_REGISTRY"]),
        ("LIST S", ["SCHEMAS", "STORES", "STREAMS", "SECRETS"]),
        ("DROP STREAM ", ["pageviews", "demo.public.pageviews"]),
        ("DROP MATERIALIZED VIEW ", ["by_region"]),
        ("USE DATABASE ", ["demo", '"Pläne"']),
        ('use database "P', ['"Pläne"']),
        ("PRINT ENTITY o", ["orders"]),
        ("LIST ENTITIES IN STORE k", ["kafka_store"]),
        ("TERMINATE QUERY ", ["enriched"]),
        ("SELECT * FROM demo.", ["demo.public.pageviews"]),
        ("SELECT * FROM pageviews p JOIN users u ON p.u", ["p.userid"]),
        ("SELECT * FROM pageviews WHERE user", ["userid"]),
        ("SELECT * FROM pageviews WHE", ["WHERE"]),
        ("SELECT view", ["viewtime"]),
        ("SELECT to_ti", ["to_timestamp("]),
        ("CREATE STORE s WITH (", ["'type'", "'uris'"]),
        ("CREATE STORE s WITH ('type' = KAFKA, 'kafka.sasl.", ["'kafka.sasl.username'"]),
        ("CREATE STREAM s (a BIGINT) WITH ('val", ["'value.format'"]),
        (
            "CREATE STREAM s AS SELECT * FROM pageviews WITH ('timestamp' = 't', 'source.idle",
            ["'source.idle.timeout.millis'"],
        ),
        ("CREATE STREAM s (a VARC", ["VARCHAR"]),
    ],
)
def test_offers_what_fits(text: str, some: list[str]) -> None:
    found = offered(text)
    assert [one for one in some if one not in found] == []


@pytest.mark.parametrize(
    ("text", "none"),
    [
        ("DROP STREAM ", "users"),
        ("CREATE STREAM ", "pageviews"),
        ("SELECT * FROM pageviews WHERE ", "AND"),
        ("SELECT 'p", "pageviews"),
        ("SELECT * FROM pageviews p WHERE p.", "p.regionid"),
        ("LIST STORES -- CREA", "CREATE"),
    ],
)
def test_offers_nothing_else(text: str, none: str) -> None:
    assert none not in offered(text)


def test_lists_of_properties_belong_to_what_is_before_them() -> None:
    assert offered("SELECT * FROM pageviews WITH ('starting.position.") == ["'starting.position.timestamp'"]
    assert "'query.mode'" not in offered("CREATE STORE s WITH ('")
    assert offered("PRINT ENTITY orders IN STORE kafka_store WITH ('s") == ["'since'"]
    assert "'retention'" in offered("CREATE MATERIALIZED VIEW v WITH ('")


def test_an_installation_without_the_parser_offers_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Vocabulary:
        raise ImportError("sqlglot")

    monkeypatch.setattr(vocabulary, "_read", missing)
    bare = read_vocabulary()
    assert offered("CREA", bare) == []
    assert "pageviews" in offered("SELECT * FROM p", bare)


def test_the_words_are_those_that_the_parser_reads() -> None:
    """One that it learns later is missing here by name."""
    read = set()
    for module in (Path(vocabulary.__file__).parents[1] / "sql").glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("take", "expect", "is_word"):
                read |= {a.value for a in node.args if isinstance(a, ast.Constant) and type(a.value) is str}
    nouns = {word for phrases in WORDS.nouns.values() for phrase in phrases for word in phrase.split()}
    known = {*CLAUSES, *nouns, *WORDS.statements}
    # Synonyms, and words that are read to be refused.
    passed_over = {"topic", "stores", "views", "data", "cascade", "minus", "qualify", "analyze"}
    assert sorted(read - known - passed_over) == []


def test_names_are_those_of_the_server_and_are_kept_for_a_while(service: Service) -> None:
    columns = [{"name": "userid", "type": "VARCHAR"}, {"name": "Ünï", "type": "VARCHAR"}]
    relations = [{"fqn": 'demo.public."P v"', "name": "P v", "kind": "stream", "columns": columns}]
    service.answer("GET", "/v1/relations", {"items": relations, "next_page_token": None})
    service.answer("GET", "/v1/stores", {"items": [{"name": "Kafka 1"}], "next_page_token": None})
    names = ServerNames(service.client(), lambda: {"database": "demo", "schema": "public"})
    wanted = ('"P v"', 'demo.public."P v"')
    assert [(r.fqn, r.columns) for r in names.relations()] == [(one, ("userid", '"Ünï"')) for one in wanted]
    assert list(names.of("store")) == list(names.of("store")) == ['"Kafka 1"']
    assert len(service.requests) == 2
    names.forget()
    names.of("store")
    assert len(service.requests) == 3
    assert list(names.of("query")) == []  # a server that refuses is no reason to end the prompt

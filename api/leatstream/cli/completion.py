"""What TAB offers in the prompt: words of the language and names of the catalog, by what stands before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from leatstream.services.statements.vocabulary import Vocabulary

_TOKEN = re.compile(
    r"""--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z)|(?P<text>'(?:[^']|'')*(?:'|\Z))"""
    r"""|(?P<name>(?:\w+|"(?:[^"]|"")*(?:"|\Z))(?:\.(?:\w+|"(?:[^"]|"")*(?:"|\Z)))*\.?)|(?P<mark>[^\s\w])|\s+""",
    re.DOTALL,
)
_RELATIONS = {"stream", "changelog", "table", "view", "relation"}
_SOURCES = {"from", "join", "into"}
# What may follow the name of a relation in FROM and is no alias.
_NO_ALIAS = {
    *("on", "where", "with", "within", "group", "having", "limit", "union", "using"),
    *("join", "left", "right", "full", "inner", "cross"),
}


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation as completion knows it; names as SQL writes them."""

    fqn: str
    kind: str = "stream"
    columns: tuple[str, ...] = ()


class Names(Protocol):
    """The names of the catalog."""

    def of(self, noun: str) -> Iterable[str]:
        """Names of databases, schemas, stores, entities, queries and other nouns, by the singular."""

    def relations(self) -> Iterable[Relation]:
        """The relations; a name without its database and schema is one of the context."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One candidate.

    Attributes:
        text: to insert.
        replaces: number of characters before the cursor that it replaces.
        about: what it is.
    """

    text: str
    replaces: int
    about: str


@dataclass(frozen=True, slots=True)
class _Before:
    """The statement before the cursor: its whole tokens, and the one that is being typed."""

    words: tuple[str, ...]
    typed: str
    within: str | None  # what the innermost open WITH ( belongs to


def offers(text: str, vocabulary: Vocabulary, names: Names) -> Iterator[Offer]:
    """The candidates for what is being typed at the end of the text, without those that do not fit it.

    Args:
        text: everything before the cursor.
        vocabulary: words of the language.
        names: of the catalog.
    """
    before = _read(text)
    typed = before.typed
    seen: set[str] = set()
    for word, about in _candidates(before, vocabulary, names):
        shown = word
        if about in ("keyword", "type") and not (typed and typed == typed.lower()):
            shown = word.upper()
        if shown not in seen and shown != typed and _fits(shown, typed):
            seen.add(shown)
            yield Offer(shown, len(typed), about)


def _fits(word: str, typed: str) -> bool:
    return word.lower().startswith(typed.lower())


def _read(text: str) -> _Before:
    words: list[str] = []
    opened: list[str | None] = []
    typed = ""
    for match in _TOKEN.finditer(text):
        part, last = match.group(), match.end() == len(text)
        if match.lastgroup is None:
            continue
        unfinished = match["name"] or (match["text"] and not (len(part) > 1 and part.endswith("'")))
        mark = match["mark"]
        if last and unfinished:
            typed = part
        elif mark == ";":
            words, opened = [], []
        else:
            if mark == "(":
                opened.append(_owner(words) if words and words[-1] == "with" else None)
            elif mark == ")" and opened:
                opened.pop()
            words.append(part.lower() if match["name"] and not part.startswith('"') else part)
    return _Before(tuple(words), typed, opened[-1] if opened else None)


def _owner(words: list[str]) -> str:
    """What the WITH list at the end of the words belongs to."""
    if words[-2:-1] == ["query"]:
        return "query"
    if words[0] == "print":
        return "print"
    if words[0] in ("select", "explain", "describe") or "select" in words:
        return "source"
    found = next((word for word in words if word in ("store", "entity", "secret", "schema_registry")), None)
    return found or ("view" if words[1:3] == ["materialized", "view"] else "relation")


def _candidates(before: _Before, vocabulary: Vocabulary, names: Names) -> Iterator[tuple[str, str]]:
    words, typed = before.words, before.typed
    last = words[-1] if words else ""
    if before.within is not None and (typed.startswith("'") or last in ("(", ",")):
        found = vocabulary.properties.get(before.within, ())
        yield from ((f"'{key}'", "property") for key in found)
    elif typed.startswith("'"):
        return
    elif not words:
        yield from ((word, "keyword") for word in vocabulary.statements)
    elif len(words) == 1 and words[0] in vocabulary.nouns:
        yield from ((noun, "keyword") for noun in vocabulary.nouns[words[0]])
    elif last in _SOURCES or (last in _RELATIONS and words[0] != "create"):
        kinds = _SOURCES | {"relation"}
        yield from ((r.fqn, r.kind) for r in names.relations() if last in kinds or r.kind.endswith(last))
        yield from (("entity", "keyword"),) if last == "into" else ()
    elif last in _NAMED and words[0] not in ("create", "begin"):
        yield from ((name, last) for name in names.of(_NAMED[last]))
        yield from (("with", "keyword"),) if last == "query" else ()
    elif typed:
        yield from _general(before, vocabulary, names)


_NAMED = {
    **{
        noun: noun for noun in ("database", "schema", "store", "entity", "query", "secret", "schema_registry")
    },
    **{noun: noun for noun in ("descriptor_source", "function_source", "function", "application")},
    **{noun: noun for noun in ("role", "user", "service_account", "api_token", "invitation")},
    **{"savepoint": "savepoint", "topic": "entity", "namespace": "schema"},
}


def _general(before: _Before, vocabulary: Vocabulary, names: Names) -> Iterator[tuple[str, str]]:
    """Inside of a statement: columns of its relations first, and then words."""
    qualifier, dot, _ = before.typed.rpartition(".")
    for alias, relation in _read_from(before.words, names):
        if dot and alias == qualifier.lower():
            yield from ((f"{qualifier}.{column}", "column") for column in relation.columns)
        elif not dot:
            yield from ((column, "column") for column in relation.columns)
            yield alias, "relation"
    if not dot:
        yield from ((word, "keyword") for word in vocabulary.clauses)
        yield from ((f"{name}(", "function") for name in vocabulary.functions)
        yield from ((kind, "type") for kind in vocabulary.types)


def _read_from(words: tuple[str, ...], names: Names) -> Iterator[tuple[str, Relation]]:
    """The relations that FROM and JOIN name before the cursor, by alias or else by name.

    While the SELECT list is typed there is no FROM yet: then every relation of the context counts.
    """
    known = {relation.fqn: relation for relation in names.relations()}
    found = False
    for at, word in enumerate(words[:-1]):
        relation = known.get(words[at + 1]) if word in _SOURCES else None
        if relation is None:
            continue
        found = True
        after = [one for one in words[at + 2 : at + 4] if one != "as"][:1]
        alias = after[0] if after and re.fullmatch(r"\w+", after[0]) and after[0] not in _NO_ALIAS else None
        yield alias or relation.fqn.rpartition(".")[2], relation
    if not found and words[0] in ("select", "create", "insert", "describe", "explain"):
        yield from ((name, relation) for name, relation in known.items() if "." not in name)

"""Statements made of a verb, a noun and a name: DROP, USE, LIST, PRINT, TERMINATE, RESTART."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, cast

from sqlglot.tokenizer_core import Token, TokenType

from leatstream.sql import statements as s
from leatstream.sql.dialect import Leat
from leatstream.sql.unbuilt import CREATES

REGISTERED = ("secret", "schema_registry", "descriptor_source")
FUNCTIONS = ("function", "function_source")
RELATIONS = ("stream", "changelog", "table", "materialized_view", "relation")
APPLICATION, SAVEPOINT = "application", "savepoint"
DROPPED = (
    "database",
    "schema",
    "store",
    "entity",
    "stream",
    "changelog",
    "table",
    "materialized_view",
    "index",
    "relation",
    "query",
    *REGISTERED,
    *FUNCTIONS,
    APPLICATION,
    SAVEPOINT,
    "role",
    "user",
    "service_account",
    "api_token",
    "invitation",
)
MAILED = ("user", "service_account", "invitation")
_SYNONYMS = {
    "topic": "entity",
    "namespace": "schema",
    "topics": "entities",
    "namespaces": "schemas",
}
LISTED = (
    "databases",
    "schemas",
    "stores",
    "entities",
    "streams",
    "changelogs",
    "tables",
    "materialized_views",
    "relations",
    "queries",
    "functions",
    "secrets",
    "schema_registries",
    "descriptor_sources",
    "descriptors",
    "function_sources",
    "applications",
    "savepoints",
    "roles",
    "users",
    "service_accounts",
    "api_tokens",
    "invitations",
)
_SCHEMA_OR_DATABASE = ("schema", "namespace", "database")
_WITHIN = {
    "schemas": ("database",),
    "entities": ("store", "data"),
    "streams": _SCHEMA_OR_DATABASE,
    "changelogs": _SCHEMA_OR_DATABASE,
    "tables": _SCHEMA_OR_DATABASE,
    "materialized_views": _SCHEMA_OR_DATABASE,
    "relations": _SCHEMA_OR_DATABASE,
    "descriptors": ("descriptor_source",),
}


def named(nouns: tuple[str, ...]) -> str:
    """Nouns for a message: A, B or C."""
    *most, last = (noun.upper().replace("MATERIALIZED_", "MATERIALIZED ") for noun in nouns)
    return f"{', '.join(most)} or {last}"


class NounStatements(Leat.Parser):
    """Reads them, and what every statement needs: nouns with synonyms, names, IN STORE, WITH."""

    def _base(self, first: Token) -> dict[str, Any]:
        place = self.since(first)
        text = self.source.text[place.offset : place.offset + place.length]
        return {"text": text, "position": place}

    def _noun(self, known: tuple[str, ...], wanted: str) -> str:
        """One of the nouns, its synonyms and DATA STORE included; stops at unbuilt ones."""
        if self.is_word("data") and self.is_word("store", "stores", ahead=1):
            self._advance()
        if self.is_word("materialized") and self.is_word("view", "views", ahead=1):
            noun = f"materialized_{self._tokens[self._index + 1].text.lower()}"
            if noun in known:
                self._advance(2)
                return noun
        token = self._curr
        word = token.text.lower() if token.token_type == TokenType.VAR else ""
        noun = _SYNONYMS.get(word, word)
        if noun in known:
            self._advance()
            return noun
        if word in CREATES:
            verb = self._tokens[0].text.upper()
            self.refuse(f"{verb} {CREATES[word]}", at=token)
        self.unexpected(wanted, self._meant(known, noun))

    def _meant(self, known: tuple[str, ...], noun: str) -> str | None:
        """What a noun that is none was to be: another one, or the name that a noun should stand before."""
        if noun == "materialized":
            noun = f"materialized_{self._next.text.lower() if self._next else ''}"
        near = get_close_matches(noun, known, n=1, cutoff=0.65) if noun else []
        if near:
            return f"Did you mean {near[0].upper().replace('MATERIALIZED_', 'MATERIALIZED ')}?"
        verb = self._tokens[0].text.upper()
        if verb != "DESCRIBE" or self._curr.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
            return None
        end = self._index
        while end + 2 < len(self._tokens) and self._tokens[end + 1].token_type == TokenType.DOT:
            end += 2
        name = ".".join(self.shown(token) for token in self._tokens[self._index : end + 1 : 2])
        return f"Write what it is before the name: DESCRIBE RELATION {name}."

    def _if(self, *words: str) -> bool:
        if not self.take("if"):
            return False
        self.expect(*words)
        return True

    def _one(self, what: str = "a name") -> s.Name:
        name = self.name(what)
        if len(name.parts) > 1:
            self.fail("A name of one part is wanted here.", at=name.position)
        return name

    def _in_store(self) -> s.Name | None:
        if not self.take("in"):
            return None
        self.take("data")
        self.expect("store")
        return self._one("a store's name")

    def _with(self, *, flags: bool = False) -> dict[str, s.Value]:
        return self.properties(flags=flags) if self.take("with") else {}

    def _upto(self, count: int) -> s.Name:
        name = self.name()
        if len(name.parts) > count:
            self.fail(f"A name of at most {count} parts is wanted here.", at=name.position)
        return name

    def _drop_statement(self, first: Token) -> s.Statement:
        self._advance()
        noun = self._noun(DROPPED, named(DROPPED))
        optional = self._if("exists")
        name = self._dropped_name(noun)
        store = self._in_store() if noun == "entity" else None
        signature = self._signature() if noun == "function" else None
        if self.is_word("cascade"):
            self.refuse("CASCADE", hint="Drop the dependents first.")
        return s.Drop(
            **self._base(first),
            noun=cast(Any, noun),
            name=name,
            store=store,
            if_exists=optional,
            signature=signature,
        )

    def _dropped_name(self, noun: str) -> s.Name:
        if noun in MAILED:
            return self._account(noun)
        return self.name() if noun == "entity" else self._upto(3)

    def _account(self, noun: str) -> s.Name:
        """The name of an account or an invitation."""
        raise NotImplementedError

    def _signature(self) -> tuple[str, ...] | None:
        """The types of the function to drop."""
        raise NotImplementedError

    def _use_statement(self, first: Token) -> s.Statement:
        self._advance()
        noun = self._noun(("database", "schema", "store", "role"), "DATABASE, SCHEMA, STORE or ROLE")
        name = self._upto(2) if noun == "schema" else self._one()
        return s.Use(**self._base(first), noun=cast(Any, noun), name=name)

    def _set_statement(self, first: Token) -> s.Statement:
        self._advance()
        if not self.take("default"):
            self.refuse("The statement SET", hint="Available: SET DEFAULT DATABASE, SCHEMA or STORE.")
        if self.is_word("role"):
            self.refuse("SET DEFAULT ROLE", hint="USE ROLE r, or set 'default.role' of the account.")
        noun = self._noun(("database", "schema", "store"), "DATABASE, SCHEMA or STORE")
        name = self._upto(2) if noun == "schema" else self._one()
        return s.SetDefault(**self._base(first), noun=cast(Any, noun), name=name)

    def _list_statement(self, first: Token) -> s.Statement:
        self._advance()
        if self.take("grants"):
            return self._grants_list(first)
        noun = self._noun(LISTED, named(LISTED))
        within, of = None, None
        if self.take("in"):
            wanted = _WITHIN.get(noun, ())
            if wanted == ("store", "data") and not self.is_word(*wanted):
                self.refuse("LIST ENTITIES below a path", hint="LIST ENTITIES IN STORE s lists all of them")
            if not self.is_word(*wanted):
                self.unexpected(" or ".join(w.upper() for w in wanted) or "the end of the statement")
            if self.take("data"):
                self.expect("store")
                of = "store"
            else:
                word = self._curr.text.lower()
                of = _SYNONYMS.get(word, word)
                self._advance()
            within = self._upto(2)
        return s.ListObjects(**self._base(first), noun=cast(Any, noun), within=within, of=of)

    def _grants_list(self, first: Token) -> s.Statement:
        """LIST GRANTS, after the noun."""
        raise NotImplementedError

    def _print_statement(self, first: Token) -> s.Statement:
        self._advance()
        if not (self.take("entity") or self.take("topic")):
            self.unexpected("ENTITY or TOPIC", "SELECT * FROM name shows the rows of a stream.")
        name, store = self.name("an entity's name"), self._in_store()
        properties = self._with(flags=True)
        return s.Print(**self._base(first), name=name, store=store, properties=properties)

    def _query_statement(self, first: Token) -> s.Statement:
        self._advance()
        if self.take("application"):
            name = self._one("an application's name")
            if first.text.lower() == "terminate":
                return s.TerminateApplication(**self._base(first), name=name)
            return s.RestartApplication(**self._base(first), name=name)
        if first.text.lower() == "restart" and self.take("queries"):
            self.expect("failed", "by")
            cause = self._quoted("the cause, such as 'orders:3:42' or 'source-gone'")
            return s.RestartQueries(**self._base(first), cause=cause, skip=self.take("skip", "record"))
        self.expect("query")
        name = self._one("a query's name")
        if first.text.lower() == "terminate":
            savepoint = self._one("a savepoint's name") if self.take("with", "savepoint") else None
            return s.TerminateQuery(**self._base(first), name=name, savepoint=savepoint)
        if self.take("skip", "record"):
            skip = self._quoted("a record, such as 'orders:3:42'")
            return s.RestartQuery(**self._base(first), name=name, skip=skip)
        start = self._start_point()
        return s.RestartQuery(**self._base(first), name=name, start=start)

    def _quoted(self, what: str) -> s.Value:
        first = self._curr
        if first.token_type != TokenType.STRING:
            self.unexpected(what)
        return self.value(self.place(first))

    def _rollback_statement(self, first: Token) -> s.Statement:
        self._advance()
        self.expect("query")
        return s.RollbackQuery(**self._base(first), name=self._one("a query's name"))

    def _start_point(self) -> s.StartPoint | None:
        if not self.take("from"):
            return None
        first = self._curr
        for word in ("earliest", "latest"):
            if self.take(word):
                return s.StartPoint(word, None, self.since(first))
        for word in ("timestamp", "offsets"):
            if self.take(word):
                value = self.value(self.place(first))
                return s.StartPoint(word, value, self.since(first))
        self.unexpected("EARLIEST, LATEST, TIMESTAMP or OFFSETS")

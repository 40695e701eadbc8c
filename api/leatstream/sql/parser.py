"""Text to statements."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, cast

from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import Faults, RequestError
from leatstream.sql import statements as s
from leatstream.sql.access_statements import ACCOUNTS, AccessStatements
from leatstream.sql.applications import read_statements, split
from leatstream.sql.dialect import Leat
from leatstream.sql.lexer import Source, scan
from leatstream.sql.noun_statements import APPLICATION, FUNCTIONS, REGISTERED, RELATIONS, named
from leatstream.sql.relation_statements import RelationStatements
from leatstream.sql.tokens_reader import SqlFault
from leatstream.sql.unbuilt import INSTEAD, STATEMENTS

DESCRIBED = (
    *("database", "schema", "store", "entity", *RELATIONS, "query"),
    *REGISTERED,
    *FUNCTIONS,
    APPLICATION,
)
_ACCESS = ("role", *ACCOUNTS, "api_token")
CREATED = (
    "database",
    "schema",
    "store",
    "entity",
    "stream",
    "changelog",
    "table",
    "materialized_view",
    "index",
    *REGISTERED,
    *FUNCTIONS,
    *_ACCESS,
)
# What has a plan.
_EXPLAINED = ("create", "insert", "select", "with", "restart")
_REGISTERED: dict[str, type[s.CreateRegistered]] = {
    "secret": s.CreateSecret,
    "schema_registry": s.CreateSchemaRegistry,
    "descriptor_source": s.CreateDescriptorSource,
}
MAX_TEXT = 1_000_000
MAX_STATEMENTS = 1_000


def parse(text: str) -> list[s.Statement]:
    """Read a text of statements separated by ``;``. Positions count in the whole text.

    Raises:
        RequestError: sql-syntax, unsupported or too-complex, with the position, and of every statement that
            cannot be read.
    """
    if len(text) > MAX_TEXT:
        raise RequestError("too-complex", f"SQL text has at most {MAX_TEXT} characters.")
    source = Source(text)
    found: list[s.Statement] = []
    faults = Faults()
    parts = split(scan(text))
    if len(parts) > MAX_STATEMENTS:
        raise RequestError("too-complex", f"SQL text has at most {MAX_STATEMENTS} statements.")
    for tokens in parts:
        try:
            found.append(_parse_one(tokens, source))
        except RequestError as error:
            faults.items += error.faults
        except RecursionError:
            first = source.position(tokens[0].start, tokens[-1].end + 1)
            faults.add("too-complex", "The statement nests too deep.", position=first)
    faults.raise_if_any()
    return found


def _parse_one(tokens: list[Token], source: Source, *, within: bool = False) -> s.Statement:
    parser = StatementParser(dialect=Leat())
    parser.load(tokens, source)
    parser.within_application = within
    try:
        statement = parser.statement()
        parser.expect_end()
    except SqlFault as fault:
        raise RequestError(fault.code, fault.detail, position=fault.position, hint=fault.hint) from None
    return statement


def _parse_inner(tokens: list[Token], source: Source) -> s.Statement:
    return _parse_one(tokens, source, within=True)


class StatementParser(RelationStatements, AccessStatements):
    """Reads one statement."""

    within_application = False

    def readers(self) -> dict[str, Callable[[Token], s.Statement]]:
        """The first word of each statement but SELECT, with the method that reads it."""
        return {
            "begin": self._application_statement,
            "create": self._create_statement,
            "insert": self._insert_statement,
            "drop": self._drop_statement,
            "use": self._use_statement,
            "set": self._set_statement,
            "list": self._list_statement,
            "show": self._list_statement,
            "describe": self._describe_statement,
            "explain": self._explain_statement,
            "print": self._print_statement,
            "terminate": self._query_statement,
            "restart": self._query_statement,
            "rollback": self._rollback_statement,
            "update": self._update_statement,
            "generate": self._generate_statement,
            "grant": self._grant_statement,
            "revoke": self._grant_statement,
            "can": self._can_statement,
            "invite": self._invite_statement,
        }

    def statement(self) -> s.Statement:
        """The statement at the cursor."""
        first = self._curr
        readers = self.readers()
        if self.is_word("select", "with") or self.is_mark(TokenType.L_PAREN):
            query = self.query()
            if self.is_word("query"):
                self.refuse("QUERY WITH after a SELECT of its own")
            return s.Select(**self._base(first), select=query, limit=self.limit_of(query))
        word = first.text.lower() if first.token_type == TokenType.VAR else ""
        if word in readers:
            return readers[word](first)
        if word in STATEMENTS:
            self.refuse(f"The statement {STATEMENTS[word]}", hint=INSTEAD.get(word))
        known = ", ".join(["SELECT", *(w.upper() for w in readers if w not in ("show", "explain"))])
        near = get_close_matches(word, ["select", *readers], n=1, cutoff=0.7)
        self.unexpected(f"a statement ({known})", f"Did you mean {near[0].upper()}?" if near else None)

    def _application_statement(self, first: Token) -> s.Statement:
        self._advance()
        self.expect("application")
        name = self._one("an application's name")
        begin = self._index
        # The words END APPLICATION after a semicolon; `split` has found them, or the text ends before.
        while self._curr and not (
            self.is_word("end") and self.is_word("application", ahead=1) and self._after_statement(begin)
        ):
            self._advance()
        inside = self._tokens[begin : self._index]
        self.expect("end", "application")
        properties = self.properties() if self.take("with") else {}
        if all(token.token_type == TokenType.SEMICOLON for token in inside):
            self.fail("The application has no statement.", at=name.position)
        found = read_statements(inside, self.source, _parse_inner)
        return s.CreateApplication(**self._base(first), name=name, statements=found, properties=properties)

    def _after_statement(self, begin: int) -> bool:
        return self._index == begin or self._prev.token_type == TokenType.SEMICOLON

    def _create_statement(self, first: Token) -> s.Statement:
        self._advance()
        if self.within_application and self.take("virtual"):
            return self._create_virtual(first)
        replacing = self._or_replace()
        token = self._curr
        noun = self._noun(CREATED, named(CREATED))
        optional = self._if_new(replacing)
        how: dict[str, Any] = {"if_not_exists": optional, "or_replace": replacing}
        if noun == "stream":
            return self._create_stream(first, how)
        if noun == "changelog":
            return self._create_changelog(first, how)
        if noun == "table":
            return self._create_table(first, how)
        if noun == "materialized_view":
            return self._create_view(first, token, how)
        if noun == "index":
            return self._create_index(first, token, how)
        if noun in FUNCTIONS:
            read = self._create_function if noun == "function" else self._create_function_source
            return read(first, how)
        if noun in _ACCESS:
            if replacing:
                self.refuse(f"CREATE OR REPLACE {noun.upper()}", at=token)
            return self._create_access(first, noun, optional)
        if noun == "store" or noun in _REGISTERED:
            name, comment = self._one(f"a {noun}'s name"), self._comment()
            self.expect("with")
            properties = self.properties()
            kind = _REGISTERED.get(noun, s.CreateStore)
            return kind(**self._base(first), name=name, properties=properties, comment=comment, **how)
        if noun == "entity":
            if replacing:
                hint = "UPDATE ENTITY changes its properties; DROP ENTITY empties it"
                self.refuse("CREATE OR REPLACE ENTITY", at=self._prev, hint=hint)
            name, store = self.name("an entity's name"), self._in_store()
            properties = self._with()
            return s.CreateEntity(
                **self._base(first), name=name, store=store, properties=properties, if_not_exists=optional
            )
        if noun == "schema":
            name, database = self._upto(2), None
            if self.take("in"):
                self.expect("database")
                database = self._one("a database's name")
            comment = self._comment()
            return s.CreateSchema(**self._base(first), name=name, database=database, comment=comment, **how)
        name, comment = self._one("a database's name"), self._comment()
        return s.CreateDatabase(**self._base(first), name=name, comment=comment, **how)

    def _or_replace(self) -> bool:
        if not self.take("or"):
            return False
        self.expect("replace")
        return True

    def _if_new(self, replacing: bool) -> bool:
        """IF NOT EXISTS, which OR REPLACE excludes."""
        first = self._curr
        optional = self._if("not", "exists")
        if optional and replacing:
            self.fail("OR REPLACE and IF NOT EXISTS exclude each other.", at=self.since(first))
        return optional

    def _insert_statement(self, first: Token) -> s.Statement:
        self._advance()
        self.expect("into")
        if self.is_word("entity", "topic"):
            return self._insert_entity(first)
        name = self._upto(3)
        if self.is_mark(TokenType.L_PAREN) and not self._query_ahead():
            place = self.place()
            columns = self._column_names()
            if not self.is_word("values"):
                hint = "Name the columns in the SELECT with AS."
                self.refuse("A column list in INSERT INTO … SELECT", at=place, hint=hint)
            return self._insert_values(first, name, columns)
        if self.is_word("values"):
            return self._insert_values(first, name, ())
        # WITH ( 'key' … is a property list, WITH name AS ( a query.
        properties = self._with() if self.is_mark(TokenType.L_PAREN, 1) else {}
        select, query_properties = self._body()
        return s.InsertInto(
            **self._base(first),
            name=name,
            properties=properties,
            select=select,
            query_properties=query_properties,
        )

    def _describe_statement(self, first: Token) -> s.Statement:
        self._advance()
        self.take("statement")
        if self.is_word(*_EXPLAINED, "drop", "describe", "explain"):
            if self.is_word("drop", "describe", "explain"):
                hint = "CREATE, INSERT, SELECT and RESTART can be described"
                self.refuse(f"DESCRIBE {self._curr.text.upper()}", hint=hint)
            inner = self.statement()
            return s.DescribeStatement(**self._base(first), statement=inner)
        noun = self._noun(DESCRIBED, named(DESCRIBED))
        named_next = self.is_mark(TokenType.VAR, 1) or self.is_mark(TokenType.IDENTIFIER, 1)
        if noun in RELATIONS and self.is_word("columns") and named_next:
            self._advance()  # which is what is shown in any case
        name = self.name() if noun == "entity" else self._upto(3)
        store = self._in_store() if noun == "entity" else None
        if noun == "query" and len(name.parts) == 1 and self._curr:
            return self._describe_query(first, name)
        return s.Describe(**self._base(first), noun=cast(Any, noun), name=name, store=store)

    def _explain_statement(self, first: Token) -> s.Statement:
        """EXPLAIN of a statement is DESCRIBE of it; DESCRIBE of an object has no other name."""
        self._advance()
        if self.is_word("analyze"):
            self.refuse("EXPLAIN ANALYZE", hint="DESCRIBE QUERY METRICS shows what a running query does.")
        if not self.is_word(*_EXPLAINED):
            self.unexpected("CREATE, INSERT, SELECT or RESTART", "DESCRIBE shows objects.")
        return s.DescribeStatement(**self._base(first), statement=self.statement())

    def _describe_query(self, first: Token, what: s.Name) -> s.Statement:
        """DESCRIBE QUERY STATE name: what was read as a name is the aspect."""
        aspect = what.parts[0]
        if aspect not in ("state", "metrics", "events", "history"):
            self.expect_end()
        name = self._one("a query's name")
        if self.is_mark(TokenType.COLON):
            self.refuse("A query's version", hint="The newest is described; DESCRIBE QUERY HISTORY has all.")
        return s.DescribeQuery(**self._base(first), what=cast(Any, aspect), name=name)

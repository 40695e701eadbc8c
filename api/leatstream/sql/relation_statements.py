"""CREATE STREAM, CHANGELOG, TABLE, MATERIALIZED VIEW and INDEX, with columns or AS SELECT."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.sql import statements as s
from leatstream.sql.function_statements import FunctionStatements


class RelationStatements(FunctionStatements):
    """Reads the statements that make relations."""

    def _create_stream(self, first: Token, how: dict[str, Any]) -> s.Statement:
        name = self._upto(3)
        columns: tuple[s.ColumnDefinition, ...] = ()
        if self.take_mark(TokenType.L_PAREN):
            columns = tuple(self.many(self._column))
            self.expect_mark(TokenType.R_PAREN, ", or )")
        comment = self._comment()
        properties = self._with()
        if self.take("as"):
            if columns:
                hint = "Leave the list out: the SELECT gives the columns."
                self.fail("CREATE STREAM … AS SELECT takes no column list.", at=name.position, hint=hint)
            return self._create_as(s.CreateStreamAs, first, name, comment, properties, how)
        if not columns and not properties:
            self.unexpected("(, WITH or AS")
        return s.CreateStream(
            **self._base(first),
            name=name,
            columns=columns,
            properties=properties,
            comment=comment,
            **how,
        )

    def _create_changelog(self, first: Token, how: dict[str, Any]) -> s.Statement:
        name = self._upto(3)
        columns: tuple[s.ColumnDefinition, ...] = ()
        keys: tuple[s.Name, ...] | None = None
        if self.is_mark(TokenType.L_PAREN):
            columns, keys = self._keyed_columns()
            if not keys:
                hint = "Write PRIMARY KEY (column) behind the columns, or CREATE STREAM for rows without one."
                self.fail("A changelog needs a primary key.", at=name.position, hint=hint)
        comment = self._comment()
        properties = self._with()
        if self.take("as"):
            if keys is not None:
                hint = "Leave the list out: the SELECT gives the columns and the primary key."
                self.fail("CREATE CHANGELOG … AS SELECT takes no column list.", at=name.position, hint=hint)
            return self._create_as(s.CreateChangelogAs, first, name, comment, properties, how)
        if keys is None:
            if properties:
                hint = "Name the columns and PRIMARY KEY (…), or write AS SELECT …"
                self.refuse("CREATE CHANGELOG without columns", at=name.position, hint=hint)
            self.unexpected("(, WITH or AS")
        return s.CreateChangelog(
            **self._base(first),
            name=name,
            columns=columns,
            primary_key=keys,
            properties=properties,
            comment=comment,
            **how,
        )

    def _create_table(self, first: Token, how: dict[str, Any]) -> s.Statement:
        name = self._upto(3)
        columns: tuple[s.ColumnDefinition, ...] = ()
        keys: tuple[s.Name, ...] = ()
        if self.is_mark(TokenType.L_PAREN):
            columns, keys = self._keyed_columns()
        comment = self._comment()
        properties = self._with()
        if self.take("as"):
            if columns or keys:
                hint = "Leave the list out: the SELECT gives the columns."
                self.fail("CREATE TABLE … AS SELECT takes no column list.", at=name.position, hint=hint)
            return self._create_as(s.CreateTableAs, first, name, comment, properties, how)
        if not columns and not properties:
            self.unexpected("(, WITH or AS")
        return s.CreateTable(
            **self._base(first),
            name=name,
            columns=columns,
            primary_key=keys,
            properties=properties,
            comment=comment,
            **how,
        )

    def _keyed_columns(self) -> tuple[tuple[s.ColumnDefinition, ...], tuple[s.Name, ...]]:
        """``(column, …, PRIMARY KEY (column, …))``; the key may stand anywhere in it, or be left out."""
        self.expect_mark(TokenType.L_PAREN, "(")
        columns: list[s.ColumnDefinition] = []
        keys: tuple[s.Name, ...] = ()
        while True:
            first = self._curr
            if self.take("primary", "key"):
                if keys:
                    self.fail("PRIMARY KEY is given twice.", at=self.since(first))
                keys = self._column_names()
            else:
                columns.append(self._column())
            if not self.take_mark(TokenType.COMMA):
                break
        self.expect_mark(TokenType.R_PAREN, ", or )")
        return tuple(columns), keys

    def _create_view(self, first: Token, noun: Token, how: dict[str, Any]) -> s.Statement:
        name, comment = self._upto(3), self._comment()
        if self.is_mark(TokenType.L_PAREN):
            self.refuse("CREATE MATERIALIZED VIEW with a list of columns", at=noun, hint="Write AS SELECT …")
        properties = self._with()
        self.expect("as")
        return self._create_as(s.CreateMaterializedViewAs, first, name, comment, properties, how)

    def _create_index(self, first: Token, noun: Token, how: dict[str, Any]) -> s.Statement:
        if how["or_replace"]:
            self.refuse("CREATE OR REPLACE INDEX", at=noun, hint="DROP INDEX first")
        name = self._one("an index's name")
        self.expect("on")
        view, columns = self._upto(3), self._column_names()
        return s.CreateIndex(
            **self._base(first), name=name, view=view, columns=columns, if_not_exists=how["if_not_exists"]
        )

    def _create_virtual(self, first: Token) -> s.Statement:
        changelog = self.is_word("changelog")
        if not (self.take("stream") or self.take("changelog")):
            self.unexpected("STREAM or CHANGELOG")
        name = self._upto(3)
        self.expect("as")
        select, properties = self._body()
        if properties:
            self.refuse("QUERY WITH in a virtual relation", hint="It belongs to the statements that use it.")
        return s.CreateVirtual(**self._base(first), name=name, changelog=changelog, select=select)

    def _create_as(
        self,
        kind: type[s.CreateAs],
        first: Token,
        name: s.Name,
        comment: str | None,
        properties: dict[str, s.Value],
        how: dict[str, Any],
    ) -> s.Statement:
        select, query_properties = self._body()
        return kind(
            **self._base(first),
            name=name,
            properties=properties,
            select=select,
            query_properties=query_properties,
            comment=comment,
            **how,
        )

    def _column(self) -> s.ColumnDefinition:
        token = self._curr
        if self.is_word("primary") and self.is_word("key", ahead=1):
            self.refuse("PRIMARY KEY on a stream", hint="CREATE CHANGELOG takes one")
        name, place = self.part("a column's name"), self.place(token)
        text, type_place = self.type_text()
        not_null = False
        if self.take("not"):
            self.expect("null")
            not_null = True
        return s.ColumnDefinition(name, text, not_null, place, type_place, self._comment())

    def _body(self) -> tuple[exp.Expression, dict[str, s.Value]]:
        if not self.is_word("select", "with") and not self.is_mark(TokenType.L_PAREN):
            self.unexpected("SELECT", self.meant("select"))
        select = self.query()
        query_properties: dict[str, s.Value] = {}
        if self.take("query"):
            self.expect("with")
            query_properties = self.properties()
        return select, query_properties

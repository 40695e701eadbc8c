"""SELECT: list, FROM with source properties, joins with WITHIN, WHERE, UNION ALL, WITH, sub-selects.

What the language knows but streams cannot do yet is noted in ``meta["refused"]`` of the query, so that the
binder reports it together with everything else that is wrong.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import Position
from leatstream.sql.ends import EndsParser, Refused
from leatstream.sql.reserved_words import NO_ALIAS
from leatstream.sql.statements import Name
from leatstream.sql.tokens_reader import MAX_DEPTH
from leatstream.sql.windows import WINDOW_FUNCTIONS


class QueryParser(EndsParser):
    """Reads query expressions."""

    def _parse_statement(self) -> exp.Expr | None:
        # sqlglot's entry: parse_one(text, read=Leat) gives a query.
        return self.query()

    def query(self) -> exp.Expression:
        """``[WITH …] select [UNION ALL select …]`` and the clauses that may follow."""
        first = self._curr
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"Queries nest at most {MAX_DEPTH} deep.", code="too-complex", at=first)
        ctes = self._ctes() if self.take("with") else []
        refused: list[Refused] = []
        node = self._compared(self._term(), ("intersect",), refused, first)
        undoubled: Position | None = None
        while self.is_word("union", "except", "minus"):
            word = self._curr
            if not self.is_word("union"):
                # It leaves out what is double by itself.
                undoubled = None
                node = self._compared(node, ("except", "minus"), refused, first)
                continue
            self._advance()
            every = self.take("all")
            _ = not every and self.take("distinct")
            if every and undoubled is not None:
                hint = "Write the UNION last: it leaves out what is double in all of it."
                refused.append(("UNION before UNION ALL", undoubled, hint))
            undoubled = None if every else self.place(word)
            right = self._compared(self._term(), ("intersect",), refused, first)
            node = self.node(exp.Union(this=node, expression=right, distinct=False), first)
            node.meta["operator"] = word.text.upper() + (" ALL" if every else "")
        ends: dict[str, Any] = {}
        refused += self.read_ends(ends)
        if ends and node.meta.get("ends"):
            hint = "Write SELECT * FROM (…) around the parentheses."
            refused.append(("A second ORDER BY or LIMIT", self.place(first), hint))
            node.meta["levels"] = [*node.meta.get("levels", [node.meta["ends"]]), ends]
        node.meta["ends"] = {**node.meta.get("ends", {}), **ends}
        if undoubled is not None:
            node.meta["distinct"] = undoubled
        node.meta["refused"] = [*node.meta.get("refused", []), *refused]
        node.meta["ctes"] = ctes + node.meta.get("ctes", [])
        self.depth -= 1
        return node

    def _compared(
        self, node: exp.Expression, words: tuple[str, ...], refused: list[Refused], first: Token
    ) -> exp.Expression:
        """EXCEPT and MINUS, or INTERSECT, which binds more tightly; for SELECTs that end."""
        while self.is_word(*words):
            word = self._curr
            self._advance()
            every = self.take("all")
            _ = not every and self.take("distinct")
            named = word.text.upper() + (" ALL" if every else "")
            kept = "with a partner" if words == ("intersect",) else "without a partner: WHERE right.x IS NULL"
            join = "JOIN" if words == ("intersect",) else "LEFT JOIN"
            hint = f"Streams have no end to compare; write {join} … WITHIN, and keep the rows {kept}."
            refused.append((named, self.place(word), hint))
            right = self._term()
            if words != ("intersect",):
                right = self._compared(right, ("intersect",), refused, first)
            node = self.node(exp.Union(this=node, expression=right, distinct=False), first)
            node.meta["compared"] = "INTERSECT" if words == ("intersect",) else "EXCEPT"
            node.meta["operator"] = named
        return node

    def _ctes(self) -> list[tuple[str, exp.Expression]]:
        if self.is_word("recursive"):
            self.refuse("WITH RECURSIVE")

        def one() -> tuple[str, exp.Expression]:
            token = self._curr
            name = self.part("a name")
            self.expect("as")
            self.expect_mark(TokenType.L_PAREN, "(")
            query = self.query()
            self.expect_mark(TokenType.R_PAREN, ")")
            query.meta["cte_span"] = (token.start, token.end + 1)
            return name, query

        found = self.many(one)
        names = [name for name, _ in found]
        for name in names:
            if names.count(name) > 1:
                self.fail(f"WITH names {name} twice.", at=self._prev)
        return found

    def _term(self) -> exp.Expression:
        if self.take_mark(TokenType.L_PAREN):
            node = self.query()
            self.expect_mark(TokenType.R_PAREN, ")")
            return node
        return self._select()

    def _select(self) -> exp.Expression:
        first = self._curr
        self.expect("select")
        distinct = self.place() if self.is_word("distinct") else None
        _ = self.take("distinct") or self.take("all")
        items = self.many(self._item)
        if not self.is_word("from"):
            nothing = "A SELECT reads relations: SELECT … FROM name." if not self._curr else None
            self.unexpected(", or FROM", self.meant("from") or nothing)
        self._advance()
        table = self._relation()
        joins = []
        unnests: list[exp.Expression] = []
        while True:
            unnest = self._unnest()
            if unnest is not None:
                unnests.append(unnest)
                continue
            join = self._listed() or self._join()
            if join is None:
                break
            if unnests:
                hint = "Write the UNNEST into a sub-select."
                self.refuse("A join after UNNEST", at=join.meta["position"], hint=hint)
            joins.append(join)
        where = exp.Where(this=self.expr()) if self.take("where") else None
        keys, group = self._grouping()
        having = exp.Having(this=self.expr()) if self.take("having") else None
        if self.is_word("partition") and self.is_word("by", ahead=1):
            hint = "The sink's WITH ('key.format' = …, 'key.columns' = …) sets the record key."
            self.refuse("PARTITION BY of a SELECT", hint=hint)
        if self.is_word("window", "qualify"):
            self.refuse(self._curr.text.upper())
        node = exp.Select(
            expressions=items, from_=exp.From(this=table), joins=joins, where=where, group=keys, having=having
        )
        node.set("laterals", unnests)
        node.meta["group_position"] = group
        node.meta["distinct"] = distinct
        return self.node(node, first)

    def _item(self) -> exp.Expression:
        first = self._curr
        ahead = 0
        while not self.is_mark(TokenType.STAR, ahead):
            named = self.is_mark(TokenType.VAR, ahead) or self.is_mark(TokenType.IDENTIFIER, ahead)
            if not (named and self.is_mark(TokenType.DOT, ahead + 1)):
                break
            ahead += 2
        else:
            qualifier = []
            for _ in range(ahead // 2):
                qualifier.append(self.part("a name"))
                self._advance()
            self._advance()
            star = self.node(exp.Star(), first)
            star.meta["qualifier"] = tuple(qualifier)
            return star
        value = self.expr()
        alias = self._alias()
        if alias is None:
            return value
        node = exp.Alias(this=value, alias=exp.Identifier(this=alias[0], quoted=True))
        node = self.node(node, first)
        node.meta["alias_span"] = (alias[1].offset, alias[1].offset + alias[1].length)
        return node

    def _alias(self) -> tuple[str, Position] | None:
        token = self._curr
        if self.take("as"):
            token = self._curr
            return self.part("a name"), self.place(token)
        # QUERY WITH (…) after the SELECT is no alias with source properties.
        closing = self.is_word("query") and self.is_word("with", ahead=1)
        closing |= self.is_word("partition") and self.is_word("by", ahead=1)
        word = token.token_type == TokenType.VAR and token.text.lower() not in NO_ALIAS and not closing
        if word or token.token_type == TokenType.IDENTIFIER:
            return self.part("a name"), self.place(token)
        return None

    def _relation(self) -> exp.Expression:
        node: exp.Expression
        if self.is_word(*WINDOW_FUNCTIONS) and self.is_mark(TokenType.L_PAREN, 1):
            node = self._windowed(self._ranged)
        else:
            node = self._ranged()
        alias = self._alias()
        if alias is not None and self.is_mark(TokenType.L_PAREN):
            self.refuse(
                "A column list after an alias", hint="Name the columns inside the sub-select with AS."
            )
        node.meta["alias"] = alias
        self._source_properties(node)
        if self.is_word("match_recognize"):
            matched = self._matched(node)
            matched.meta["alias"] = self._alias()
            self._source_properties(node)
            return matched
        return node

    def _source_properties(self, node: exp.Expression) -> None:
        word = self._curr
        if self.take("with"):
            if "properties" in node.meta:
                self.fail("Source properties are given twice.", at=word)
            node.meta["properties"] = self.properties()
            node.meta["properties_position"] = self.since(word)

    def _ranged(self) -> exp.Expression:
        first = self._curr
        node: exp.Expression
        if self.take_mark(TokenType.L_PAREN):
            if not self.is_word("select", "with") and not self.is_mark(TokenType.L_PAREN):
                self.refuse("A relation in parentheses", at=first, hint="Leave the parentheses out.")
            node = exp.Subquery(this=self.query())
            self.expect_mark(TokenType.R_PAREN, ")")
            node = self.node(node, first)
        else:
            node = self._named(first)
        return node

    def _named(self, first: Token) -> exp.Expression:
        if self.is_word("lateral", "unnest", "values"):
            self.refuse(f"{first.text.upper()} in FROM")
        name: Name = self.name("a relation")
        if self.is_mark(TokenType.L_PAREN):
            shown = name.parts[-1].upper()
            self.refuse(f"The table function {shown}", at=name.position, hint="FROM takes relations")
        node = self.node(exp.Table(this=exp.Identifier(this=name.parts[-1], quoted=True)), first)
        node.meta["name"] = name
        return node

    def _listed(self) -> exp.Expression | None:
        """``, relation``: every row with every row."""
        first = self._curr
        if not self.take_mark(TokenType.COMMA):
            return None
        node = self.node(exp.Join(this=self._relation()), first)
        node.meta.update(words=("comma",), within=None, position=self.place(first))
        return node

    def _join(self) -> exp.Expression | None:
        first = self._curr
        words: list[str] = []
        known = ("natural", "inner", "left", "right", "full", "outer", "cross", "semi", "anti", "lateral")
        while self.is_word(*known):
            words.append(self._curr.text.lower())
            self._advance()
        if not self.take("join"):
            if words:
                self.unexpected("JOIN")
            return None
        place = self.since(first)
        table = self._relation()
        node = exp.Join(this=table)
        within = self._within()
        if self.is_word("using"):
            self.refuse("USING", hint="Write ON a.x = b.x.")
        if self.take("on"):
            node.set("on", self.expr())
            within = within or self._within()
        node = self.node(node, first)
        node.meta.update(words=tuple(words), within=within, position=place)
        return node

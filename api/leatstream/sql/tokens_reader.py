"""What every grammar part shares: expecting tokens, names, WITH lists, faults with positions.

Built on sqlglot's parser so that its results are sqlglot's tree; of sqlglot's own grammar nothing is used,
because it skips over what it does not understand (``SELECT a,, b`` passes there).
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from math import isinf
from typing import Any, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import Position
from leatstream.sql.lexer import Source
from leatstream.sql.reserved_words import RESERVED, advice, quoting
from leatstream.sql.statements import Name, Value

T = TypeVar("T")
N = TypeVar("N", bound=exp.Expression)
MAX_DEPTH = 48
MAX_NUMBER = 19


class SqlFault(ParseError):
    """A fault at a place; ``parser.parse`` turns it into a RequestError."""

    def __init__(self, code: str, detail: str, position: Position, hint: str | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.position = position
        self.hint = hint


class TokensReader(SparkParser):
    """A cursor over the tokens of one statement."""

    def load(self, tokens: list[Token], source: Source) -> None:
        """Start at the first of ``tokens``, which come from ``source``."""
        self.reset()
        self.sql = source.text
        self.source = source
        self.depth = 0
        self.limits: dict[int, exp.Expression] = {}
        self._tokens = tokens
        self._tokens_size = len(tokens)
        self._advance(0)

    def _parse(
        self,
        parse_method: Callable[[Any], exp.Expr | None],
        raw_tokens: list[Token],
        sql: str | None = None,
    ) -> list[exp.Expr | None]:
        # The way in through sqlglot's own API: one statement, all of its tokens.
        self.load([t for t in raw_tokens if t.token_type != TokenType.SEMICOLON], Source(sql or ""))
        result = parse_method(self)
        self.expect_end()
        return [result]

    # Faults

    def place(self, token: Token | None = None) -> Position:
        """Where a token stands; for the end of the statement, the place after its last token."""
        token = token or self._curr
        if not token:
            end = self._tokens[-1].end + 1 if self._tokens else 0
            return self.source.position(end, end)
        return self.source.position(token.start, token.end + 1)

    def since(self, first: Token) -> Position:
        """From ``first`` to the token read last."""
        return self.source.position(first.start, max(self._prev.end, first.end) + 1)

    def fail(
        self,
        detail: str,
        *,
        code: str = "sql-syntax",
        at: Token | Position | None = None,
        hint: str | None = None,
    ) -> NoReturn:
        """Stop with a fault at a token or place, by default the current token.

        Args:
            detail: the message.
            code: of the fault.
            at: where; None = the current token.
            hint: what to do.
        """
        raise SqlFault(code, detail, at if isinstance(at, Position) else self.place(at), hint)

    def refuse(self, what: str, *, at: Token | Position | None = None, hint: str | None = None) -> NoReturn:
        """Stop because this is known but not built.

        Args:
            what: begins the message.
            at: where; None = the current token.
            hint: what to do.
        """
        self.fail(f"{what} is not supported.", code="unsupported", at=at, hint=hint)

    def unexpected(self, wanted: str, hint: str | None = None) -> NoReturn:
        """Stop because something else was wanted."""
        found = f"found {self.shown(self._curr)}" if self._curr else "the statement ends here"
        self.fail(f"Expected {wanted}, {found}.", hint=hint)

    def shown(self, token: Token) -> str:
        """A token for a message: shortened, values of strings left out (they may be secret)."""
        if token.token_type == TokenType.STRING:
            return "a string"
        text = token.text if len(token.text) <= 40 else token.text[:37] + "…"
        return f'"{text}"' if token.token_type == TokenType.IDENTIFIER else text

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """sqlglot's own way to complain."""
        self.fail(message, at=token or None)

    # Words and marks

    def is_word(self, *words: str, ahead: int = 0) -> bool:
        """Whether the token is one of these words, unquoted."""
        at = self._index + ahead
        if at >= self._tokens_size:
            return False
        token = self._tokens[at]
        return token.token_type == TokenType.VAR and token.text.lower() in words

    def take(self, *words: str) -> bool:
        """Read these words if they all come next, in this order."""
        for ahead, word in enumerate(words):
            if not self.is_word(word, ahead=ahead):
                return False
        self._advance(len(words))
        return True

    def expect(self, *words: str) -> None:
        """Read these words or stop."""
        for word in words:
            if not self.take(word):
                self.unexpected(word.upper(), self.meant(word))

    def meant(self, word: str) -> str | None:
        """A hint if the token looks like a slip of this word."""
        found = self._curr.text.lower() if self._curr else ""
        return f"Did you mean {word.upper()}?" if get_close_matches(found, [word], cutoff=0.7) else None

    def is_mark(self, kind: TokenType, ahead: int = 0) -> bool:
        """Whether the token is of this kind."""
        at = self._index + ahead
        return at < self._tokens_size and self._tokens[at].token_type == kind

    def take_mark(self, kind: TokenType) -> bool:
        """Read the token if it is of this kind."""
        if self.is_mark(kind):
            self._advance()
            return True
        return False

    def expect_mark(self, kind: TokenType, shown: str) -> None:
        """Read a mark or stop."""
        if not self.take_mark(kind):
            self.unexpected(shown)

    def expect_end(self) -> None:
        """Stop if anything is left."""
        if self._curr:
            listed = self.is_mark(TokenType.L_PAREN) and self.is_mark(TokenType.STRING, 1)
            hint = "Write WITH before the list of properties." if listed else None
            self.fail(f"Did not expect {self.shown(self._curr)} here.", hint=hint)

    def many(self, read: Callable[[], T]) -> list[T]:
        """One or more, separated by commas."""
        items = [read()]
        while self.take_mark(TokenType.COMMA):
            items.append(read())
        return items

    def node(self, node: N, first: Token) -> N:
        """Note on a tree node which stretch of text it was read from."""
        node.meta["span"] = (first.start, max(self._prev.end, first.end) + 1)
        node.meta["source"] = self.source
        return node

    # Names and property lists

    def part(self, what: str, *, reserved: bool = False) -> str:
        """One part of a name, folded unless quoted."""
        token = self._curr
        if token.token_type == TokenType.IDENTIFIER:
            if not token.text or any(ord(c) < 32 for c in token.text) or "${" in token.text:
                self.fail("A name cannot be empty or hold control characters or ${.")
        elif token.token_type != TokenType.VAR:
            self.unexpected(what)
        elif not reserved and token.text.lower() in RESERVED:
            in_query = what in ("an expression", "a relation")
            hint = advice(token, self._prev, self._next) if in_query else quoting(token)
            self.fail(f"Expected {what}, found the word {token.text}.", hint=hint)
        if len(token.text) > 255:
            self.fail("A name has at most 255 characters.")
        self._advance()
        return token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()

    def name(self, what: str = "a name") -> Name:
        """A dotted name."""
        first = self._curr
        parts = [self.part(what)]
        while self.take_mark(TokenType.DOT):
            parts.append(self.part("a name", reserved=True))
        return Name(tuple(parts), self.since(first))

    def type_text(self, *, compared: bool = False) -> tuple[str, Position]:
        """A column type as written, with its <…> and (…).

        Args:
            compared: whether a comparison may follow, so that < is the type's of nested ones only.
        """
        first = self._curr
        if first.token_type != TokenType.VAR or first.text.lower() in RESERVED:
            self.unexpected("a type")
        plain = compared and first.text.lower() not in ("array", "map", "struct")
        self._advance()
        for opening, closing in ((TokenType.LT, TokenType.GT), (TokenType.L_PAREN, TokenType.R_PAREN)):
            if opening == TokenType.LT and plain:
                continue
            depth = 0
            while self._curr and (depth or self.is_mark(opening)):
                depth += self.is_mark(opening) - self.is_mark(closing)
                self._advance()
                if not depth:
                    break
            if depth:
                self.unexpected(">" if closing == TokenType.GT else ")")
        place = self.since(first)
        return self.source.text[place.offset : place.offset + place.length], place

    def properties(self, *, flags: bool = False) -> dict[str, Value]:
        """``('key' = value, …)``; with ``flags`` a key may stand alone and means TRUE."""
        found: dict[str, Value] = {}
        self.expect_mark(TokenType.L_PAREN, "(")
        while True:
            token = self._curr
            if not self.take_mark(TokenType.STRING):
                wrong = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
                hint = f"Property names are strings: '{token.text}' = …" if wrong else None
                self.fail(f"Expected a property name, found {self.shown(token) or 'the end'}.", hint=hint)
            key, place = token.text.strip().lower(), self.place(token)
            if key in found:
                self.fail(f"The property {key!r} is given twice.", code="invalid-property", at=token)
            if self.take_mark(TokenType.EQ):
                found[key] = self.value(place)
            elif flags:
                found[key] = Value(True, "keyword", place, place)
            else:
                self.unexpected(f"= after the property '{token.text}'")
            if not self.take_mark(TokenType.COMMA):
                break
        self.expect_mark(TokenType.R_PAREN, ", or )")
        return found

    def value(self, key_position: Position) -> Value:
        """What may stand right of = in a WITH list."""
        first = self._curr
        negative = self.take_mark(TokenType.DASH)
        token = self._curr
        kind = token.token_type
        words = () if negative else (TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER)
        if kind not in (TokenType.NUMBER, *words):
            self.unexpected("a value: 'text', a number, TRUE, FALSE, a word or \"a name\"")
        self._advance()
        place = self.since(first)
        if kind == TokenType.NUMBER:
            if len(token.text) > MAX_NUMBER:
                self.fail(f"A number in a property has at most {MAX_NUMBER} characters.", at=token)
            number = float(token.text) if set(token.text) & set(".eE") else int(token.text)
            if isinf(number):
                self.fail("This number is too large.", at=token)
            return Value(-number if negative else number, "number", place, key_position)
        if kind == TokenType.STRING:
            return Value(token.text, "string", place, key_position)
        if kind == TokenType.IDENTIFIER:
            return Value(token.text, "identifier", place, key_position)
        truth = {"true": True, "false": False}.get(token.text.lower())
        return Value(token.text if truth is None else truth, "keyword", place, key_position)

"""BEGIN APPLICATION … END APPLICATION: its statements, and virtual relations written into their readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from leatstream.errors import Faults, LeatstreamError, Position, RequestError
from leatstream.sql import statements as s
from leatstream.sql.lexer import Source, scan

VIRTUAL = "virtual"
MAX_STATEMENTS = 100
MAX_TEXT = 200_000
ALLOWED = (s.Use, s.CreateStream, s.CreateAs, s.InsertInto, s.CreateVirtual)
# Another value at each call: two statements that read such a relation would see different ones.
NOW = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "now", "proctime")
RANDOM = ("rand", "rand_integer", "random", "randn", "shuffle", "uuid", "unix_timestamp")
CHANGING = frozenset((*NOW, *RANDOM))


def is_word(token: Token | None, word: str) -> bool:
    """Whether the token is this word, unquoted."""
    return token is not None and token.token_type == TokenType.VAR and token.text.lower() == word


def split(tokens: Sequence[Token]) -> list[list[Token]]:
    """Part tokens at semicolons; an application, with the semicolons inside it, is one part."""
    parts: list[list[Token]] = [[]]
    inside = False
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        part = parts[-1]
        if not part:
            inside = is_word(token, "begin") and is_word(following, "application")
        elif inside and is_word(token, "end") and is_word(following, "application"):
            inside = part[-1].token_type != TokenType.SEMICOLON
        if token.token_type == TokenType.SEMICOLON and not inside:
            parts.append([])
        else:
            part.append(token)
    return [part for part in parts if part]


def read_statements(
    tokens: Sequence[Token], source: Source, read_one: Callable[[list[Token], Source], s.Statement]
) -> tuple[s.Statement, ...]:
    """The statements inside an application.

    Args:
        tokens: of all statements.
        source: the text that they are of.
        read_one: reads one statement from its tokens.

    Raises:
        RequestError: with the faults of each statement that cannot be read or does not belong there.
    """
    faults = Faults()
    found: list[s.Statement] = []
    parts = split(tokens)
    if len(parts) > MAX_STATEMENTS:
        place = source.position(tokens[0].start, tokens[-1].end + 1)
        detail = f"An application has at most {MAX_STATEMENTS} statements."
        raise RequestError("too-complex", detail, position=place)
    for part in parts:
        try:
            statement = read_one(part, source)
            _check(statement)
            found.append(statement)
        except RequestError as error:
            faults.items += error.faults
    faults.raise_if_any()
    return tuple(found)


def _check(statement: s.Statement) -> None:
    if not isinstance(statement, ALLOWED) or (isinstance(statement, s.Use) and statement.noun == "role"):
        raise RequestError(
            "unsupported",
            "This statement cannot be part of an application.",
            position=statement.position,
            hint="Available: USE, CREATE STREAM, CHANGELOG, TABLE, VIRTUAL STREAM and VIRTUAL CHANGELOG, and"
            " INSERT INTO … SELECT.",
        )
    if getattr(statement, "or_replace", False) or getattr(statement, "if_not_exists", False):
        raise RequestError(
            "unsupported",
            "OR REPLACE and IF NOT EXISTS cannot be part of an application: all it holds is its own.",
            position=statement.position,
        )


@dataclass(frozen=True, slots=True)
class Written:
    """A text made of stretches of another one, and where they came from.

    Attributes:
        text: the text.
        pieces: start in ``text``, length, start in the other text or None for what was put in between.
    """

    text: str
    pieces: tuple[tuple[int, int, int | None], ...]

    def origin(self, offset: int) -> int | None:
        """Where a character came from; None for one that was put in."""
        for start, length, source in self.pieces:
            if start <= offset < start + length:
                return None if source is None else source + offset - start
        return None


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.pieces: list[tuple[int, int, int | None]] = []
        self.length = 0

    def add(self, text: str, source: int | None = None) -> None:
        self.parts.append(text)
        self.pieces.append((self.length, len(text), source))
        self.length += len(text)

    def take(self, written: Written, start: int = 0, stop: int | None = None) -> None:
        stop = len(written.text) if stop is None else stop
        for begin, length, source in written.pieces:
            low, high = max(begin, start), min(begin + length, stop)
            if low < high:
                self.add(written.text[low:high], None if source is None else source + low - begin)

    def done(self) -> Written:
        return Written("".join(self.parts), tuple(self.pieces))


def references(select: exp.Expression) -> Iterator[exp.Table]:
    """Every table of a query that names something virtual, those of WITH and of sub-selects too."""
    for node in select.walk():
        if isinstance(node, exp.Table) and node.meta["name"].parts[0] == VIRTUAL:
            yield node
        for _, query in node.meta.get("ctes", ()):
            yield from references(query)


def key(name: s.Name) -> str:
    """One name for a virtual relation, whatever its parts hold.

    Raises:
        RequestError: sql-syntax, it is not ``virtual.schema.name``.
    """
    if len(name.parts) != 3 or name.parts[0] != VIRTUAL:
        raise RequestError(
            "sql-syntax",
            "A virtual relation's name has three parts, the first of them virtual.",
            position=name.position,
            hint=f"Write {VIRTUAL}.public.{name.parts[-1]}.",
        )
    return ".".join(name.parts)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def write_in(
    whole: str, statement: s.CreateAs | s.InsertInto | s.CreateVirtual, known: dict[str, Written]
) -> Written:
    """The statement (of a virtual relation its SELECT) with the virtual relations it uses as its WITH.

    Args:
        whole: the text that the statement's positions count in.
        statement: as it was parsed from ``whole``.
        known: key to the SELECT of each virtual relation declared before it, as this function wrote it.

    Raises:
        RequestError: unknown-relation, or too-complex for a text that grows too long.
    """
    first, stop = statement.position.offset, statement.position.offset + statement.position.length
    body = _body_start(whole[first:stop]) + first
    tables = sorted(references(statement.select), key=lambda t: int(t.meta["span"][0]))
    used = dict.fromkeys(_known(table.meta["name"], known) for table in tables)
    writer = _Writer()
    if not isinstance(statement, s.CreateVirtual):
        writer.add(whole[first:body], first)
    at = body
    if used:
        more = is_word(next(iter(scan(whole[body:stop])), None), "with")
        for index, name in enumerate(used):
            writer.add(("WITH " if index == 0 else ", ") + f"{_quoted(name)} AS (")
            writer.take(known[name])
            writer.add(")")
        writer.add(", " if more else " ")
        at = body + 4 if more else body
    for table in tables:
        start, end = table.meta["span"]
        writer.add(whole[at:start], at)
        alone = table.meta.get("alias") is None and table.meta.get("window") is None
        name = table.meta["name"]
        writer.add(_quoted(key(name)) + (f" AS {_quoted(name.parts[-1])}" if alone else ""))
        at = end
    writer.add(whole[at:stop], at)
    written = writer.done()
    if len(written.text) > MAX_TEXT:
        detail = f"With its virtual relations written in, the statement is longer than {MAX_TEXT} characters."
        raise RequestError("too-complex", detail, position=statement.position)
    return written


def _known(name: s.Name, known: dict[str, Written]) -> str:
    found = key(name)
    if found not in known:
        detail = f"Virtual relation {found} does not exist."
        hint = "Declare it above: CREATE VIRTUAL STREAM or CHANGELOG … AS SELECT …"
        raise RequestError("unknown-relation", detail, position=name.position, hint=hint)
    return found


def _body_start(text: str) -> int:
    """Where the SELECT of a statement begins, its WITH included."""
    depth = 0
    tokens = scan(text)
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        listed = following is not None and following.token_type == TokenType.L_PAREN
        if depth == 0 and (is_word(token, "select") or (is_word(token, "with") and not listed)):
            return token.start
        if token.token_type == TokenType.L_PAREN:
            if depth == 0 and not is_word(tokens[at - 1], "with"):
                return token.start
            depth += 1
        depth -= token.token_type == TokenType.R_PAREN
    return len(text)


def whole_of(statement: s.Statement) -> str:
    """A text in which the statement stands at its place: what is before it does not matter."""
    line, column = statement.position.line - 1, statement.position.column - 1
    return " " * (statement.position.offset - line - column) + "\n" * line + " " * column + statement.text


def placed(error: LeatstreamError, statement: s.Statement) -> LeatstreamError:
    """Give the faults of an error in a statement's own text their places in the text it is part of."""
    piece = (0, len(statement.text) + 1, statement.position.offset)
    moved(error, Written(statement.text, (piece,)), Source(whole_of(statement)), statement.position)
    return error


def moved(error: LeatstreamError, written: Written, source: Source, otherwise: Position) -> None:
    """Give the faults of an error in a written text their places in the one it was made from.

    Args:
        error: whose faults are changed, in place.
        written: the text, with the origins of its parts.
        source: the text that it was made from.
        otherwise: place of a fault whose origin is not known.
    """
    faults = []
    for fault in error.faults:
        place = fault.position
        origin = None if place is None else written.origin(place.offset)
        if place is not None:
            place = otherwise if origin is None else source.position(origin, origin + place.length)
        faults.append(replace(fault, position=place))
    error.faults = tuple(faults)

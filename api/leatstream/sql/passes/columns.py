"""Column names against the inputs in scope: what is alias, column or field, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.model.names import quote
from leatstream.model.objects import HIDDEN_PREFIX
from leatstream.model.types import DataType
from leatstream.sql.lexer import Source
from leatstream.sql.passes.scope import Input, Output


def suggestion(wrong: str, known: Iterable[str]) -> str | None:
    """``did you mean …?`` or None."""
    names = {name.lower(): name for name in known}
    close = get_close_matches(wrong.lower(), list(names), n=1, cutoff=0.6)
    return f"Did you mean {quote(names[close[0]])}?" if close else None


def near_input(wrong: str, inputs: Iterable[Input]) -> str | None:
    """The same of what FROM has; what stood in a sub-select has no name that could be written."""
    return suggestion(wrong, [given.names[-1] for given in inputs if given.names and not given.merged])


def _for_text(name: str, known: Sequence[str], source: Source, place: Position) -> str | None:
    """The hint for a column in double quotes that was perhaps to be a text."""
    quoted = source.text[place.offset : place.offset + 1] == '"'
    if not quoted or name.lower() in {one.lower() for one in known}:
        return None
    written = name.replace("'", "''")
    text = f"Text is written in single quotes: '{written}'."
    column = suggestion(name, known)
    return f"{column} {text}" if column else text


class Columns:
    """Resolves the columns of one SELECT.

    A resolved node carries ``meta["bound"] = (input ref, column, fields)`` and ``meta["type"]``.
    """

    def __init__(self, inputs: Sequence[Input], faults: Faults) -> None:
        self.inputs = inputs
        self.faults = faults

    def resolve(self, node: exp.Expression) -> None:
        """Bind one exp.Column, or note what is wrong with it."""
        if node.meta.get("wrong"):
            return  # which has been noted
        parts: list[tuple[str, tuple[int, int]]] = node.meta["parts"]
        source: Source = node.meta["source"]
        place = source.position(parts[0][1][0], parts[-1][1][1])
        names = [part for part, _ in parts]
        if any(name.lower().startswith(HIDDEN_PREFIX) for name in names):
            detail = f"Names that start with {HIDDEN_PREFIX} belong to leatstream."
            self.faults.add(
                "unknown-column",
                detail,
                position=place,
                hint="Use rowtime(), rowkey(), rowmeta() or rowheaders().",
            )
            return
        found = self._qualified(names) or self._plain(names)
        if len(found) == 1:
            given, column, fields = found[0]
            if column is not None:
                node.meta["bound"] = (given.ref, column.name, fields)
                node.meta["type"] = self._field_type(column, fields, place)
            return
        if len(found) > 1:
            owners = " and ".join(given.shown for given, _, _ in found)
            self.faults.add(
                "ambiguous-column",
                f"The column {quote(names[0])} is in {owners}.",
                position=place,
                hint=f"Write {found[0][0].shown}.{quote(names[0])}.",
            )
            return
        self._unknown(names, place, source)

    def _qualified(self, names: list[str]) -> list[tuple[Input, Output | None, list[str]]]:
        for count in range(min(len(names) - 1, 3), 0, -1):
            qualifier = tuple(names[:count])
            owners = [i for i in self.inputs if i.names[-count:] == qualifier]
            if len(owners) == 1:
                given = owners[0]
                if given.columns is None:
                    return [(given, None, [])]
                column = next((c for c in given.columns if c.name == names[count]), None)
                if column is not None:
                    return [(given, column, names[count + 1 :])]
        return []

    def _plain(self, names: list[str]) -> list[tuple[Input, Output | None, list[str]]]:
        found: list[tuple[Input, Output | None, list[str]]] = []
        for given in self.inputs:
            if given.columns is None:
                return [(given, None, [])]
            if given.merged:
                continue
            found += [(given, c, names[1:]) for c in given.columns if c.name == names[0]]
        return found

    def _unknown(self, names: list[str], place: Position, source: Source) -> None:
        owners = [i for i in self.inputs if i.names[-1:] == (names[0],)]
        if len(names) > 1 and owners:
            owner = owners[0]
            known = [c.name for c in owner.columns or ()]
            detail = f"{owner.shown} has no column {quote(names[1])}."
            hint = suggestion(names[1], known) or _listed(known)
        elif len(names) > 1 and not self._has(names[0]):
            detail = f"Nothing in FROM is called {quote(names[0])}."
            hint = near_input(names[0], self.inputs)
            hint = hint or _listed([i.shown for i in self.inputs])
        else:
            known = [c.name for i in self.inputs for c in i.columns or ()]
            detail = f"There is no column {quote(names[0])}."
            hint = _for_text(names[0], known, source, place)
            hint = hint or suggestion(names[0], known) or _listed(known)
        self.faults.add("unknown-column", detail, position=place, hint=hint)

    def _has(self, name: str) -> bool:
        return any(c.name == name for i in self.inputs for c in i.columns or ())

    def _field_type(self, column: Output, fields: list[str], place: Position) -> DataType | None:
        known = column.type
        for name in fields:
            known = step_into(known, name, place, self.faults)
        return known


def step_into(known: DataType | None, name: str, place: Position | None, faults: Faults) -> DataType | None:
    """The type of a field of a STRUCT; faults if the type is known and has no such field.

    Args:
        known: type of the STRUCT; None = not known.
        name: of the field.
        place: where a fault is shown.
        faults: takes what is wrong.
    """
    if known is None:
        return None
    if known.kind != "STRUCT":
        faults.add(
            "type-mismatch",
            f"{quote(name)} asks for a field of a STRUCT, but this is {known}.",
            position=place,
        )
        return None
    if name in known.fields:
        return known.arguments[known.fields.index(name)]
    hint = suggestion(name, known.fields) or _listed(known.fields)
    faults.add("unknown-column", f"The STRUCT has no field {quote(name)}.", position=place, hint=hint)
    return None


def _listed(names: Sequence[str]) -> str | None:
    if not names:
        return None
    shown = ", ".join(quote(name) for name in names[:8])
    return f"Available: {shown}, …" if len(names) > 8 else f"Available: {shown}."

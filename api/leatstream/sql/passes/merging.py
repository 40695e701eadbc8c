"""Changelogs in sub-selects and WITH: written into the SELECT that reads them, where that means the same.

A filter or projection of a changelog, its joins, and its groups are taken up by the SELECT around them, so
that rows are taken back as they would be with a topic between. What cannot be taken up stays as it is, and is
refused where changelogs have no place.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Protocol

from sqlglot import exp

from leatstream.errors import Fault, Faults, RequestError
from leatstream.sql.applications import RANDOM
from leatstream.sql.passes.rewriting import Inside, Outside, Part, column, wrapped
from leatstream.sql.passes.scope import BoundSelect, Input, Output, place
from leatstream.sql.statements import Name

Ctes = Mapping[str, tuple[exp.Expression, "Ctes"]]
MAX_MERGES = 200
# No text of a user has this character, so nothing else in FROM is called so.
_OWN = "\0"
_CHANCE = frozenset(RANDOM) - {"unix_timestamp"}


class Reading(Protocol):
    """How relations and queries are read on trial: what is bound so is not part of the statement."""

    def is_changelog(self, name: Name) -> bool:
        """Whether the catalog has a changelog of this name."""

    def read(self, relation: exp.Expression, ctes: Ctes) -> Input:
        """What a relation in FROM gives."""

    def select(self, query: exp.Expression, ctes: Ctes) -> tuple[BoundSelect, list[Fault]]:
        """A whole SELECT, and what is wrong with it."""


class Merger:
    """Takes up the changelogs that one statement reads in sub-selects and WITH."""

    def __init__(self, reading: Reading, faults: Faults, merges: count[int], *, changelog: bool) -> None:
        self.reading = reading
        self.faults = faults
        self.merges = merges
        self.changelog = changelog

    def merge(self, node: exp.Expression, ctes: Ctes) -> None:
        """Take up, in place, what FROM of a SELECT reads; names are resolved where they are written."""
        spots = [node.args["from_"], *(node.args.get("joins") or ())]
        found = [self._source(spot.this, ctes, node, first=not i) for i, spot in enumerate(spots)]
        if not any(found):
            return
        if next(self.merges) > MAX_MERGES:
            raise RequestError("too-complex", "The query has too many sub-selects.", position=place(node))
        inputs: list[Input] = []
        parts: dict[str, Part] = {}
        for spot, source in zip(spots, found, strict=True):
            part = self._part(spot.this, *source) if source is not None else None
            if part is None:
                inputs.append(self.reading.read(spot.this.copy(), ctes))
                continue
            parts[part.own] = part
            inputs.append(part.given)
        Outside(inputs, parts, self.faults).rewrite(node)
        for spot, given in zip(spots, inputs, strict=True):
            if given.ref in parts:
                _take_up(node, spot, parts[given.ref])

    def _source(
        self, relation: exp.Expression, ctes: Ctes, around: exp.Expression, *, first: bool
    ) -> tuple[exp.Expression, Ctes] | None:
        """The SELECT that a relation in FROM stands for, if it is to be taken up."""
        if isinstance(relation, exp.MatchRecognize) or relation.meta.keys() & {"window", "properties"}:
            return None
        ctes = relation.meta.get("scope", ctes)
        name = relation.meta.get("name")
        if isinstance(relation, exp.Subquery):
            query = relation.this
        elif name is not None and len(name.parts) == 1 and name.parts[0] in ctes:
            query, ctes = ctes[name.parts[0]]
        else:
            return None
        if not isinstance(query, exp.Select) or not _plain(query) or around.args.get("laterals"):
            return None
        inner = {**ctes}
        for one, sub in query.meta.get("ctes", ()):
            inner = {**inner, one: (sub, inner)}
        if query.args.get("group") is not None:
            alone = not around.args.get("joins") and around.args.get("group") is None
            fits = self.changelog and first and alone and around.meta["distinct"] is None
            return (query, ctes) if fits and not query.args["group"].meta["sets"] else None
        if not first and query.args.get("joins"):
            return None
        return (query, ctes) if self._keyed(query.args["from_"].this, inner, query) else None

    def _keyed(self, relation: exp.Expression, ctes: Ctes, around: exp.Expression) -> bool:
        name: Name | None = relation.meta.get("name")
        scope: Ctes = relation.meta.get("scope", ctes)
        if name is not None and not (len(name.parts) == 1 and name.parts[0] in scope):
            return "window" not in relation.meta and self.reading.is_changelog(name)
        return self._source(relation, ctes, around, first=True) is not None

    def _part(self, relation: exp.Expression, query: exp.Expression, ctes: Ctes) -> Part | None:
        """The SELECT with all of its names distinct from those around; None if something in it is wrong."""
        select = query.copy()
        inner = ctes
        for name, sub in select.meta.get("ctes", ()):
            inner = {**inner, name: (sub, inner)}
        self.merge(select, inner)
        bound, wrong = self.reading.select(select.copy(), ctes)
        alias = relation.meta.get("alias")
        name = relation.meta.get("name")
        shown = alias[0] if alias else name.parts[-1] if name is not None else None
        if wrong:
            self.faults.items += wrong
            relation.meta["wrong"] = True
            return None
        owned = {given.ref: f"{_OWN}{next(self.merges)}" for given in bound.inputs}
        for spot, given in zip(_spots(select), bound.inputs, strict=True):
            spot.this.meta["merged"] = (owned[given.ref], given.shown)
            spot.this.meta.setdefault("scope", inner)
        Inside(bound.inputs, owned, Faults()).rewrite(select)
        values = {
            item.name: node.this if isinstance(node, exp.Alias) else node
            for item, node in zip(bound.items, select.expressions, strict=True)
        }
        first = bound.inputs[0]
        own = owned[first.ref]
        columns = tuple(Output(item.name, item.type) for item in bound.items)
        given = Input(own, (shown,) if shown else (), shown or "the sub-select", columns)
        keys = first.scan.relation.primary_key if first.scan is not None else ()
        guard = column((own, keys[0]), select) if keys else None
        return Part(select, given, values, own, guard)


def _plain(query: exp.Expression) -> bool:
    """Whether it has clauses that can be taken up, and no call whose value would be another one there."""
    calls = (str(node.this).lower() for node in query.find_all(exp.Anonymous))
    return (
        not query.args.get("laterals")
        and query.meta["distinct"] is None
        and not query.meta.get("refused")
        and not any(call in _CHANCE for call in calls)
    )


def _spots(select: exp.Expression) -> list[exp.Expression]:
    return [select.args["from_"], *(select.args.get("joins") or ())]


def _both(one: exp.Expression | None, other: exp.Expression | None) -> exp.Expression | None:
    if one is None or other is None:
        return one or other
    return exp.And(this=wrapped(one), expression=wrapped(other))


def _condition(select: exp.Expression, clause: str) -> exp.Expression | None:
    found = select.args.get(clause)
    return found.this if found is not None else None


def _take_up(node: exp.Expression, spot: exp.Expression, part: Part) -> None:
    """Put the clauses of a part at the place of the relation that it stood for."""
    select = part.select
    where = _condition(select, "where")
    spot.set("this", select.args["from_"].this)
    if isinstance(spot, exp.Join):
        spot.set("on", _both(spot.args.get("on"), where) if spot.args.get("on") is not None else None)
        return
    node.set("joins", [*(select.args.get("joins") or ()), *(node.args.get("joins") or ())])
    around = _condition(node, "where")
    group = select.args.get("group")
    if group is None:
        where = _both(where, around)
    else:
        having = _both(_condition(select, "having"), around)
        node.set("group", group)
        node.meta["group_position"] = select.meta["group_position"]
        node.set("having", exp.Having(this=having) if having is not None else None)
    node.set("where", exp.Where(this=where) if where is not None else None)

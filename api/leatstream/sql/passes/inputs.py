"""FROM: relations of the catalog, sub-selects, WITH queries and row patterns, each with its window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from leatstream.errors import LeatstreamError, RequestError, sentence
from leatstream.model.names import quote
from leatstream.model.objects import HIDDEN_PREFIX, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.logical import Scan
from leatstream.sql.passes.grouping import WINDOW_COLUMNS
from leatstream.sql.passes.lookups import refuse_table_first
from leatstream.sql.passes.merging import Ctes
from leatstream.sql.passes.patterns import PatternBinder
from leatstream.sql.passes.scope import Binding, BoundQuery, Input, Output
from leatstream.sql.source_properties import check_source_properties
from leatstream.sql.statements import Name, Properties

MAX_SCANS = 64


class InputBinder(ABC):
    """Binds what stands in FROM; what it gathers is in ``binding``.

    Args:
        resolve: finds a relation of the catalog; raises RequestError unknown-relation.
    """

    def __init__(self, resolve: Callable[[Name], Relation]) -> None:
        self.resolve = resolve
        self.binding = Binding()
        self.faults = self.binding.faults

    @abstractmethod
    def query(self, node: exp.Expression, ctes: Ctes, depth: int, *, named: bool = True) -> BoundQuery:
        """A query inside, such as a sub-select.

        Args:
            node: from the parser.
            ctes: the WITH queries that it sees.
            depth: how deep it stands; 0 = the outermost.
            named: no two of its columns may have one name.
        """

    def input(self, node: exp.Expression, ctes: Ctes, depth: int) -> Input:
        """One relation, sub-select or row pattern in FROM, with its window.

        Args:
            node: from the parser.
            ctes: the WITH queries that it sees.
            depth: of the query around it; 0 = the outermost.
        """
        given = self._source(node, ctes, depth)
        if "merged" in node.meta:
            own, shown = node.meta["merged"]
            given = replace(given, names=(own,), shown=shown, merged=True)
        window = node.meta.get("window")
        if window is None:
            return given
        known = given.columns
        taken = [c.name for c in known or () if c.name in WINDOW_COLUMNS]
        if taken:
            self.faults.add(
                "ambiguous-column",
                sentence(f"{given.shown} has a column {taken[0]} already, which the window adds"),
                position=node.meta["window_position"],
                hint="Name it otherwise in a sub-select: TUMBLE((SELECT …), SIZE …).",
            )
        added = tuple(Output(n, parse_type("TIMESTAMP")) for n in WINDOW_COLUMNS if n not in taken)
        return replace(given, columns=None if known is None else (*known, *added), window=window)

    def _source(self, node: exp.Expression, ctes: Ctes, depth: int) -> Input:
        alias = node.meta.get("alias")
        if alias is not None and alias[0].startswith(HIDDEN_PREFIX):
            detail = f"Names that start with {HIDDEN_PREFIX} belong to leatstream."
            self.faults.add("validation", detail, position=alias[1])
        ctes = node.meta.get("scope", ctes)
        if isinstance(node, exp.MatchRecognize):
            return self._matched(node, ctes, depth)
        if node.meta.get("wrong"):
            return Input(self.binding.next_ref(), (alias[0],) if alias else (), "the sub-select", None)
        if isinstance(node, exp.Subquery):
            return self._derived(node, node.this, alias[0] if alias else None, ctes, depth)
        name: Name = node.meta["name"]
        shown = alias[0] if alias else name.parts[-1]
        if len(name.parts) == 1 and name.parts[0] in ctes:
            query, outer = ctes[name.parts[0]]
            # Bound once for each use, so each use needs a tree of its own.
            return self._derived(node, query.copy(), shown, outer, depth)
        return self._relation(node, name, alias[0] if alias else None)

    def _matched(self, node: exp.Expression, ctes: Ctes, depth: int) -> Input:
        alias = node.meta.get("alias")
        given = self._source(node.this, ctes, depth)
        if given.table:
            refuse_table_first(given, [], self.binding)
        return PatternBinder(node, given, self.binding).bind(alias[0] if alias else None)

    def _derived(
        self, node: exp.Expression, query: exp.Expression, alias: str | None, ctes: Ctes, depth: int
    ) -> Input:
        if "properties" in node.meta:
            self.faults.add(
                "unsupported",
                "Source properties after a sub-select are not supported.",
                position=node.meta["properties_position"],
                hint="Write WITH (…) after the relation inside.",
            )
        bound = self.query(query, ctes, depth + 1)
        names = (alias,) if alias else ()
        shown = quote(alias) if alias else "the sub-select"
        return Input(self.binding.next_ref(), names, shown, bound.outputs, query=bound)

    def _relation(self, node: exp.Expression, name: Name, alias: str | None) -> Input:
        ref, shown = self.binding.next_ref(), quote(alias or name.parts[-1])
        try:
            relation = self.resolve(name)
        except RequestError as error:
            self.faults.items += error.at(name.position).faults
            return Input(ref, (alias,) if alias else name.parts, shown, None)
        except LeatstreamError as error:
            raise error.at(name.position) from None
        if relation.kind is RelationKind.MATERIALIZED_VIEW:
            detail = f"{relation.fqn} is a materialized view; a query reads streams, changelogs and tables."
            self.faults.add("unsupported", detail, position=name.position)
        given: Properties = node.meta.get("properties", {})
        scans = self.binding.scans
        if len(scans) >= MAX_SCANS:
            detail = f"A query reads at most {MAX_SCANS} relations."
            raise RequestError("too-complex", detail, position=name.position)
        properties = check_source_properties(given, relation, self.faults)
        view = f"leat_src_{len(scans)}"
        scan = Scan(view, alias or name.parts[-1], relation, name.position, properties)
        scans.append(scan)
        fqn = relation.fqn
        names = (alias,) if alias else (fqn.database, fqn.schema, fqn.name)
        columns = tuple(Output(column.name, column.type) for column in relation.columns)
        return Input(ref, names, shown, columns, scan=scan)

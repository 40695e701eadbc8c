"""MATCH_RECOGNIZE bound: rows of one input, put together by a pattern, as an input of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.model.names import quote
from leatstream.model.objects import HIDDEN_PREFIX, ROWKEY, ROWMETA, ROWTIME
from leatstream.model.types import DataType
from leatstream.plan.job_spec import PatternSpec
from leatstream.plan.logical import Quotient, RowPattern, TypedPattern, ViewSchema
from leatstream.plan.pattern import (
    Choice,
    Repeat,
    Term,
    as_json,
    fewest,
    firsts,
    longest,
    shortest,
    variables,
)
from leatstream.plan.pattern import Sequence as Row_sequence
from leatstream.sql.match_recognize import PatternClause
from leatstream.sql.passes.columns import Columns, suggestion
from leatstream.sql.passes.expressions import check
from leatstream.sql.passes.items import check_twice
from leatstream.sql.passes.pattern_parts import (
    Cell,
    Cells,
    Final,
    Operation,
    Part,
    PatternColumns,
    PatternFunctions,
    condition,
    leaves,
    measure_of,
)
from leatstream.sql.passes.pattern_types import Typed, match_ddl
from leatstream.sql.passes.quoting import name as quoted
from leatstream.sql.passes.render import Renderer
from leatstream.sql.passes.scope import (
    Binding,
    BoundQuery,
    BoundSelect,
    Input,
    Item,
    asked_headers,
    place,
    selects,
)
from leatstream.sql.source_map import SpanMap

VIEW = "leat_match_0"
_OWN = "Write it into a stream of its own"
_HIDDEN = f"`{ROWKEY}` BINARY, `{ROWTIME}` TIMESTAMP"


class PatternBinder:
    """Binds one MATCH_RECOGNIZE.

    Args:
        node: from the parser.
        given: the relation or sub-select whose rows are matched.
        binding: of the statement; what is wrong is noted there.
    """

    def __init__(self, node: exp.Expression, given: Input, binding: Binding) -> None:
        self._node, self._given, self._binding = node, given, binding
        self._faults = binding.faults
        self._clause: PatternClause = node.meta["pattern"]
        self._cells = Cells()
        named = dict.fromkeys(variables(self._clause.term))
        self._variables = {name: (name,) for name in named} | self._clause.subsets

    def bind(self, alias: str | None) -> Input:
        """The matches: the columns of PARTITION BY, the measures, with ALL ROWS the input's other columns."""
        clause, faults = self._clause, self._faults
        before = len(faults.items)
        for what, position, hint in clause.refused:
            faults.add("unsupported", f"{what} is not supported.", position=position, hint=hint)
        self._check_input()
        self._check_order()
        self._check_pattern()
        self._check_skip()
        inner = Input(self._binding.next_ref(), (), "MATCH_RECOGNIZE", (), view=VIEW)
        items = self._partitions(inner)
        define = self._define()
        measures, parts = self._measures(inner)
        items += measures
        if clause.all_rows:
            items += self._others(items, parts, inner)
        check_twice(items, faults)
        if len(faults.items) == before:
            self._binding.patterns.append(self._pattern(items, define, parts))
            given = self._given
            own = {given.scan.view} if given.headers and given.scan is not None else set[str]()
            self._binding.headers |= own | set(asked_headers(given.query))
        bound = BoundSelect([inner], [], items, None, clause.position)
        shown = quote(alias) if alias else "MATCH_RECOGNIZE"
        names = (alias,) if alias else ()
        return Input(self._binding.next_ref(), names, shown, bound.outputs, query=bound)

    def _check_input(self) -> None:
        given, at = self._given, self._clause.position
        if self._node.this.meta.get("window") is not None:
            self._refuse("MATCH_RECOGNIZE over a window", at, "Write WITHIN behind the pattern.")
        if given.keyed:
            self._refuse(f"MATCH_RECOGNIZE over a changelog ({given.shown})", at, "Its rows change.")
        if self._binding.patterns:
            self._refuse("A second MATCH_RECOGNIZE", at, f"{_OWN}.")
        for select in selects(given.query):
            if select.group is not None or select.joins or any(i.view or i.keyed for i in select.inputs):
                what = "MATCH_RECOGNIZE over a join, a changelog, groups or other matches"
                self._refuse(what, at, f"{_OWN}: {given.shown}.")
                break

    def _check_order(self) -> None:
        keys = self._node.args["order"]
        at = self._clause.places.get("order", self._clause.position)
        hint = "Write ORDER BY rowtime."
        if not keys:
            self._faults.add("sql-syntax", "MATCH_RECOGNIZE needs ORDER BY.", position=at, hint=hint)
            return
        if not self._is_time(keys[0].this):
            detail = "Rows are matched in the order of event time: ORDER BY begins with rowtime."
            self._faults.add("unsupported", detail, position=place(keys[0]), hint=hint)
        elif keys[0].args.get("desc"):
            self._refuse("ORDER BY … DESC in MATCH_RECOGNIZE", place(keys[0]) or at, hint)
        if len(keys) > 1:
            self._refuse("A second column in this ORDER BY", place(keys[1]) or at, hint)

    def _is_time(self, value: exp.Expression) -> bool:
        if isinstance(value, exp.Anonymous):
            return str(value.this) == "rowtime" and not value.expressions
        if not isinstance(value, exp.Column):
            return False
        name, scan = value.meta["parts"][-1][0], self._given.scan
        if name == "rowtime" and len(value.meta["parts"]) == 1:
            return True
        own = None if scan is None else scan.properties.get("timestamp") or scan.relation.timestamp
        return own is not None and name == own

    def _check_pattern(self) -> None:
        clause, faults = self._clause, self._faults
        at = clause.places["pattern"]
        known = set(variables(clause.term))
        for subset, members in clause.subsets.items():
            where = clause.places[f"subset {subset}"]
            if subset in known:
                detail = f"SUBSET {subset} has the name of a pattern variable."
                faults.add("ambiguous-column", detail, position=where)
            for member in members:
                if member not in known:
                    hint = suggestion(member, known)
                    detail = f"The pattern has no variable {member}."
                    faults.add("unknown-column", detail, position=where, hint=hint)
        if clause.refused:
            return
        if shortest(clause.term) == 0:
            self._refuse("A pattern that no row can match", at, "Ask for one row at least, such as A+.")
        elif _idles(clause.term):
            self._refuse("The repetition without an end of a part that may be empty", at, "Write (A+ B?)*.")
        elif longest(clause.term) is None and clause.within_ms is None:
            hint = "Write WITHIN 10 MINUTES behind the pattern, or {1,20} for +."
            self._refuse("A pattern without an end and without WITHIN", at, hint)

    def _check_skip(self) -> None:
        """The next match begins after the start of this one, at a row that every match has."""
        clause = self._clause
        if clause.to_row is None:
            return
        at, name, known = clause.places["skip"], clause.to_name, set(variables(clause.term))
        members = clause.subsets.get(name, (name,))
        if not known & set(members):
            hint = suggestion(name, known | set(clause.subsets))
            self._faults.add("unknown-column", f"The pattern has no variable {name}.", position=at, hint=hint)
            return
        least, begins = fewest(clause.term, members), firsts(clause.term) & set(members)
        hint = "Write AFTER MATCH SKIP PAST LAST ROW or AFTER MATCH SKIP TO NEXT ROW."
        if not least:
            self._refuse(f"SKIP TO {name}, which a match may be without,", at, hint)
        elif begins and (clause.to_row == "first" or least < 2):
            self._refuse(f"SKIP TO {name}, which may be the row that the match begins with,", at, hint)

    def _partitions(self, inner: Input) -> list[Item]:
        columns = Columns([self._given], self._faults)
        items = []
        for value in self._node.args["partition_by"]:
            if not isinstance(value, exp.Column):
                hint = "Name it in a sub-select: FROM (SELECT …) MATCH_RECOGNIZE …"
                self._refuse("PARTITION BY of an expression", place(value) or self._clause.position, hint)
                continue
            columns.resolve(value)
            if "bound" in value.meta:
                name = str(value.meta["parts"][-1][0])
                number = self._cells.number(value)
                items.append(self._item(name, f"p{number}", value, inner, value.meta.get("type")))
        return items

    def _define(self) -> dict[str, Part]:
        found: dict[str, Part] = {}
        known = list(dict.fromkeys(variables(self._clause.term)))
        for node in self._node.args["define"]:
            name, at = node.alias, place(node, "alias_span")
            if name not in known:
                hint = suggestion(name, known)
                detail = f"The pattern has no variable {name}."
                self._faults.add("unknown-column", detail, position=at, hint=hint)
            if name in found:
                self._faults.add("ambiguous-column", f"DEFINE has {name} twice.", position=at)
            if self._checked(node.this, defines=True):
                part = condition(node.this, self._cells, name, self._faults)
                if part is not None:
                    found[name] = part
        return found

    def _measures(self, inner: Input) -> tuple[list[Item], list[Part]]:
        items: list[Item] = []
        parts: list[Part] = []
        if not self._node.args["measures"]:
            at, hint = self._clause.position, "Write MEASURES A.x AS x."
            self._faults.add("sql-syntax", "MATCH_RECOGNIZE needs MEASURES.", position=at, hint=hint)
        for node in self._node.args["measures"]:
            name = node.alias
            if name.lower().startswith(HIDDEN_PREFIX):
                detail = f"Names that start with {HIDDEN_PREFIX} belong to leatstream."
                self._faults.add("validation", detail, position=place(node, "alias_span"))
            known: DataType | None = None
            if self._checked(node.this, defines=False):
                whole = isinstance(node.this, exp.Column)
                known = node.this.meta.get("type") if whole else None
                for leaf in list(leaves(node.this)):
                    part = measure_of(leaf, self._cells)
                    if part not in parts:
                        parts.append(part)
                    leaf.replace(_column(leaf, inner, f"m{parts.index(part)}"))
            items.append(Item(name, node.this, known, place(node) or self._clause.position))
        return items, parts

    def _others(self, items: Sequence[Item], parts: list[Part], inner: Input) -> list[Item]:
        """The columns of the row itself that are not there already."""
        named = {item.name for item in items[: len(self._node.args["partition_by"])]}
        found = []
        for column in self._given.columns or ():
            if column.name in named:
                continue
            at = self._clause.position
            value = exp.Column(this=exp.Identifier(this=column.name, quoted=True))
            value.meta.update({"parts": [(column.name, None)], "bound": (self._given.ref, column.name, [])})
            parts.append(Cell(self._cells.number(value), None, None, at))
            found.append(Item(column.name, _column(value, inner, f"m{len(parts) - 1}"), column.type, at))
        return found

    def _checked(self, value: exp.Expression, *, defines: bool) -> bool:
        before = len(self._faults.items)
        columns = PatternColumns(self._given, self._variables, self._faults)
        functions = PatternFunctions(self._given, self._variables, self._faults, defines=defines)
        check(value, columns, functions)
        return len(self._faults.items) == before and self._given.columns is not None

    def _item(
        self, name: str, column: str, node: exp.Expression, inner: Input, kind: DataType | None
    ) -> Item:
        return Item(name, _column(node, inner, column), kind, place(node) or self._clause.position)

    def _refuse(self, what: str, at: Position, hint: str | None) -> None:
        self._faults.add("unsupported", f"{what} is not supported.", position=at, hint=hint)

    def _pattern(
        self, items: Sequence[Item], define: Mapping[str, Part], parts: Sequence[Part]
    ) -> RowPattern:
        clause, count = self._clause, len(self._node.args["partition_by"])
        text, source_map, quotients = self._rows()
        cells = len(self._cells.values)

        def typed(types: Sequence[str]) -> TypedPattern:
            faults = Faults()
            writer = Typed(types, faults)
            conditions = {name: writer.condition(part, name) for name, part in define.items()}
            written = [writer.write(part) for part in parts]
            partitions = [writer.partition(i, items[i].position) for i in range(count)]
            faults.raise_if_any()
            results = {f"p{i}": kind or DataType("VARCHAR") for i, (_, kind) in enumerate(partitions)}
            results |= {f"m{i}": kind or DataType("VARCHAR") for i, (_, kind) in enumerate(written)}
            spec = PatternSpec(
                view=VIEW,
                input=text,
                types=list(types),
                partitions=count,
                term=as_json(clause.term),
                define=conditions,
                measures=[node for node, _ in [*partitions, *written]],
                results={name: str(kind) for name, kind in results.items()},
                within_ms=clause.within_ms,
                to_next=clause.to_next,
                to_row=clause.to_row,
                to_variables=list(clause.subsets.get(clause.to_name, (clause.to_name,)))
                if clause.to_row
                else [],
                all_rows=clause.all_rows,
                memory=max(map(_back, [*define.values(), *parts]), default=0),
            )
            return TypedPattern(spec, ViewSchema(VIEW, match_ddl(results, _HIDDEN)))

        return RowPattern(text, source_map, cells, clause.position, typed, quotients)

    def _rows(self) -> tuple[str, SpanMap, tuple[Quotient, ...]]:
        """Spark SQL that gives the cells of each row, its time, key and place."""
        renderer = Renderer()
        renderer.put("SELECT ")
        for number, value in enumerate(self._cells.values):
            with renderer.mark(place(value)):
                renderer.expr(value)
                renderer.put(f" AS `c{number}`, ")
        ref = quoted(self._given.ref)
        renderer.put(f"{ref}.`{ROWTIME}`, {ref}.`{ROWKEY}`, ")
        own = f"{ref}.`{ROWMETA}`" if self._given.scan is not None else f"CAST(NULL AS STRING) AS `{ROWMETA}`"
        renderer.put(f"{own} FROM ")
        renderer.relation(self._given)
        found = SpanMap(tuple(renderer.marks), tuple(renderer.filters))
        return renderer.text, found, tuple(renderer.quotients)


def check_matches(bound: BoundQuery, binding: Binding) -> None:
    """Matches are all that a query reads: nothing is joined with them, grouped of them or added to them."""
    if not binding.patterns:
        return
    at, query = binding.patterns[0].position, bound
    while isinstance(query, BoundSelect) and query.inputs[0].view is None:
        others = [given for given in query.inputs[1:] if given.unnested is None]
        first = query.inputs[0]
        if others or query.group is not None or binding.distinct or first.window or first.query is None:
            break
        query = first.query
    else:
        if isinstance(query, BoundSelect):
            return
    detail = "A join, GROUP BY, DISTINCT, a window or UNION ALL over MATCH_RECOGNIZE is not supported."
    binding.faults.add("unsupported", detail, position=at, hint=f"{_OWN}: the matches.")


def state_of(pattern: RowPattern) -> dict[str, str]:
    """What the state is made of beside the operator: see ``passes.state_parts``."""
    return {"from": hashlib.sha256(pattern.input.encode("utf-8", "replace")).hexdigest()[:16]}


def _column(node: exp.Expression, inner: Input, name: str) -> exp.Expression:
    made = exp.Column(this=exp.Identifier(this=name, quoted=True))
    made.meta.update({key: node.meta[key] for key in ("span", "source") if key in node.meta})
    made.meta["parts"] = node.meta.get("parts", [])
    made.meta["bound"] = (inner.ref, name, [])
    return made


def _idles(term: Term) -> bool:
    if isinstance(term, Repeat):
        return (term.most is None and shortest(term.part) == 0) or _idles(term.part)
    return isinstance(term, Choice | Row_sequence) and any(map(_idles, term.parts))


def _back(part: Part) -> int:
    """How many rows before a match a part may ask for."""
    if isinstance(part, Operation):
        return max(map(_back, part.parts), default=0)
    if isinstance(part, Final):
        return _back(part.part)
    return part.navigation.shift if isinstance(part, Cell) and part.navigation is not None else 0

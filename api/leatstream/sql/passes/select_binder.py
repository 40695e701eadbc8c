"""Queries with their names resolved, and everything that is wrong with them noted at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from sqlglot import exp

from leatstream.errors import Fault, InternalError, Position, RequestError
from leatstream.model.names import quote
from leatstream.model.objects import Relation, RelationKind
from leatstream.plan.logical import LOOKUP_JOINS, JoinType
from leatstream.sql.passes.changelogs import check_changelog_join, check_keys, check_place, kept_keys
from leatstream.sql.passes.columns import Columns
from leatstream.sql.passes.distinct import check_distinct
from leatstream.sql.passes.expressions import check
from leatstream.sql.passes.functions import Functions
from leatstream.sql.passes.grouping import IN_WHERE, check_grouping
from leatstream.sql.passes.inputs import InputBinder
from leatstream.sql.passes.items import select_items
from leatstream.sql.passes.joins import check_equality, check_join
from leatstream.sql.passes.lookups import (
    check_lookup_join,
    check_lookup_keys,
    check_lookup_place,
    check_one_row,
    refuse_table_first,
)
from leatstream.sql.passes.merging import Ctes, Merger
from leatstream.sql.passes.scope import (
    Binding,
    BoundGroup,
    BoundJoin,
    BoundQuery,
    BoundSelect,
    BoundUnion,
    Input,
    Item,
    place,
    selects,
)
from leatstream.sql.passes.unnest import bind_unnest
from leatstream.sql.statements import Name

MAX_DEPTH = 32
CheckJoin = Callable[[exp.Expression, list[Input], Input, list[BoundJoin], Binding], BoundJoin | None]
CheckOn = Callable[[BoundJoin, list[Input], Binding], None]


class SelectBinder(InputBinder):
    """Walks queries from the outside in; what it gathers is in ``binding``.

    Args:
        resolve: finds a relation of the catalog; raises RequestError unknown-relation.
        changelog: whether the result is a changelog.
    """

    def __init__(self, resolve: Callable[[Name], Relation], *, changelog: bool) -> None:
        super().__init__(resolve)
        self.changelog = changelog
        self.primary_key: tuple[str, ...] = ()

    def query(self, node: exp.Expression, ctes: Ctes, depth: int, *, named: bool = True) -> BoundQuery:
        """A SELECT or UNION; ``named``: no two of its columns may have one name.

        Args:
            node: from the parser.
            ctes: the WITH queries that it sees.
            depth: how deep it stands; 0 = the outermost.
            named: no two of its columns may have one name.
        """
        if depth > MAX_DEPTH:
            raise RequestError("too-complex", f"Queries nest at most {MAX_DEPTH} deep.", position=place(node))
        for what, position, hint in node.meta.get("refused", ()):
            self.faults.add(
                "unsupported", f"{what} is not supported on streams.", position=position, hint=hint
            )
        for name, query in node.meta.get("ctes", ()):
            ctes = {**ctes, name: (query, ctes)}
        if isinstance(node, exp.Union):
            self._check_union(node, depth)
            return self._union(node, ctes, depth, named)
        return self._select(node, ctes, depth, named)

    def check_outputs(self, query: BoundQuery) -> None:
        """A bare NULL has no type, so it can be no column of a relation."""
        if isinstance(query, BoundUnion):
            return
        for item in query.items:
            value = item.value
            while isinstance(value, exp.Paren):
                value = value.this
            if isinstance(value, exp.Null):
                detail = f"The column {quote(item.name)} is NULL and has no type."
                hint = "Write CAST(NULL AS VARCHAR)."
                self.faults.add("type-mismatch", detail, position=item.position, hint=hint)

    def check_changelog(self, query: BoundQuery, at: Position | None) -> None:
        """A changelog has a primary key, and GROUP BY or another changelog is what gives one."""
        grouped = isinstance(query, BoundSelect) and query.group is not None
        if not self.changelog or grouped or self.binding.distinct:
            return
        if isinstance(query, BoundSelect) and _tells_enough(query.inputs[0]):
            return
        if isinstance(query, BoundUnion) or not query.inputs[0].keyed:
            hint = "Write GROUP BY, or CREATE STREAM to keep every row."
            detail = "A changelog without GROUP BY is not supported: its primary key is unknown."
            self.faults.add("unsupported", detail, position=at, hint=hint)
        else:
            self.primary_key = kept_keys(query, at, self.faults)

    def _union(self, node: exp.Expression, ctes: Ctes, depth: int, named: bool) -> BoundQuery:
        whole, nodes = place(node), list[exp.Expression]()
        distinct = node.meta.get("distinct") is not None
        while isinstance(node, exp.Union):
            nodes.append(node.expression)
            node = node.this
            # A UNION in parentheses is one of its own unless duplicates are removed from all of it.
            inner = node.meta.get("distinct") is not None and not distinct
            if node.meta.get("ctes") or node.meta.get("refused") or inner:
                break
        nodes.append(node)
        # The first branch names the columns; the others go by position.
        branches = [
            self.query(branch, ctes, depth + 1, named=named and index == 0)
            for index, branch in enumerate(reversed(nodes))
        ]
        wanted = len(branches[0].outputs)
        for branch, source in zip(branches, reversed(nodes), strict=True):
            if len(branch.outputs) != wanted:
                self.faults.add(
                    "type-mismatch",
                    f"Each SELECT of a UNION ALL has the same number of columns: the first has {wanted},"
                    f" this one {len(branch.outputs)}.",
                    position=place(source),
                )
        return BoundUnion(branches, whole)

    def _check_union(self, node: exp.Expression, depth: int) -> None:
        at = node.meta.get("distinct")
        if at is None:
            return
        self.binding.distinct = True
        if depth or self.changelog:
            hint = "Write UNION ALL, or the UNION into a stream of its own."
            detail = "UNION without ALL in a sub-select or a changelog is not supported."
            self.faults.add("unsupported", detail, position=at, hint=hint)

    def _select(self, node: exp.Expression, ctes: Ctes, depth: int, named: bool) -> BoundSelect:
        reading = _Reading(self.resolve, self.binding.merges, changelog=self.changelog)
        Merger(reading, self.faults, self.binding.merges, changelog=self.changelog).merge(node, ctes)
        inputs = [self.input(node.args["from_"].this, ctes, depth)]
        joins: list[BoundJoin] = []
        if inputs[0].table:
            refuse_table_first(inputs[0], node.args.get("joins") or [], self.binding)
        for join_node in node.args.get("joins") or ():
            right = self.input(join_node.this, ctes, depth)
            self._check_alias(right, inputs, join_node.this)
            for given, relation in ((inputs[0], node.args["from_"].this), (right, join_node.this)):
                if given.window is not None:
                    hint = "Write the join into a sub-select: TUMBLE((SELECT …), SIZE …)."
                    self._refuse_window("A join with a window", relation, hint)
            check_kind, check_on = self._checks(inputs[0], right)
            first = inputs[0].table
            join = None if first else check_kind(join_node, inputs, right, joins, self.binding)
            scope = [*inputs, right]
            on = join_node.args.get("on")
            if on is not None:
                check(on, Columns(scope, self.faults), Functions(scope, self.faults, IN_WHERE))
            if join is not None:
                check_on(join, inputs, self.binding)
                joins.append(join)
            inputs.append(right)
        for unnest in node.args.get("laterals") or ():
            given = bind_unnest(unnest, inputs, self.binding)
            self._check_alias(given, inputs, unnest)
            inputs.append(given)
        grouped = node.args.get("group") is not None
        why = None if grouped else "Write GROUP BY."
        columns = Columns(inputs, self.faults)
        functions = Functions(
            inputs, self.faults, why, sets=grouped and bool(node.args["group"].meta["sets"])
        )
        items = select_items(node.expressions, columns, functions, self.faults, named=named)
        where = node.args.get("where")
        if where is not None:
            check(where.this, columns, Functions(inputs, self.faults, IN_WHERE))
        if grouped and depth and self.changelog:
            hint = "Write it into a stream of its own."
            detail = "In a changelog GROUP BY in a sub-select or beside UNION ALL is not supported."
            self.faults.add("unsupported", detail, position=node.meta["group_position"], hint=hint)
        window = inputs[0].window
        if window is not None and window.kind == "session" and not grouped:
            hint = "Write GROUP BY window_start, window_end, …"
            self._refuse_window("SESSION without GROUP BY", node.args["from_"].this, hint)
        group = check_grouping(node, inputs, items, self.binding, update=self.changelog, nested=depth > 0)
        group = self._distinct(node, inputs, items, depth) or group
        condition = where.this if where is not None else None
        bound = BoundSelect(inputs, joins, items, condition, place(node), group)
        check_place(bound, depth, self.binding, changelog=self.changelog)
        check_lookup_place(bound, depth, self.binding)
        apart = all(join.kind in LOOKUP_JOINS for join in joins)
        bound.upserts = self.changelog and inputs[0].keyed and apart and group is None
        if bound.upserts:
            check_one_row(bound, self.binding)
            for join in joins:
                join.kept = join.type is JoinType.INNER
        return bound

    def _checks(self, left: Input, right: Input) -> tuple[CheckJoin, CheckOn]:
        """What checks a join of these, before its ON is resolved and after."""
        if right.table:
            return check_lookup_join, check_lookup_keys
        if right.keyed or left.keyed:
            return check_changelog_join, check_keys
        return check_join, check_equality

    def _distinct(
        self, node: exp.Expression, inputs: list[Input], items: list[Item], depth: int
    ) -> BoundGroup | None:
        at = node.meta["distinct"]
        if at is None:
            return None
        update, grouped = self.changelog, node.args.get("group") is not None
        group = check_distinct(
            at, inputs, items, self.binding, update=update, nested=depth > 0, grouped=grouped
        )
        self.binding.distinct |= group is None
        return group

    def _refuse_window(self, what: str, relation: exp.Expression, hint: str) -> None:
        at = relation.meta.get("window_position")
        self.faults.add("unsupported", f"{what} is not supported.", position=at, hint=hint)

    def _check_alias(self, right: Input, inputs: list[Input], node: exp.Expression) -> None:
        if right.names and any(given.names[-1:] == right.names[-1:] for given in inputs):
            self.faults.add(
                "ambiguous-column",
                f"FROM has {right.shown} twice.",
                position=place(node),
                hint=f"Give each its own alias: {right.shown} AS a … {right.shown} AS b.",
            )


class _Reading:
    """Reads parts of a statement on trial, each with a binder of its own."""

    def __init__(self, resolve: Callable[[Name], Relation], merges: count[int], *, changelog: bool) -> None:
        self.resolve = resolve
        self.merges = merges
        self.changelog = changelog

    def _binder(self) -> SelectBinder:
        binder = SelectBinder(self.resolve, changelog=self.changelog)
        binder.binding.merges = self.merges
        return binder

    def is_changelog(self, name: Name) -> bool:
        """Whether the catalog has a changelog of this name."""
        try:
            return self.resolve(name).kind is RelationKind.CHANGELOG
        except RequestError:
            return False  # binding reports it

    def read(self, relation: exp.Expression, ctes: Ctes) -> Input:
        """What a relation in FROM gives."""
        return self._binder().input(relation, ctes, 0)

    def select(self, query: exp.Expression, ctes: Ctes) -> tuple[BoundSelect, list[Fault]]:
        """A whole SELECT, and what is wrong with it."""
        binder = self._binder()
        bound = binder.query(query, ctes, 0)
        if not isinstance(bound, BoundSelect):
            raise InternalError("internal", "A SELECT was bound as a UNION.")
        return bound, binder.faults.items


def _tells_enough(given: Input) -> bool:
    """Whether a fault already says why nothing is known of a primary key."""
    nested = any(one.keyed for select in selects(given.query) for one in select.inputs)
    return nested or (given.columns is None and given.query is None)

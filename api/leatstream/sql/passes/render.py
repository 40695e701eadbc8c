"""Bound queries to Spark SQL, noting which stretch of it came from which stretch of the user's text."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from leatstream.model.objects import DELETED, ROWKEY, ROWTIME, UNTIL
from leatstream.plan.logical import INTERVAL_JOIN, LOOKUP_JOINS, TEMPORAL_JOIN, JoinType
from leatstream.sql.passes.joins import equalities, guarded_condition
from leatstream.sql.passes.quoting import name
from leatstream.sql.passes.render_expressions import WINDOW, ExpressionRenderer, cumulated
from leatstream.sql.passes.scope import (
    BoundGroup,
    BoundJoin,
    BoundQuery,
    BoundSelect,
    BoundUnion,
    Input,
    Unnested,
    place,
)
from leatstream.sql.source_map import Mark

_PASSES = "__leat_passes"


class Renderer(ExpressionRenderer):
    """Writes one statement; ``text``, ``marks`` and ``filters`` are the result."""

    def __init__(self) -> None:
        super().__init__()
        self.filters: list[Mark] = []

    def query(self, query: BoundQuery) -> None:
        """A select or union, with row key and row time as last columns."""
        if isinstance(query, BoundUnion):
            start = self._length
            for i, branch in enumerate(query.branches):
                if i:
                    self.put(" UNION ALL ")
                self.put("(" if isinstance(branch, BoundUnion) else "")
                self.query(branch)
                self.put(")" if isinstance(branch, BoundUnion) else "")
            if query.position is not None:
                self.marks.append((start, self._length - 1, query.position))
            return
        with self.mark(query.position):
            self._select(query)

    def _select(self, query: BoundSelect) -> None:
        self.windows |= {given.ref: given.window for given in query.inputs if given.window is not None}
        nested, passes = query.group is not None and query.group.nested, _passes_outside(query.group)
        hidden = [name(WINDOW)] * nested + [name(_PASSES)] * passes
        if hidden:
            self.put(f"SELECT * EXCEPT ({', '.join(hidden)})")
            # A window's time is known to Spark as such only outside of the GROUP BY that made it.
            self.put(f", window_time({name(WINDOW)}) AS {name(ROWTIME)}" if nested else "")
            self.put(" FROM (")
        self._plain_select(query)
        self.put(")" if hidden else "")
        self.put(f" WHERE {name(_PASSES)}" if passes else "")

    def _plain_select(self, query: BoundSelect) -> None:
        self.put("SELECT ")
        for item in query.items:
            with self.mark(item.position):
                self.expr(item.value)
                self.put(f" AS {name(item.name)}")
            self.put(", ")
        group = query.group
        self._deleted(query)
        if group is not None and group.having is not None and _passes_outside(group):
            self._filter(group.having)
            self.put(f" AS {name(_PASSES)}, ")
        nested = group is not None and group.nested
        time = f"{name(query.inputs[0].ref)}.{name(WINDOW)}" if nested else _hidden(query, ROWTIME)
        self.put(f"{_hidden(query, ROWKEY)} AS {name(ROWKEY)}, ")
        self.put(f"{time} AS {name(WINDOW if nested else ROWTIME)} FROM ")
        self._input(query.inputs[0])
        for join in query.joins:
            self._join(join)
        for given in query.inputs:
            if given.unnested is not None:
                self._unnest(given, given.unnested)
        self._where(query)
        if group is not None:
            self._group(query.inputs[0], group)

    def _deleted(self, query: BoundSelect) -> None:
        group, ref = query.group, query.inputs[0].ref
        if query.upserts:
            self.put(f"({name(ref)}.{name(DELETED)}")
            if query.where is not None:
                # It may have passed before.
                self.put(" OR NOT coalesce(")
                self._filter(query.where)
                self.put(", FALSE)")
            for join in query.joins:
                # An equality never holds for NULL, so the column shows whether a row was found.
                self.put(f" OR {name(join.right.ref)}.{name(join.keys[0])} IS NULL" if join.kept else "")
            self.put(f") AS {name(DELETED)}, ")
        elif group is not None and group.update and group.having is not None:
            # A group that was written and passes no more must be taken back.
            self.template("(NOT coalesce({}, FALSE))", group.having)
            self.put(f" AS {name(DELETED)}, ")

    def _where(self, query: BoundSelect) -> None:
        given = query.inputs[0]
        apart = all(join.kind in LOOKUP_JOINS for join in query.joins)
        alone = given.keyed and apart and query.group is None
        if query.upserts or (query.where is None and not alone):
            return
        self.put(" WHERE ")
        if alone:
            # A stream takes a changelog's rows; a deletion is no row.
            self.put(f"NOT {name(given.ref)}.{name(DELETED)}" + (" AND (" if query.where is not None else ""))
        if query.where is not None:
            self._filter(query.where)
            self.put(")" if alone else "")

    def _filter(self, condition: exp.Expression) -> None:
        start = self._length
        self.expr(condition)
        position = place(condition)
        if position is not None:
            self.filters.append((start, self._length - 1, position))

    def _group(self, given: Input, group: BoundGroup) -> None:
        # The window's own column, not its two ends: only that has the watermark, which lets old groups go.
        keys = [f"{name(given.ref)}.{name(WINDOW)}"] if given.window is not None else []
        if given.window is not None and given.window.kind == "session" and not group.keys:
            # Spark keeps sessions by key only: one key for all, which it must not see to be constant.
            keys.append(f"(unix_millis({name(given.ref)}.{name(ROWTIME)}) & 0)")
        self.put(" GROUP BY " + ", ".join(keys))
        for i, key in enumerate(group.keys):
            self.put(", " if i or keys else "")
            self.expr(key)
        for i, (kind, sets) in enumerate(group.sets):
            self.put(", " if i or keys or group.keys else "")
            self._sets(kind, sets)
        if group.having is not None and not group.update and not group.sets:
            self.put(" HAVING ")
            self._filter(group.having)

    def join(self, join: BoundJoin) -> None:
        """One join after the existing ones."""
        self._join(join)

    def relation(self, given: Input) -> None:
        """One input of FROM with its alias."""
        self._input(given)

    def _unnest(self, given: Input, rows: Unnested) -> None:
        self.put(" LATERAL VIEW OUTER " if rows.outer else " LATERAL VIEW ")
        self.call(rows.function, [rows.value])
        self.put(f" {name(given.ref)} AS " + ", ".join(name(c.name) for c in given.columns or ()))

    def _sets(self, kind: str, sets: Sequence[Sequence[exp.Expression]]) -> None:
        self.put(f"{kind} (")
        for i, members in enumerate(sets):
            self.put(", " if i else "")
            self.call("", members)
        self.put(")")

    def _input(self, given: Input) -> None:
        window = given.window
        if window is None:
            self._from(given)
            self.put(f" AS {name(given.ref)}")
            return
        cumulates = window.kind == "cumulate"
        self.put("(SELECT * FROM " if cumulates else "")
        self.put("(SELECT *, " + ("session_window" if window.kind == "session" else "window"))
        self.put(f"({name(ROWTIME)}, '{window.size_ms} milliseconds'")
        self.put(f", '{window.advance_ms} milliseconds'" if window.advance_ms < window.size_ms else "")
        self.put(f") AS {name(WINDOW)} FROM ")
        self._from(given)
        if cumulates:
            # Of the hops that hold a row, those that end in the row's own SIZE: their ends, which decide when
            # Spark closes them, are right; only their starts are not.
            start = cumulated(f"{name(WINDOW)}.`end`", window)
            self.put(f") WHERE {name(ROWTIME)} >= {start}")
        self.put(f") AS {name(given.ref)}")

    def _from(self, given: Input) -> None:
        if given.scan is not None:
            with self.mark(given.scan.position):
                self.put(f"{name(given.scan.view)}")
        elif given.view is not None:
            self.put(name(given.view))
        elif given.query is not None:
            self.put("(")
            self.query(given.query)
            self.put(")")

    def _join(self, join: BoundJoin) -> None:
        words = {JoinType.INNER: "INNER", JoinType.LEFT: "LEFT OUTER", JoinType.FULL: "FULL OUTER"}
        self.put(f" {words[JoinType.LEFT if join.kept else join.type]} JOIN ")
        self._input(join.right)
        self.put(" ON (")
        self.expr(guarded_condition(join) if join.kind == INTERVAL_JOIN else join.on)
        left, right = f"{name(join.left_ref)}.{name(ROWTIME)}", f"{name(join.right.ref)}.{name(ROWTIME)}"
        self.put(")")
        if join.kind == TEMPORAL_JOIN:
            # The version that held at the row's time, if the row was not deleted then.
            until, deleted = (f"{name(join.right.ref)}.{name(column)}" for column in (UNTIL, DELETED))
            self.put(f" AND {right} <= {left} AND ({until} IS NULL OR {left} < {until}) AND NOT {deleted}")
        elif join.kind == INTERVAL_JOIN:
            before, after = (f"INTERVAL {ms} MILLISECONDS" for ms in (join.before_ms, join.after_ms))
            # Two comparisons of plain columns: Spark reads the bound of its state from this form.
            self.put(f" AND {right} >= {left} - {before} AND {right} <= {left} + {after}")
            # Spark finds rows by these as keys of its state, where NULL is a value that equals itself.
            for side in (side for part in equalities(join) for side in (part.this, part.expression)):
                self.form(" AND {1} IS NOT NULL", [side])


def _passes_outside(group: BoundGroup | None) -> bool:
    """Whether HAVING is asked outside: Spark does not find GROUPING of a column beside plain keys in it."""
    return group is not None and bool(group.sets) and group.having is not None and not group.update


def _hidden(query: BoundSelect, column: str) -> str:
    if query.group is not None:
        # A group has no record of its own; its time is the end of its window.
        if column == ROWKEY:
            return "CAST(NULL AS BINARY)"
        given = query.inputs[0]
        timed = given.window is not None
        return f"{name(given.ref)}.{name(WINDOW)}.`end`" if timed else "CAST(NULL AS TIMESTAMP)"
    refs = [query.inputs[0].ref]
    refs += [join.right.ref for join in query.joins if join.type is JoinType.FULL]
    values = [f"{name(ref)}.{name(column)}" for ref in refs]
    return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"

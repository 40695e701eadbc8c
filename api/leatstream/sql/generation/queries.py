"""Queries to text: SELECT, UNION, WITH, FROM with windows, patterns, joins and UNNEST, GROUP BY."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from leatstream.plan.logical import Window
from leatstream.sql.generation.patterns import PatternGenerator
from leatstream.sql.generation.words import dotted, duration, name, properties
from leatstream.sql.statements import GroupingSets
from leatstream.sql.windows import Within

_STEPS = {"hop": "ADVANCE BY", "cumulate": "STEP"}


class QueryGenerator(PatternGenerator):
    """Writes them."""

    def query(self, node: exp.Expression) -> str:
        """``[WITH …] select [UNION ALL select …] [ORDER BY …] [LIMIT …] [OFFSET …]``"""
        text = self._body(node)
        for at, ends in enumerate(node.meta.get("levels") or [node.meta.get("ends") or {}]):
            text = (f"({text})" if at else text) + self._ends(ends)
        for at, group in enumerate(reversed(_groups(node.meta.get("ctes") or []))):
            ctes = ", ".join(f"{name(called)} AS ({self.query(query)})" for called, query in group)
            text = f"WITH {ctes} " + (f"({text})" if at else text)
        return text

    def _ends(self, ends: Mapping[str, Any]) -> str:
        text = ""
        if "order" in ends:
            keys = []
            for key in ends["order"]:
                nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[key.nulls_first]
                keys.append(f"{self.expression(key.value)}{' DESC' if key.descending else ''}{nulls}")
            text = f" ORDER BY {', '.join(keys)}"
        most = self.expression(ends["limit"]) if "limit" in ends else ""
        text += f" LIMIT {most}" if most and not ends.get("fetched") else ""
        text += f" OFFSET {self.expression(ends['offset'])}" if "offset" in ends else ""
        return text + (f" FETCH FIRST {most} ROWS ONLY" if ends.get("fetched") else "")

    def _body(self, node: exp.Expression) -> str:
        behind: list[str] = []
        alone = False
        while isinstance(node, exp.Union) and not alone:
            right, tight = node.expression, _is_tight(node)
            shown = self.query(right)
            if _whole(right) or (isinstance(right, exp.Union) and (tight or not _is_tight(right))):
                shown = f"({shown})"
            behind.append(f" {node.meta['operator']} {shown}")
            node = node.this
            alone = _whole(node) or (tight and isinstance(node, exp.Union) and not _is_tight(node))
        return "".join([f"({self.query(node)})" if alone else self._select(node), *reversed(behind)])

    def _select(self, node: exp.Expression) -> str:
        distinct = "DISTINCT " if node.meta.get("distinct") else ""
        items = ", ".join(map(self._aliased, node.expressions))
        parts = [f"SELECT {distinct}{items}", f"FROM {self._relation(node.args['from_'].this)}"]
        parts += map(self._join, node.args.get("joins") or [])
        parts += map(self._unnest, node.args.get("laterals") or [])
        where, group, having = (node.args.get(key) for key in ("where", "group", "having"))
        parts += [f"WHERE {self.expression(where.this)}"] if where is not None else []
        parts += [f"GROUP BY {self._group(group)}"] if group is not None else []
        parts += [f"HAVING {self.expression(having.this)}"] if having is not None else []
        return " ".join(parts)

    def _aliased(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Alias):
            return f"{self.expression(node.this)} AS {name(node.alias)}"
        return self.expression(node)

    def _relation(self, node: exp.Expression) -> str:
        if isinstance(node, exp.MatchRecognize):
            return f"{self._relation(node.this)} {self.matched(node)}{_alias(node)}"
        text = f"({self.query(node.this)})" if isinstance(node, exp.Subquery) else dotted(node.meta["name"])
        window = node.meta.get("window")
        text = _windowed(text, window) if window is not None else text
        given = node.meta.get("properties")
        return text + _alias(node) + (f" WITH {properties(given)}" if given else "")

    def _join(self, node: exp.Expression) -> str:
        if node.meta["words"] == ("comma",):
            return f", {self._relation(node.this)}"
        words = " ".join([*node.meta["words"], "join"]).upper()
        condition = node.args.get("on")
        on = f" ON {self.expression(condition)}" if condition is not None else ""
        return f"{words} {self._relation(node.this)}{_within(node.meta['within'])}{on}"

    def _unnest(self, node: exp.Expression) -> str:
        outer, columns = node.meta["outer"], ", ".join(name(column) for column, _ in node.meta["columns"])
        text = f"{'LEFT' if outer else 'CROSS'} JOIN UNNEST({self.expression(node.expressions[0])})"
        return text + _alias(node) + (f" ({columns})" if columns else "") + (" ON TRUE" if outer else "")

    def _group(self, node: exp.Expression) -> str:
        keys, at, elements = [self.expression(key) for key in node.expressions], 0, []
        sets: list[GroupingSets] = node.meta["sets"]
        for each in sets:
            inside = [place for one in each.sets for place in one]
            if inside:
                elements += keys[at : inside[0]]
                at = inside[-1] + 1
            members = ", ".join(f"({', '.join(keys[place] for place in one)})" for one in each.sets)
            elements.append(f"{each.kind} ({members})")
        return ", ".join([*elements, *keys[at:]])


def _groups(ctes: list[tuple[str, exp.Expression]]) -> list[list[tuple[str, exp.Expression]]]:
    """Parted where a name comes again: it is that of a WITH further in."""
    groups: list[list[tuple[str, exp.Expression]]] = []
    for named, query in ctes:
        if not groups or named in [other for other, _ in groups[-1]]:
            groups.append([])
        groups[-1].append((named, query))
    return groups


def _is_tight(node: exp.Expression) -> bool:
    """Whether it is an INTERSECT, which binds more tightly than UNION and EXCEPT."""
    return node.meta.get("compared") == "INTERSECT"


def _whole(node: exp.Expression) -> bool:
    """Whether it says more than an operand of UNION can without parentheses."""
    said = node.meta.get("ctes") or node.meta.get("ends")
    return bool(
        said or (isinstance(node, exp.Union) and (node.meta.get("refused") or node.meta.get("distinct")))
    )


def _alias(node: exp.Expression) -> str:
    alias = node.meta.get("alias")
    return f" AS {name(alias[0])}" if alias is not None else ""


def _windowed(relation: str, window: Window) -> str:
    size = f"{'GAP' if window.kind == 'session' else 'SIZE'} {duration(window.size_ms)}"
    step = _STEPS.get(window.kind)
    more = f", {step} {duration(window.advance_ms)}" if step else ""
    return f"{window.kind.upper()}({relation}, {size}{more})"


def _within(within: Within | None) -> str:
    if within is None:
        return ""
    text = f" WITHIN {duration(within.before_ms)}"
    if within.before_ms != within.after_ms:
        text = f" WITHIN (BEFORE {duration(within.before_ms)}, AFTER {duration(within.after_ms)})"
    return text + (f" GRACE {duration(within.grace_ms)}" if within.grace_ms is not None else "")

"""MATCH_RECOGNIZE to text."""

from __future__ import annotations

from itertools import permutations

from sqlglot import exp

from leatstream.plan.pattern import Choice, Repeat, Sequence, Term, Variable
from leatstream.sql.generation.expressions import ExpressionGenerator
from leatstream.sql.generation.words import duration, name
from leatstream.sql.match_recognize import Anchor, PatternClause

_SIGNS = {(0, None): "*", (1, None): "+", (0, 1): "?"}


class PatternGenerator(ExpressionGenerator):
    """Writes it."""

    def matched(self, node: exp.Expression) -> str:
        """What stands behind the relation, without the alias."""
        clause: PatternClause = node.meta["pattern"]
        parts = []
        for words, key in (("PARTITION BY", "partition_by"), ("ORDER BY", "order"), ("MEASURES", "measures")):
            items = node.args.get(key) or []
            if items:
                parts.append(f"{words} {', '.join(map(self._item, items))}")
        parts += [*_rows(clause), f"PATTERN ({_whole(clause.term)})"]
        if clause.within_ms is not None:
            parts.append(f"WITHIN {duration(clause.within_ms)}")
        if clause.subsets:
            subsets = (f"{name(one)} = ({', '.join(map(name, of))})" for one, of in clause.subsets.items())
            parts.append(f"SUBSET {', '.join(subsets)}")
        defined = (f"{name(one.alias)} AS {self.expression(one.this)}" for one in node.args["define"])
        return f"MATCH_RECOGNIZE ({' '.join(parts)} DEFINE {', '.join(defined)})"

    def _item(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Ordered):
            return self.expression(node.this) + (" DESC" if node.args.get("desc") else "")
        if isinstance(node, exp.Alias):
            return f"{self.expression(node.this)} AS {name(node.alias)}"
        return self.expression(node)


def _rows(clause: PatternClause) -> list[str]:
    """How many rows a match gives, and where the next one begins."""
    parts = ["ALL ROWS PER MATCH"] if clause.all_rows else []
    if clause.unmatched_rows:
        parts.append("WITH UNMATCHED ROWS")
    if clause.to_next:
        parts.append("AFTER MATCH SKIP TO NEXT ROW")
    elif clause.to_row is not None:
        parts.append(f"AFTER MATCH SKIP TO {clause.to_row.upper()} {name(clause.to_name)}")
    return parts


def _whole(term: Term) -> str:
    """A pattern with nothing around it."""
    permuted = _permuted(term)
    if permuted is not None:
        return f"PERMUTE({', '.join(map(_listed, permuted))})"
    if isinstance(term, Choice):
        return " | ".join(map(_listed, term.parts))
    return _listed(term)


def _listed(term: Term) -> str:
    """A part between bars or commas."""
    if type(term) is Sequence and term.parts and not _excluded(term):
        return " ".join(map(_factor, term.parts))
    return _factor(term)


def _factor(term: Term) -> str:
    """A part that others may stand beside."""
    if _excluded(term):
        return f"{{- {_whole(_shown(term))} -}}"
    if isinstance(term, Variable):
        return name(term.name)
    if isinstance(term, Repeat):
        inner = _factor(term.part) if not isinstance(term.part, Repeat) else f"({_factor(term.part)})"
        return f"{inner}{_bounds(term)}{'' if term.greedy else '?'}"
    if isinstance(term, Sequence) and not term.parts:
        return term.sign if isinstance(term, Anchor) else "()"
    return _whole(term) if _permuted(term) is not None else f"({_whole(term)})"


def _bounds(term: Repeat) -> str:
    if (term.least, term.most) in _SIGNS:
        return _SIGNS[term.least, term.most]
    if term.least == term.most:
        return f"{{{term.least}}}"
    return f"{{{term.least},{'' if term.most is None else term.most}}}"


def _permuted(term: Term) -> tuple[Term, ...] | None:
    """The parts of which a choice has every order."""
    if not isinstance(term, Choice) or not isinstance(term.parts[0], Sequence):
        return None
    parts = term.parts[0].parts
    # There is no choice of one but PERMUTE's; that of no part has one order too.
    found = len(term.parts) <= 120 and term.parts == tuple(
        Sequence(order) for order in permutations(parts[:6])
    )
    return parts if found and parts else None


def _variables(term: Term) -> list[Variable]:
    if isinstance(term, Variable):
        return [term]
    parts = (term.part,) if isinstance(term, Repeat) else term.parts
    return [found for part in parts for found in _variables(part)]


def _excluded(term: Term) -> bool:
    """Whether none of its rows is shown."""
    found = _variables(term)
    return bool(found) and all(variable.hidden for variable in found)


def _shown(term: Term) -> Term:
    """The same with its rows shown: an exclusion contains them."""
    if isinstance(term, Variable):
        return Variable(term.name)
    if isinstance(term, Repeat):
        return Repeat(_shown(term.part), term.least, term.most, term.greedy)
    if isinstance(term, Anchor):
        return term
    return type(term)(tuple(map(_shown, term.parts)))

"""Random queries, spelt as the generator spells them: what it loses or adds shows as another text."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from leatstream.sql.generation.words import called, name, string
from leatstream.sql.special_forms import (
    AND,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    NOT,
    OR,
    PREDICATE,
    PRODUCT,
    SUM,
    UNARY,
)

# Words of the grammar, folded and not, and what no plain name can be.
ODD_NAMES = (
    *("select", "query", "with", "as", "left", "array", "map", "date", "key", "leading", "true", "end", "if"),
    *("A", "Größe", 'q"x', "x y", "1a", "é", "a.b", "`", "--", "''", "recursive", "topic", "primary", "x"),
)
NAMES = st.one_of(
    st.sampled_from(("a", "b", "c_1", "d$", "s", "t")),
    st.sampled_from(ODD_NAMES),
    st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
        lambda text: "${" not in text
    ),
)
TEXTS = st.one_of(
    st.sampled_from(("", "it's", "a;b", "--", "/*", '"', "\\", "\n", "${x}", "é東")),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
TYPES = st.recursive(
    st.sampled_from(
        ("BIGINT", "VARCHAR", "VARCHAR(10)", "DECIMAL(10, 2)", "TIMESTAMP_LTZ(3)", "BYTES", "DATE")
    ),
    lambda inner: st.one_of(
        inner.map("ARRAY<{}>".format),
        st.tuples(inner, inner).map(lambda pair: f"MAP<{pair[0]}, {pair[1]}>"),
        st.tuples(inner, inner).map(lambda pair: f'STRUCT<a {pair[0]}, "B c" {pair[1]}>'),
    ),
    max_leaves=3,
)
DURATIONS = st.sampled_from(("1 MILLISECOND", "90 SECONDS", "1 MINUTE", "7 HOURS", "2 DAYS", "1 WEEK"))
_OPERATORS: dict[int, tuple[str, ...]] = {
    OR: ("OR",),
    AND: ("AND",),
    PREDICATE: ("=", "<>", "<=>", "<", "<=", ">", ">=", "IS DISTINCT FROM"),
    BIT_OR: ("|",),
    BIT_XOR: ("^",),
    BIT_AND: ("&",),
    SUM: ("+", "-", "||"),
    PRODUCT: ("*", "/", "%", "DIV"),
}
_CALLS = (
    "trim({})",
    "trim(LEADING FROM {})",
    "trim(BOTH {} FROM {})",
    "substring({}, {}, {})",
    "position({}, {})",
    "extract(HOUR FROM {})",
    "overlay({}, {}, {})",
    "ceil({})",
    "floor({} TO DAY)",
    "timestampadd(MONTH, {}, {})",
    "timestampdiff(SECOND, {}, {})",
    "json_object({} VALUE {})",
    "count(*)",
    "current_date()",
    "array({}, {})",
    "TRY_CAST({} AS DOUBLE)",
    "CASE WHEN {} THEN {} END",
    "CASE {} WHEN {} THEN {} WHEN {} THEN {} ELSE {} END",
)
_RANGES = ("BETWEEN {} AND {}", "IN ({})", "LIKE {}", "LIKE {} ESCAPE '!'", "ILIKE {}", "RLIKE {}")
_LITERALS = (
    "1",
    "2.50",
    ".5",
    "1.",
    "1e9",
    "NULL",
    "TRUE",
    "X'0aff'",
    "INTERVAL '-1.5' HOUR",
    "'2026-01-01'::DATE",
)


class Writer:
    """Writes a random text, ever simpler the deeper it is inside."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one(self, *of: Any) -> Any:
        """One of these, written only when it is taken."""
        found = self.draw(st.sampled_from(of))
        return found() if callable(found) else found

    def chance(self, depth: int) -> bool:
        return depth > 0 and self.draw(st.integers(0, 3)) == 0

    def name(self) -> str:
        return name(self.draw(NAMES))

    def some(self, write: Any, most: int = 2) -> str:
        return ", ".join(write() for _ in range(self.draw(st.integers(1, most))))

    # Expressions

    def expression(self, depth: int, level: int = OR) -> str:
        """One whose operators bind at least as tightly as ``level``."""
        kinds = ["primary"]
        if depth > 0:
            kinds += (
                ["binary"] * 2 * (level <= PRODUCT) + ["range"] * (level <= PREDICATE) + ["step", "prefix"]
            )
        kind, inner = self.one(*kinds), depth - 1
        if kind == "binary":
            at = self.one(*(one for one in _OPERATORS if one >= level))
            # Comparisons are not chained; elsewhere the left side may be of the same kind.
            left = self.expression(inner, at + (at == PREDICATE))
            return f"{left} {self.one(*_OPERATORS[at])} {self.expression(inner, at + 1)}"
        if kind == "range":
            return self.range(inner)
        if kind == "prefix":
            if level <= NOT and self.one(True, False):
                return "NOT " + self.one(
                    lambda: f"{self.expression(inner, BIT_OR)} = 1", lambda: self.primary(inner)
                )
            return self.one("- ", "~ ") + self.expression(inner, UNARY)
        return self.stepped(inner) if kind == "step" else self.primary(depth)

    def range(self, depth: int) -> str:
        left, word = self.expression(depth, BIT_OR), self.one("", "NOT ")
        if self.one(True, False):
            return f"{left} IS {word}{self.one('NULL', 'TRUE', 'FALSE')}"
        if self.chance(depth):
            return f"{left} {word}IN ({self.query(depth)})"
        form = self.one(*_RANGES)
        parts = [self.expression(depth, BIT_OR) for _ in range(form.count("{}"))]
        return f"{left} {word}{form.format(*map(_inside, parts) if form.startswith('IN') else parts)}"

    def stepped(self, depth: int) -> str:
        text = self.one(self.column, lambda: f"({_inside(self.expression(depth))})", lambda: self.call(depth))
        for _ in range(self.draw(st.integers(1, 3))):
            step = self.one("->{}", "[{}]", "::{}")
            value = {"->{}": self.name, "[{}]": lambda: self.expression(depth)}.get(
                step, lambda: self.draw(TYPES)
            )
            text += step.format(value())
        return text

    def column(self) -> str:
        return ".".join(self.name() for _ in range(self.draw(st.integers(1, 3))))

    def call(self, depth: int) -> str:
        if self.one(True, False):
            function = called(self.draw(NAMES.filter(lambda text: text not in ("cast", "trim"))))
            distinct = self.one("", "DISTINCT ")
            return f"{function}({distinct}{self.some(lambda: self.expression(depth))})"
        form = self.one(*_CALLS)
        level = PREDICATE + 1 if form.startswith("position") else OR
        return form.format(*(self.expression(depth, level) for _ in range(form.count("{}"))))

    def primary(self, depth: int) -> str:
        if depth <= 0:
            return self.one(self.column, lambda: string(self.draw(TEXTS)), lambda: self.one(*_LITERALS))
        form = self.one("call", "paren", "cast", "query", "exists")
        if form == "call":
            return self.call(depth - 1)
        if form == "paren":
            return f"({_inside(self.expression(depth - 1))})"
        if form == "cast":
            # Of an operator: what is no operator has :: behind it.
            return f"CAST({self.expression(depth - 1, BIT_OR)} + 1 AS {self.draw(TYPES)})"
        return f"{'EXISTS ' if form == 'exists' else ''}({self.query(depth - 1)})"

    # Queries

    def query(self, depth: int) -> str:
        text = self.select(depth)
        for _ in range(self.draw(st.integers(0, 2)) if depth > 0 else 0):
            right = self.select(depth - 1)
            right = f"({right} LIMIT 1)" if self.one(True, False) else right
            text += f" {self.one('UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT ALL', 'MINUS')} {right}"
        if self.chance(depth):
            text += f" ORDER BY {self.some(lambda: self.sort_key(depth - 1))}"
        if self.chance(depth):
            text += self.one(" LIMIT 10", " LIMIT 10 OFFSET 2", " OFFSET 2 FETCH FIRST 1 ROWS ONLY")
        if self.chance(depth):
            ctes = (f"{word} AS ({self.query(depth - 1)})" for word in self.one(("w",), ("w", '"W"')))
            text = f"WITH {', '.join(ctes)} {text}"
        return text

    def sort_key(self, depth: int) -> str:
        return self.expression(depth) + self.one("", " DESC") + self.one("", " NULLS FIRST", " NULLS LAST")

    def select(self, depth: int) -> str:
        parts = [f"SELECT {self.one('', 'DISTINCT ')}{self.some(lambda: self.item(depth), 3)} FROM"]
        parts.append(self.relation(depth))
        parts += [self.join(depth) for _ in range(self.draw(st.integers(0, 2)) if depth > 0 else 0)]
        if self.chance(depth):
            parts.append(self.unnest(depth - 1))
        if self.chance(depth):
            parts.append(f"WHERE {self.expression(depth - 1)}")
        if self.chance(depth):
            parts.append(f"GROUP BY {self.some(lambda: self.key(depth - 1), 3)}")
        if self.chance(depth):
            parts.append(f"HAVING {self.expression(depth - 1)}")
        return " ".join(parts)

    def item(self, depth: int) -> str:
        return self.one(
            "*",
            lambda: f"{self.name()}.*",
            lambda: self.expression(depth - 1),
            lambda: f"{self.expression(depth - 1)} AS {self.name()}",
        )

    def relation(self, depth: int) -> str:
        text = f"({self.query(depth - 1)})" if self.chance(depth) else self.column()
        if self.chance(depth):
            windows = ("TUMBLE({}, SIZE 1 HOUR)", "HOP({}, SIZE 1 HOUR, ADVANCE BY 6 MINUTES)")
            form = self.one(*windows, "CUMULATE({}, SIZE 1 DAY, STEP 1 HOUR)", "SESSION({}, GAP 5 SECONDS)")
            text = form.replace("{}", text)
        text += self.one("", lambda: f" AS {self.name()}")
        if self.chance(depth):
            text += f" WITH ('starting.position' = 'earliest', 'timestamp' = {string(self.draw(TEXTS))})"
        return f"{text} {self.pattern(depth - 1)}{self.one('', ' AS m')}" if self.chance(depth) else text

    def join(self, depth: int) -> str:
        if self.chance(depth):
            return f", {self.relation(depth - 1)}"
        words = self.one("JOIN", "LEFT JOIN", "FULL OUTER JOIN", "INNER JOIN", "CROSS JOIN", "RIGHT JOIN")
        sides = " WITHIN (BEFORE 0 SECONDS, AFTER 3 MINUTES)"
        within = self.one("", lambda: f" WITHIN {self.draw(DURATIONS)}", sides)
        grace = f" GRACE {self.draw(DURATIONS)}" if within and self.one(True, False) else ""
        on = self.one("", lambda: f" ON {self.expression(depth - 1)}")
        return f"{words} {self.relation(depth - 1)}{within}{grace}{on}"

    def unnest(self, depth: int) -> str:
        rows = self.one(
            "", lambda: f" AS {self.name()}", lambda: f" AS {self.name()} ({self.some(self.name)})"
        )
        text = f"UNNEST({self.expression(depth)}){rows}"
        return self.one(f"CROSS JOIN {text}", f"LEFT JOIN {text} ON TRUE")

    def key(self, depth: int) -> str:
        form = self.one(
            "{}", "ROLLUP (({}), ({}, {}))", "CUBE (({}), ({}))", "GROUPING SETS (({}, {}), (), ({}))"
        )
        return form.format(*(self.expression(depth) for _ in range(form.count("{}"))))

    # MATCH_RECOGNIZE

    def pattern(self, depth: int) -> str:
        parts = [
            self.one("", lambda: f"PARTITION BY {self.expression(depth)}"),
            self.one("", "ORDER BY rowtime, a DESC"),
            self.one("", lambda: f"MEASURES FINAL last({self.column()}, 1) + count(a.*) AS {self.name()}"),
            self.one("", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"),
            self.one("", *(f"AFTER MATCH SKIP TO {row}" for row in ("NEXT ROW", "FIRST a", 'LAST "B"'))),
            f"PATTERN ({self.term(2)})",
            self.one("", lambda: f"WITHIN {self.draw(DURATIONS)}"),
            self.one("", lambda: f"SUBSET u = ({self.name()}), v = (a, b)"),
        ]
        parts.append(f"DEFINE {self.name()} AS {self.expression(depth)}")
        return f"MATCH_RECOGNIZE ({' '.join(part for part in parts if part)})"

    def term(self, depth: int) -> str:
        if depth == 0:
            return self.factor(depth)
        # Three parts, so that they are not all orders of some.
        form = self.one("{} {}", "{} {} {}", "{} {} | a | ()", "PERMUTE({} {}, a, ())")
        return form.format(*(self.factor(depth) for _ in range(form.count("{}"))))

    def factor(self, depth: int) -> str:
        inner = self.name()
        if depth > 0:
            inner = self.one(inner, lambda: f"({self.term(depth - 1)} b b)", "()", "^", "$")
        if self.one(True, False, False, False):
            # Only what an exclusion stands beside tells where it begins.
            return f"{{- {self.one('', 'a+ ')}{self.name()} -}} b"
        return inner + self.one("", "", "*", "+?", "?", "{2}", "{1,3}?", "{4,}", "{0,7}")


def _inside(text: str) -> str:
    return f"+{text}" if re.match(r"\(+(?:SELECT|WITH) ", text) else text


@st.composite
def queries(draw: st.DrawFn, depth: int = 3) -> str:
    """The text of a query."""
    return Writer(draw).query(depth)

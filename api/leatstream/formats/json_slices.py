"""Values cut out of a JSON text as they stand in it, as Spark SQL.

Spark's functions rewrite numbers and objects when they return them as text: ``19.90`` becomes ``19.9``. Here
the text is cut where the JSON says, so every digit is kept. It is several times slower than Spark's parser,
so callers use it for what that parser cannot read exactly, and only of texts that are known to be JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.formats.plain_values import DECIMAL, DEEPEST
from leatstream.formats.text_values import (
    base64_bytes,
    bound,
    day,
    decimal,
    literal,
    matches,
    moment,
    time_of_day,
)
from leatstream.model.types import DataType

# Possessive throughout: Java then needs neither backtracking nor its stack for long texts.
STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SCALAR = r'[^\s,:\[\]{}"]++'
_HALF = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


def _nested(depth: int) -> str:
    inner = rf'[^\[\]{{}}"]++|{STRING}'
    found = rf"[\[{{](?:{inner})*+[\]}}]"
    for _ in range(depth - 1):
        found = rf"[\[{{](?:{inner}|{found})*+[\]}}]"
    return found


_VALUE = f"(?:{STRING}|{_SCALAR}|{_nested(DEEPEST)})"
_MEMBER = rf"\G\s*+[{{,]\s*+({STRING})\s*+:\s*+({_VALUE})"
_ELEMENT = rf"\G\s*+[\[,]\s*+({_VALUE})"
_WHOLE = rf"\A\s*+({_VALUE})"


def with_patterns(body: str) -> str:
    """The body, which uses what is below; the patterns are long, so they stand once and have names."""
    named = ", ".join(
        f"'{name}', {literal(pattern)}"
        for name, pattern in (("member", _MEMBER), ("element", _ELEMENT), ("whole", _WHOLE))
    )
    return bound(f"named_struct({named})", "pattern", body)


def unescaped(raw: str) -> str:
    """The text that a JSON string stands for."""
    parsed = f"""from_json(concat('{{"v":', {raw}, '}}'), 'v STRING').v"""
    return f"if(contains({raw}, {literal(chr(92))}), {parsed}, substring({raw}, 2, length({raw}) - 2))"


def members(raw: str) -> str:
    """An object's names ``k`` and values ``v`` as they stand, the last one first."""
    names = f"transform(regexp_extract_all({raw}, pattern.member, 1), k -> {unescaped('k')})"
    return f"named_struct('k', reverse({names}), 'v', reverse(regexp_extract_all({raw}, pattern.member, 2)))"


def elements(raw: str) -> str:
    """A list's values as they stand."""
    return f"regexp_extract_all({raw}, pattern.element, 1)"


def member(found: str, name: str) -> str:
    """The value of that name of what ``members`` gives, NULL if there is none; of two the last counts."""
    return f"get({found}.v, CAST(array_position({found}.k, {text_literal(name)}) AS INT) - 1)"


def text_literal(text: str) -> str:
    """Any text as a literal."""
    # A dollar sign would begin a variable of Spark's.
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def cell(raw: str, kind: DataType, depth: int = 0) -> str:
    """STRUCT of a value ``v`` and whether what stands there is none of its type, ``bad``.

    Args:
        raw: SQL of the value as it stands; NULL for a value that is absent.
        kind: the column's type.
        depth: how many values this one is in.
    """
    r = f"r{depth}"
    null = f"named_struct('v', CAST(NULL AS {kind.spark()}), 'bad', false)"
    unfit = f"named_struct('v', CAST(NULL AS {kind.spark()}), 'bad', true)"
    if kind.kind in ("ARRAY", "MAP", "STRUCT"):
        begins, found = _inside(r, kind, depth)
        found = f"if(startswith({r}, '{begins}'), {found}, {unfit})"
    else:
        value = f"CAST({_leaf(r, kind)} AS {kind.spark()})"
        found = bound(value, f"v{depth}", f"named_struct('v', v{depth}, 'bad', v{depth} IS NULL)")
    return bound(raw, r, f"CASE WHEN {r} IS NULL OR {r} = 'null' THEN {null} ELSE {found} END")


def at_path(text: str, steps: Sequence[str | int]) -> str:
    """What a path leads to in a JSON text, as a VARCHAR column has it; NULL if there is nothing.

    Args:
        text: SQL of the JSON text.
        steps: names of members, and positions in lists from 0.
    """
    found = _leaf("z", DataType("VARCHAR"))
    found = f"CASE WHEN z IS NOT NULL AND z <> 'null' AND z <> '' THEN {found} END"
    for step in reversed(steps):
        if isinstance(step, int):
            part = f"if(startswith(z, '['), get({elements('z')}, {step}), NULL)"
        else:
            part = f"if(startswith(z, '{{'), {bound(members('z'), 'm', member('m', step))}, NULL)"
        found = bound(part, "z", found)
    return with_patterns(bound(f"regexp_extract({text}, pattern.whole, 1)", "z", found))


def has_half(raw: str) -> str:
    """Whether a string has half a character, which UTF-8 has not."""
    escaped = f"contains({raw}, {literal(chr(92) + 'u')})"
    return f"{escaped} AND replace({raw}, {literal(chr(92) * 2)}, '') RLIKE r'{_HALF}'"


def _leaf(r: str, kind: DataType) -> str:
    """A value that is no list and no object, or NULL."""
    text = f"if(startswith({r}, '\"'), {unescaped(r)}, NULL)"
    if kind.kind == "VARCHAR":
        return (
            f"CASE WHEN NOT startswith({r}, '\"') THEN {r} WHEN NOT ({has_half(r)}) THEN {unescaped(r)} END"
        )
    if kind.kind == "BOOLEAN":
        return f"CASE {r} WHEN 'true' THEN true WHEN 'false' THEN false END"
    if kind.kind in _INTEGERS:
        return f"CASE WHEN {matches(r, '-?[0-9]{1,30}')} THEN try_cast({r} AS {kind.spark()}) END"
    if kind.kind in ("FLOAT", "DOUBLE"):
        words = """'"NaN"', '"Infinity"', '"-Infinity"'"""
        return (
            f"CASE WHEN {matches(r, DECIMAL)} THEN try_cast({r} AS {kind.kind}) "
            f"WHEN {r} IN ({words}) THEN CAST(replace({r}, '\"', '') AS {kind.kind}) END"
        )
    if kind.kind == "DECIMAL":
        return bound(f"if(startswith({r}, '\"'), {unescaped(r)}, {r})", "t", decimal("t", kind))
    rules = {"DATE": day, "TIME": time_of_day, "BYTES": base64_bytes, "VARBINARY": base64_bytes}
    if kind.kind in rules:
        return bound(text, "t", rules[kind.kind]("t"))
    return bound(text, "t", moment("t", kind.kind))


def _inside(r: str, kind: DataType, depth: int) -> tuple[str, str]:
    """How a list or an object begins, and what it holds."""
    c = f"c{depth}"
    if kind.kind == "ARRAY":
        cells = f"transform({elements(r)}, e{depth} -> {cell(f'e{depth}', kind.arguments[0], depth + 1)})"
        made = f"named_struct('v', transform({c}, x -> x.v), 'bad', exists({c}, x -> x.bad))"
        return "[", bound(cells, c, made)
    m = f"m{depth}"
    if kind.kind == "STRUCT":
        cells = ", ".join(
            f"'c{i}', {cell(member(m, name), part, depth + 1)}"
            for i, (name, part) in enumerate(zip(kind.fields, kind.arguments, strict=True))
        )
        values = ", ".join(f"{text_literal(name)}, {c}.c{i}.v" for i, name in enumerate(kind.fields))
        bad = " OR ".join(f"{c}.c{i}.bad" for i in range(len(kind.fields)))
        made = f"named_struct('v', named_struct({values}), 'bad', {bad})"
        return "{", bound(members(r), m, bound(f"named_struct({cells})", c, made))
    numbered = f"transform({m}.k, (k, i) -> named_struct('k', k, 'v', get({m}.v, i), 'i', i + 1))"
    lasting = f"reverse(filter({numbered}, e -> array_position({m}.k, e.k) = e.i))"
    names = f"regexp_extract_all({r}, pattern.member, 1)"
    value = cell(f"e{depth}.v", kind.arguments[1], depth + 1)
    cells = f"transform({lasting}, e{depth} -> named_struct('k', e{depth}.k, 'c', {value}))"
    made = (
        f"named_struct('v', map_from_entries(transform({c}, x -> named_struct('k', x.k, 'v', x.c.v))), "
        f"'bad', exists({c}, x -> x.c.bad) OR exists({names}, k -> {has_half('k')}))"
    )
    return "{", bound(members(r), m, bound(cells, c, made))

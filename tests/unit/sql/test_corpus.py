"""Each pass has a file of input/expected pairs in tests/fixtures/sql; this module runs them all.

A case is ``-- <what>``, the SQL text, ``=>`` and the outcome up to an empty line: compiled SQL with a line
per scan that has properties and per join; or a line per fault: ``code @line:column "text" detail | hint``.
Rewrite the expected halves with ``LEATSTREAM_REWRITE_CORPUS=1`` and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from leatstream.errors import RequestError
from leatstream.plan.logical import Join, LogicalPlan

FOLDER = Path(__file__).parents[2] / "fixtures" / "sql"
REWRITE = bool(os.environ.get("LEATSTREAM_REWRITE_CORPUS"))


def read(path: Path) -> list[tuple[str, str, str]]:
    cases = []
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        title, _, rest = block.strip("\n").partition("\n")
        text, _, expected = rest.partition("\n=>")
        cases.append((title.removeprefix("-- "), text, expected.strip("\n")))
    return cases


def outcome(bind_text: Callable[[str], LogicalPlan], text: str) -> str:
    try:
        plan = bind_text(text)
    except RequestError as error:
        return "\n".join(
            f'{f.code} @{f.position.line}:{f.position.column} "{shown(text, f.position)}" {f.detail}'
            + (f" | {f.hint}" if f.hint else "")
            if f.position
            else f"{f.code} {f.detail}"
            for f in error.faults
        )
    lines = [plan.sql]
    lines += [f"scan {s.alias} {dict(s.properties)}" for s in plan.scans if s.properties]
    lines += [f"join {j.type.value} {j.left} {j.right} {_bounds(j)}" for j in plan.joins]
    if plan.distinct:
        lines.append("distinct")
    if plan.aggregation is not None:
        how = "update" if plan.aggregation.update else "append"
        lines.append(
            f"group {', '.join(plan.aggregation.keys) or '-'} {how} {plan.aggregation.window or ''}".rstrip()
        )
    elif plan.primary_key:
        lines.append(f"key {', '.join(plan.primary_key)}{' deletes' if plan.deletes else ''}")
    if plan.operator is not None:
        kept = ", ".join(f"{s.view}({', '.join(s.keys)})" for s in plan.operator.snapshots)
        lines.append(f"operator {plan.operator.kind} keeps {kept}")
        lines += [f"link {one.view} {', '.join(one.values)} of {one.relation}" for one in plan.operator.links]
        groups = plan.operator.groups
        lines += [f"groups {', '.join(groups.values)} of {groups.relation}"] if groups else []
    for lookup in plan.lookups:
        kept = f" kept {lookup.cache_ttl_ms} ms" if lookup.cache_ttl_ms else ""
        keys = ", ".join(lookup.keys)
        lines.append(f"lookup {lookup.scan.view}({keys}) {', '.join(lookup.values)} of {lookup.left}{kept}")
    lines += [f"headers of {scan.view}" for scan in plan.scans if scan.headers]
    if plan.pattern is not None:
        lines.append(f"pattern over {plan.pattern.input}")
    return "\n".join(lines)


def _bounds(join: Join) -> str:
    both = (
        f"{join.before_ms} ms" if join.before_ms == join.after_ms else f"{join.before_ms}..{join.after_ms} ms"
    )
    return both if join.grace_ms is None else f"{both} grace {join.grace_ms} ms"


def shown(text: str, position: object) -> str:
    start = position.offset  # type: ignore[attr-defined]
    return text[start : start + position.length].replace("\n", " ")  # type: ignore[attr-defined]


FILES = sorted(FOLDER.glob("*.sql"))
CASES = [(p.stem, *case) for p in FILES for case in read(p)]


def test_corpus_is_there() -> None:
    assert len(FILES) >= 6


@pytest.mark.parametrize(("name", "title", "text", "expected"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_case(
    name: str, title: str, text: str, expected: str, bind_text: Callable[[str], LogicalPlan]
) -> None:
    assert outcome(bind_text, text) == expected


if REWRITE:

    def test_rewrite(bind_text: Callable[[str], LogicalPlan]) -> None:
        for path in FILES:
            blocks = [f"-- {t}\n{sql}\n=>\n{outcome(bind_text, sql)}" for t, sql, _ in read(path)]
            path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")

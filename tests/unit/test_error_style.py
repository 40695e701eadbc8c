"""Every text of an error is written as docs/STYLE.md says: sentences with a capital letter and a full stop."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.raise_sites import Text, texts

from leatstream.errors import already_exists, not_found, sentence

_ROOT = Path(__file__).parents[2]
_SOURCES = ("api/leatstream", "spark_jobs/leatstream_jobs", "provider-schema/leatstream_terraform")
# A first word that keeps its letters: a name from code, such as value.format or ca_certificate.
_CODE = re.compile(r"\w+[._(=/:-]\w|leatstream\b")
_STOPS = (".", "?", "!", "…")
# A hint that is a statement or a command alone, to be copied: WITH ('topic' = …).
_COMMAND = re.compile(r"[A-Z_]{2,}\b|[`'\"]|[a-z]+ --|pip ")


def test_every_detail_and_hint_is_a_sentence() -> None:
    paths = [path for root in _SOURCES for path in (_ROOT / root).rglob("*.py")]
    found = [text for path in paths for text in texts(path)]
    assert len(found) > 1_000, "the walk misses raise sites"
    wrong = {f"{t.place}: {t.role}: {ast.unparse(t.node)}": why for t in found if (why := _fault(t))}
    assert not wrong, "\n".join(f"{place}\n    {why}" for place, why in sorted(wrong.items()))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('StoreError("store-rejected", "Topic x has no partitions.")', None),
        ('StoreError("store-rejected", "topic x has no partitions.")', "begins with a small letter"),
        ('StoreError("store-rejected", "Topic x has no partitions")', "ends without a full stop"),
        ('StoreError("store-rejected", f"Topic {x} has no partition {n}")', "ends without a full stop"),
        ('StoreError("store-rejected", f"{fqn} is a view.")', None),
        ('StoreError("store-rejected", f"{fqn} is a view.", hint="read it")', "begins with a small letter"),
        ('StoreError("store-rejected", "It is.", hint="WITH (\'store\' = …)")', None),
        ('faults.add("unsupported", "value.format must be given.")', None),
        (
            'def f(why):\n    raise StoreError("store-rejected", why)\nf("it is")',
            "begins with a small letter",
        ),
        ('def f():\n    detail = "it is" if x else "It is."\n    faults.add("a", detail)', "begins with"),
    ],
)
def test_the_walk_sees_the_other_style(source: str, why: str | None, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    found = [fault for text in texts(path) if (fault := _fault(text))]
    assert (found[0] if found else None) == why or (why is not None and why in found[0])


def test_a_fault_of_several_rooms_is_worded_once() -> None:
    missing = not_found("schema_registry", "r1")
    assert (missing.detail, missing.sqlstate) == ("Schema registry r1 does not exist.", "3D009")
    taken = already_exists("materialized view", "demo.public.v", hint="Choose another name.")
    assert (taken.detail, taken.sqlstate) == ("Materialized view demo.public.v exists already.", "42P17")
    assert taken.faults[0].hint == "Choose another name."


def test_a_text_from_elsewhere_becomes_a_sentence() -> None:
    assert sentence("field required") == "Field required."
    assert sentence("value.format is wrong, is it?") == "value.format is wrong, is it?"
    assert sentence(" Done. ") == "Done."


def _fault(text: Text) -> str | None:
    parts = _parts(text.node)
    first, last = _literal(parts[0]), _literal(parts[-1])
    if first == last == "":
        return None  # the answer's field where there is no text
    command = text.role == "hint" and (first is None or _COMMAND.match(first))
    if first and first[0].islower() and not command and not _CODE.match(first.split()[0]):
        return "begins with a small letter"
    if command or (last is not None and last.rstrip(")'\"`").endswith(_STOPS)):
        return None
    before = _literal(parts[-2]) if len(parts) > 1 else None
    # What another program has written is shown as it is, on lines of its own; and a command has no stop.
    shown = before is not None and (before.endswith(":\n") or before.endswith("Run: chmod 600 "))
    return None if last is None and shown else "ends without a full stop"


def _parts(node: ast.expr) -> Sequence[ast.expr]:
    if isinstance(node, ast.JoinedStr):
        return node.values or [ast.Constant("")]
    if isinstance(node, ast.BinOp):
        return [*_parts(node.left), *_parts(node.right)]
    return [node]


def _literal(part: ast.expr) -> str | None:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else None

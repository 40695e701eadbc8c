"""The documentation says what the code does: its blocks are read, its lists compared, its links followed."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
from sqlglot import exp

from leatstream.cli.exits import Exit
from leatstream.errors import FAMILIES
from leatstream.model.query_states import TRANSITIONS
from leatstream.model.types import known_types
from leatstream.rest import metrics
from leatstream.rest.problem import HTTP_FAULTS
from leatstream.services.planning.query_properties import QUERY_PROPERTIES
from leatstream.settings import Settings
from leatstream.sql import constants, statements
from leatstream.sql.function_table import functions, refusals
from leatstream.sql.parser import parse
from leatstream.sql.relation_properties import read_relation_properties
from leatstream.sql.statements import (
    CreateAs,
    CreateChangelog,
    CreateChangelogAs,
    CreateMaterializedViewAs,
    CreateStore,
    CreateStream,
    InsertInto,
)
from leatstream.sql.store_properties import read_store_properties
from leatstream.sql.view_properties import read_view_properties

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")],
    key=lambda p: p.as_posix(),
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[object]:
    """Every fenced block of a language, as test parameters named by page and line."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match[1] == language:
                line = text.count("\n", 0, match.start()) + 1
                found.append(pytest.param(match[2], id=f"{page.relative_to(ROOT)}:{line}"))
    return found


def headings(page: Path) -> set[str]:
    """Anchors of a page, as the usual renderers make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("text", blocks("sql"))
def test_sql_is_read(text: str) -> None:
    for statement in parse(text):
        if isinstance(statement, CreateStore):
            read_store_properties(statement.properties)
        elif isinstance(statement, CreateMaterializedViewAs):
            read_view_properties(statement.properties)
        elif isinstance(statement, CreateStream | CreateAs | InsertInto):
            changelog = isinstance(statement, CreateChangelog | CreateChangelogAs)
            read_relation_properties(statement.properties, changelog=changelog)


def told_statements() -> list[statements.Statement]:
    """Every statement in the SQL reference, those inside of others too."""
    found: list[statements.Statement] = []
    for page in sorted((ROOT / "docs" / "sql").glob("*.md")):
        for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            found += parse(text) if language == "sql" else []
    for one in found:
        if isinstance(one, statements.CreateApplication):
            found += one.statements
        elif isinstance(one, statements.DescribeStatement):
            found.append(one.statement)
    return found


def test_every_statement_has_an_example() -> None:
    """Each class, and each noun or word that a class takes."""
    told = told_statements()
    kinds = [
        kind
        for kind in vars(statements).values()
        if isinstance(kind, type) and issubclass(kind, statements.Statement)
    ]
    abstract = {statements.Statement, statements.CreateRegistered, CreateAs}
    assert [kind.__name__ for kind in kinds if kind not in {type(one) for one in told} | abstract] == []
    missing = []
    for kind in kinds:
        for member in ("noun", "what"):
            words = get_args(
                get_type_hints(kind, localns={"exp": exp, "Constant": constants.Constant}).get(member)
            )
            found = {getattr(one, member, None) for one in told if type(one) is kind}
            missing += [f"{kind.__name__} {word}" for word in words if word not in found]
    assert missing == []


def test_every_query_property_is_listed() -> None:
    page = (ROOT / "docs" / "sql" / "queries.md").read_text(encoding="utf-8")
    table = page.split("## Query properties")[1].split("## SELECT")[0]
    assert set(QUERY_PROPERTIES) - set(re.findall(r"`([\w.]+)`", table)) == set()


def test_every_page_of_the_sql_reference_is_listed() -> None:
    index = (ROOT / "docs" / "sql" / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs" / "sql").glob("*.md")} - {"index.md"}
    assert pages - set(re.findall(r"\]\(([\w-]+\.md)", index)) == set()


@pytest.mark.parametrize("text", blocks("python"))
def test_python_compiles(text: str) -> None:
    ast.parse(text)


@pytest.mark.parametrize("text", blocks("json"))
def test_json_is_json(text: str) -> None:
    json.loads(text)


def hcl_texts() -> list[object]:
    files = sorted(ROOT.glob("examples/**/*.tf"))
    return [
        *blocks("hcl"),
        *(pytest.param(f.read_text(encoding="utf-8"), id=f"{f.parts[-3]}-{f.name}") for f in files),
    ]


@pytest.mark.parametrize("text", hcl_texts())
def test_hcl_names_resources_and_attributes_that_exist(text: str) -> None:
    schema = json.loads((ROOT / "provider-schema" / "provider.json").read_text(encoding="utf-8"))["resources"]
    text = re.sub(r"<<-(\w+)\n.*?^\s*\1$", '""', text, flags=re.MULTILINE | re.DOTALL)
    for kind, body in re.findall(r'^resource "(\w+)" "\w+" \{\n(.*?)^\}', text, re.MULTILINE | re.DOTALL):
        assert kind in schema
        written = set(re.findall(r"^  (\w+)\s*=", body, re.MULTILINE))
        assert written <= set(schema[kind]["attributes"]) | {"depends_on", "lifecycle"}
    for kind, attribute in re.findall(r"\b(leatstream_\w+)\.\w+\.(\w+)", text):
        assert attribute in schema[kind]["attributes"]


def told_codes() -> dict[str, tuple[int, str]]:
    """Status and SQLSTATE of every code that an answer may have."""
    found = {fault.code: (status, fault.sqlstate) for status, fault in HTTP_FAULTS.items()}
    for family in FAMILIES:
        found |= {code: (kind.status, kind.sqlstate) for code, kind in family.kinds.items()}
    return found


def test_every_error_code_has_a_heading() -> None:
    assert set(told_codes()) - headings(ROOT / "docs" / "problems.md") == set()


def test_problems_tell_the_right_status_and_sqlstate() -> None:
    text = (ROOT / "docs" / "problems.md").read_text(encoding="utf-8")
    for code, (status, sqlstate) in told_codes().items():
        section = text.split(f"\n### {code}\n")[1].split("\n#")[0]
        if written := re.match(r"\s*(\d{3}), ", section):
            assert int(written[1]) == status, code
        if written := re.search(r"SQLSTATE (\w{5})", section):
            assert written[1] == sqlstate, code


def test_every_picture_is_shown_and_taken_by_a_test() -> None:
    """``make pictures`` takes them again; links to pictures that do not exist are found below."""
    kept = {path.stem for path in (ROOT / "docs" / "images").glob("*.png")}
    shown = set(
        re.findall(r"!\[[^]]+\]\([\w/.]*images/(\w+)\.png\)", "".join(p.read_text("utf-8") for p in PAGES))
    )
    console = (ROOT / "tests" / "e2e" / "test_console.py").read_text(encoding="utf-8")
    assert kept
    assert kept == shown == set(re.findall(r'take\("(\w+)"\)', console))


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and file.suffix == ".md" and anchor not in headings(file)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_every_setting_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    for name, field in Settings.model_fields.items():
        row = next((line for line in text.splitlines() if f"`LEATSTREAM_{name.upper()}`" in line), None)
        assert row is not None, name
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert f"{field.default:g}" in row or str(field.default) in row, name


def test_every_metric_is_documented_with_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "all_queries", lambda _: ())
    env: Any = SimpleNamespace(passes=SimpleNamespace(count=0, seconds=0.0))
    families = [*metrics.QueryMetrics(env).collect(), *metrics.RequestTimes().registry.collect()]
    emitted = {f.name + ("_total" if f.type == "counter" else "") for f in families}
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.split("\n### Metrics\n")[1].split("\nWhat is worth an alert")[0]
    rows = re.findall(r"^\| (`leatstream_.+?) \| (.*?) ?\| ", section, re.MULTILINE)
    told = {
        name: re.findall(r"`(\w+)`", labels)
        for names, labels in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    assert told.keys() == emitted
    labels = {f.name: list(f._labelnames) for f in families if hasattr(f, "_labelnames")}
    assert labels
    for name, known in labels.items():
        assert told.get(name, told.get(f"{name}_total")) == known, name


def test_every_condition_of_a_query_is_documented() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.split("\n### Conditions\n")[1].split("\n### ")[0]
    code = (ROOT / "api" / "leatstream" / "rest" / "schemas" / "queries.py").read_text(encoding="utf-8")
    emitted = set(re.findall(r'Condition\(type="(\w+)"', code))
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == emitted


def test_every_transition_of_a_query_is_documented() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.split("\n## The states of a query\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?:`(\w+)`|\(new\)) \| `(\w+)` \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(t.before or "", t.after, t.when) for t in TRANSITIONS]


def test_every_exit_status_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {int(e) for e in Exit}


def test_every_function_is_documented() -> None:
    named = set(
        re.findall(r"`(\w+)[`(]", (ROOT / "docs" / "sql" / "functions.md").read_text(encoding="utf-8"))
    )
    assert named >= functions().keys() | refusals().keys()


def test_every_type_is_documented() -> None:
    text = (ROOT / "docs" / "sql" / "types.md").read_text(encoding="utf-8")
    assert [name for name in known_types() if name not in text] == []


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(p.name for p in folder.glob("[0-9]*.md"))
    assert records
    assert re.findall(r"^- .*\((\d{4}-[\w-]+\.md)\)$", index, re.MULTILINE) == records


def test_the_diagram_of_rooms_has_every_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [c["layers"] for c in contracts if c.get("containers") == ["leatstream"]]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = re.search(r"subgraph server.*?\n  end", page, re.DOTALL)
    assert drawn is not None
    arrows = [line.split(" --> ") for line in drawn[0].splitlines() if " --> " in line]
    level = {room: height for height, layer in enumerate(layers) for room in re.split(r" [|] ", layer)}
    assert {room for line in arrows for part in line for room in part.strip().split(" & ")} == set(level)
    steps = [(a, b) for line in arrows for a, b in pairwise(line)]
    assert all(
        level[a] + 1 == level[b] for x, y in steps for a in x.strip().split(" & ") for b in y.split(" & ")
    )

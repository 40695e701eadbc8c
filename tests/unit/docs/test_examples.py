"""``examples/``: the SQL of a folder and its Terraform configuration declare the same, and both are removed again.

``tests/integration/sql/test_docs_examples.py`` plans the same SQL on real servers.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leatstream.model.types import parse_type
from leatstream.sql.generation.statements import generate
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateAs, CreateDatabase, CreateStream, Drop, Use

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = sorted(path.parent for path in ROOT.glob("examples/*/pipeline.sql"))
BLOCK = re.compile(r'^resource "leatstream_(\w+)" "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
HEREDOC = re.compile(r"<<-SQL\n(.*?)^\s*SQL$", re.MULTILINE | re.DOTALL)
each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def text_of(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def resources(folder: Path) -> list[tuple[str, str, str]]:
    """Kind, name and body of each resource of leatstream."""
    return BLOCK.findall(text_of(folder, "main.tf"))


def declared(columns: list[tuple[str, str]], topic: str, timestamp: str | None) -> tuple[object, ...]:
    return [(name, parse_type(kind)) for name, kind in columns], topic, timestamp


def streams_of_sql(folder: Path) -> dict[str, tuple[object, ...]]:
    found = {}
    for one in parse(text_of(folder, "pipeline.sql")):
        if isinstance(one, CreateStream):
            given = {key: value.value for key, value in one.properties.items()}
            topic = given.get("topic", given.get("postgresql.table.name"))
            columns = [(column.name, column.type) for column in one.columns]
            found[one.name.parts[-1]] = declared(columns, str(topic), given.get("timestamp"))  # type: ignore[arg-type]
    return found


def streams_of_terraform(folder: Path) -> dict[str, tuple[object, ...]]:
    entities = {
        name: re.findall(r'^  name\s+= "(.+)"$', body, re.MULTILINE)[0]
        for kind, name, body in resources(folder)
        if kind == "entity"
    }
    found = {}
    for kind, name, body in resources(folder):
        if kind in ("stream", "changelog"):
            columns = re.findall(r'\{ name = "(\w+)", type = "([^"]+)" \}', body)
            (topic,) = re.findall(r"^  topic\s+= leatstream_entity\.(\w+)\.name$", body, re.MULTILINE)
            timestamp = re.findall(r'^  timestamp\s+= "(\w+)"$', body, re.MULTILINE)
            found[name] = declared(columns, entities[topic], timestamp[0] if timestamp else None)
    return found


def test_there_are_examples() -> None:
    assert {folder.name for folder in FOLDERS} == {
        *("alerts", "current-view", "deduplication", "orders-and-payments", "s3-landing", "sessions")
    }


@each_folder
def test_both_forms_have_the_same_queries(folder: Path) -> None:
    sql = [generate(one) for one in parse(text_of(folder, "pipeline.sql")) if isinstance(one, CreateAs)]
    texts = [HEREDOC.findall(body)[0] for kind, _, body in resources(folder) if kind == "query"]
    terraform = [re.sub(r"\$\{leatstream_\w+\.(\w+)\.\w+\}", r"\1", text) for text in texts]
    assert [generate(one) for text in terraform for one in parse(text)] == sql


@each_folder
def test_both_forms_have_the_same_streams(folder: Path) -> None:
    assert streams_of_terraform(folder) == streams_of_sql(folder)


@each_folder
def test_what_is_created_is_removed(folder: Path) -> None:
    made = set()
    for one in parse(text_of(folder, "pipeline.sql")):
        assert isinstance(one, CreateAs | CreateStream | CreateDatabase | Use)
        made |= set() if isinstance(one, Use) else {one.name.parts[-1]}
    deleted = set(re.findall(r"^leat query delete (\w+) ", text_of(folder, "README.md"), re.MULTILINE))
    removed = [one for one in parse(text_of(folder, "remove.sql")) if isinstance(one, Drop)]
    assert {one.name.parts[-1] for one in removed if one.noun not in ("entity", "store")} | deleted == made


@each_folder
def test_the_page_names_every_file(folder: Path) -> None:
    page = text_of(folder, "README.md")
    files = {path.name for path in folder.iterdir() if path.suffix in (".sql", ".tf")} - {"main.tf"}
    assert [name for name in sorted(files) if name not in page] == []
    assert "terraform apply" in page

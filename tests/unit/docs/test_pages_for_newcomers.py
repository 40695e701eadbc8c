"""The figures of docs/limits.md and docs/versions.md, and the links of docs/llms.txt, are those of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from leatstream.connectors.postgres import admin as postgres
from leatstream.dev.doctor import PYTHON_BELOW, PYTHON_FROM
from leatstream.dev.java import MINIMUM_JAVA
from leatstream.dev.tools import MINIMUM_NODE, MINIMUM_TERRAFORM
from leatstream.model.bounds import LOG_LINES
from leatstream.model.names import MAX_LENGTH
from leatstream.rest.gate import MAX_BODY_BYTES
from leatstream.settings import Settings
from leatstream.sql import applications, group_by, lexer, match_recognize, parser, tokens_reader, windows
from leatstream.sql import writing_statements as writing
from leatstream.sql.passes import inputs
from leatstream.views import postgresql_writer

DOCS = Path(__file__).resolve().parents[3] / "docs"
LIMITS = (DOCS / "limits.md").read_text(encoding="utf-8")


def value_of(row: str) -> str:
    (found,) = re.findall(rf"^\| {re.escape(row)} \| ([^|]+) \|", LIMITS, re.MULTILINE)
    return found.strip()


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("characters, statements of a text", f"{parser.MAX_TEXT:,}, {parser.MAX_STATEMENTS:,}"),
        ("words and signs of a text", f"{lexer.MAX_TOKENS:,}"),
        ("statements of an application", f"{applications.MAX_STATEMENTS:,}"),
        ("characters of a name", f"{MAX_LENGTH:,}"),
        ("relations that a query reads", f"{inputs.MAX_SCANS:,}"),
        ("nesting of expressions", f"{tokens_reader.MAX_DEPTH:,}"),
        ("sets of columns of GROUP BY", f"{group_by.MAX_SETS:,}"),
        ("windows that a row of HOP or CUMULATE belongs to", f"{windows.MAX_OVERLAP:,}"),
        ("longest WITHIN or window", f"{windows.MAX_WITHIN_MS // 86_400_000} days"),
        ("rows of INSERT INTO … VALUES", f"{writing.MAX_ROWS:,}"),
        ("variables of a row pattern, repetitions counted", f"{match_recognize.MAX_SIZE:,}"),
        ("retained log lines of a query", f"{LOG_LINES:,}"),
        ("body of a request", f"{MAX_BODY_BYTES // 1024**2} MiB"),
        ("drivers at a time", str(Settings.model_fields["max_drivers"].default)),
        ("idle drivers", str(Settings.model_fields["warm_drivers"].default)),
    ],
)
def test_limits_are_those_of_the_code(row: str, value: str) -> None:
    assert value_of(row) == value


@pytest.mark.parametrize(
    "figure",
    [
        "0.53 s, 0.81 s",
        "13,200 rows/s",
        "37,000 and 13,000 rows/s",
        "440, 12",
        "0.014, 0.020",
        "2.8, 2.0",
        "1.98 s",
    ],
)
def test_measurements_are_those_of_the_benchmarks(figure: str) -> None:
    """One that is measured again changes both pages."""
    bench = (DOCS.parent / "bench" / "README.md").read_text(encoding="utf-8")
    assert figure in bench
    assert all(number in LIMITS for number in re.findall(r"[\d.,]*\d", figure))


@pytest.mark.parametrize(
    ("program", "supported"),
    [
        ("Python", f"3.{PYTHON_FROM[1]} to 3.{PYTHON_BELOW[1] - 1}"),
        ("Java", f"{MINIMUM_JAVA} or newer"),
        ("Terraform, OpenTofu", f"{'.'.join(map(str, MINIMUM_TERRAFORM))} or newer"),
        ("Node.js", f"{MINIMUM_NODE[0]} or newer"),
        ("PostgreSQL as a store", f"{postgres.OLDEST // 10_000} or newer"),
        ("PostgreSQL as the catalog", f"{postgresql_writer.OLDEST // 10_000} or newer"),
    ],
)
def test_supported_versions_are_those_that_are_checked(program: str, supported: str) -> None:
    assert f"\n| {program} | {supported} | " in (DOCS / "versions.md").read_text(encoding="utf-8")


def test_the_supported_spark_and_python_are_those_of_the_package() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">=3.{PYTHON_FROM[1]},<3.{PYTHON_BELOW[1]}"
    (spark,) = [one for one in project["optional-dependencies"]["spark"] if one.startswith("pyspark")]
    assert f"\n| Spark | {spark.removeprefix('pyspark==')} only | " in (DOCS / "versions.md").read_text(
        "utf-8"
    )


def test_links_for_language_models_lead_somewhere() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): ", text, re.MULTILINE)
    assert len(links) > 15
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_every_page_is_reached_from_the_index() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert pages - set(re.findall(r"\]\(([\w-]+\.md)", index)) == set()

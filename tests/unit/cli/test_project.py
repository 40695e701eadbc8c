"""``leat init`` and ``leat open``: what a new project consists of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leatstream.cli.project import Form, skeleton
from leatstream.sql.parser import parse
from leatstream.sql.relation_properties import read_relation_properties
from leatstream.sql.statements import CreateStream

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("form", list(Form))
def test_init_writes_a_project(leat: Leat, tmp_path: Path, form: Form) -> None:
    place = tmp_path / "new" / "pipeline"
    done = leat("init", str(place), "--form", form.value)
    written = {path.name for path in place.iterdir()}
    assert (done.status, written) == (0, set(skeleton(form)))
    assert {"README.md", ".gitignore"} < written
    assert sorted(Path(line).name for line in done.out.splitlines()) == sorted(written)
    assert "Next: cd " in done.err


@pytest.mark.parametrize("form", list(Form))
def test_init_overwrites_nothing(leat: Leat, tmp_path: Path, form: Form) -> None:
    (tmp_path / "README.md").write_text("mine")
    done = leat("init", str(tmp_path), "--form", form.value)
    assert done.status == 2
    assert "README.md already" in " ".join(re.sub("[│╭╮╰╯─]", " ", done.err).split())
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "mine"


def test_init_does_not_write_through_a_link(leat: Leat, tmp_path: Path) -> None:
    (tmp_path / "main.tf").symlink_to(tmp_path / "elsewhere")
    assert leat("init", str(tmp_path)).status == 2
    assert not (tmp_path / "elsewhere").exists()


def test_the_sql_is_read_with_its_properties() -> None:
    statements = parse(skeleton(Form.SQL)["pipeline.sql"])
    assert len(statements) == 6
    for statement in statements:
        if isinstance(statement, CreateStream):
            read_relation_properties(statement.properties, changelog=False)


def test_the_terraform_names_what_the_provider_has() -> None:
    schema = json.loads((ROOT / "provider-schema" / "provider.json").read_text(encoding="utf-8"))["resources"]
    text = re.sub(r"<<-SQL\n.*?SQL\n", '""\n', skeleton(Form.TERRAFORM)["main.tf"], flags=re.DOTALL)
    found = re.findall(r'^resource "(\w+)" "\w+" \{\n(.*?)^\}', text, re.MULTILINE | re.DOTALL)
    assert len(found) == 4
    for kind, body in found:
        assert set(re.findall(r"^  (\w+)\s*=", body, re.MULTILINE)) <= set(schema[kind]["attributes"])
    (sql,) = re.findall(r"<<-SQL\n(.*?)SQL\n", skeleton(Form.TERRAFORM)["main.tf"], re.DOTALL)
    assert len(parse(re.sub(r"\$\{[^}]*\}", "demo.shop.pageviews", sql))) == 1


def test_the_cdktf_program_compiles() -> None:
    files = skeleton(Form.CDKTF)
    compile(files["main.py"], "main.py", "exec")
    assert json.loads(files["cdktf.json"])["app"] == "python main.py"


@pytest.mark.parametrize("form", list(Form))
def test_the_state_stays_out_of_the_repository(form: Form) -> None:
    assert "*.tfstate" in skeleton(form)[".gitignore"]


def test_open_prints_and_opens_the_console(
    service: Service, leat: Leat, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert leat("open", "--no-browser").out == "http://service.test/ui/\n"
    assert opened == []
    assert leat("open").out == "http://service.test/ui/\n"
    assert opened == ["http://service.test/ui/"]
    assert leat("open", "--docs").out == "http://service.test/docs\n"
    assert opened[1:] == ["http://service.test/docs"]
    assert service.requests == []


def validated(valid: bool) -> dict[str, object]:
    problem = {
        "code": "unknown-column",
        "detail": "There is no column usrid.",
        "position": {"line": 1, "column": 8, "offset": 7, "length": 5},
        "hint": "Did you mean userid?",
    }
    plan = {"sink": {"properties": {"topic.partitions": {"value": 3, "origin": "inferred", "from": "s"}}}}
    good = {"kind": "create_stream_as", "plan": plan, "problems": []}
    bad = {"kind": "select", "plan": None, "problems": [problem]}
    return {"valid": valid, "statements": [good] if valid else [good, bad]}


def test_a_dry_run_shows_plans_and_changes_nothing(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/statements:validate", validated(True))
    done = leat("sql", "--dry-run", "--database", "demo", "CREATE STREAM t AS SELECT * FROM s;")
    assert done.status == 0
    assert ["topic.partitions", "3", "inferred", "s"] in [line.split() for line in done.out.splitlines()]
    assert service.last_body == {"sql": "CREATE STREAM t AS SELECT * FROM s;", "database": "demo"}
    assert [request.url.path for request in service.requests] == ["/v1/statements:validate"]


def test_a_dry_run_shows_every_problem_at_its_place(service: Service, leat: Leat) -> None:
    service.answer("POST", "/v1/statements:validate", validated(False))
    done = leat("sql", "--dry-run", "SELECT usrid FROM s;")
    assert done.status == 6
    assert "SELECT: refused" in done.out
    assert "Did you mean userid?" in done.err
    assert "^^^^^" in done.err
    as_json = leat("sql", "--dry-run", "SELECT usrid FROM s;", "-o", "json")
    assert (as_json.status, json.loads(as_json.out)) == (6, validated(False))


@pytest.mark.parametrize("option", ["--atomic", "--wait=5"])
def test_a_dry_run_takes_no_option_that_is_about_changes(leat: Leat, option: str) -> None:
    assert leat("sql", "--dry-run", option, "LIST STORES;").status == 2

"""The generator of ``l1/``."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from leatstream_cdktf import generate
from leatstream_cdktf._naming import class_name, element_name, getter_name
from leatstream_terraform.schema import load, parse

TEXT = {"type": "string", "mode": "optional"}


def _schema(**attributes: object) -> object:
    """A document with one resource ``leatstream_thing``."""
    thing = {"path": "/v1/things/{name}", "key": ["name"], "import": "{name}", "description": "A thing."}
    return parse(
        {
            "format": 1,
            "provider": {"attributes": {}},
            "resources": {"leatstream_thing": {**thing, "attributes": attributes}},
        }
    )


def _classes(source: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def _methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}


def test_the_committed_files_are_what_provider_json_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().err


def test_the_output_is_always_the_same() -> None:
    assert generate.documents(load()) == generate.documents(load())


def test_every_resource_and_data_source_has_a_module_and_a_class() -> None:
    schema, files = load(), generate.documents(load())
    for name in schema.resources:
        short = name.removeprefix("leatstream_")
        assert class_name(short) in _classes(files[f"{short}.py"])
    for name in schema.data_sources:
        short = name.removeprefix("leatstream_")
        assert "Data" + class_name(short) in _classes(files[f"data_{short}.py"])
    assert "LeatstreamProvider" in _classes(files["provider.py"])


def test_write_check_and_stale_files(tmp_path: Path) -> None:
    files = generate.documents(load())
    (tmp_path / "gone.py").write_text("x = 1\n", encoding="utf-8")
    assert set(generate.differences(tmp_path, files)) == {*files, "gone.py"}
    assert set(generate.write(tmp_path, files)) == {*files, "gone.py"}
    assert generate.differences(tmp_path, files) == []
    assert not (tmp_path / "gone.py").exists()


def test_neither_node_nor_the_library_is_needed() -> None:
    code = (
        "import sys, leatstream_cdktf.generate as g; g.main(['--check']); "
        "print([m for m in sys.modules if m in ('jsii', 'cdktf', 'cdktn', 'constructs')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_arguments_and_getters_follow_the_modes() -> None:
    source = generate.documents(
        _schema(
            name={"type": "string", "mode": "required"},
            secret={"type": "string", "mode": "optional", "write_only": True},
            fqn={"type": "string", "mode": "computed"},
            size={"type": "number", "mode": "optional_computed"},
            on={"type": "bool", "mode": "optional"},
            tags={"type": ["map", "string"], "mode": "optional"},
            hosts={"type": ["list", "string"], "mode": "optional"},
        )  # type: ignore[arg-type]
    )["thing.py"]
    methods = _methods(_classes(source)["Thing"])
    arguments = {
        item.arg: ast.unparse(item.annotation or ast.Name("")) for item in methods["__init__"].args.kwonlyargs
    }
    assert arguments == {
        "name": "str",
        "secret": "str | None",
        "size": "int | float | None",
        "on": "bool | tf.IResolvable | None",
        "tags": "Mapping[str, str] | None",
        "hosts": "Sequence[str] | None",
    }
    # fqn belongs to the CDK library; what is write-only cannot be read.
    assert set(methods) == {"__init__", "name", "fqn_attribute", "size", "on", "tags", "hosts"}


def test_nested_attributes_become_typed_dicts_and_references() -> None:
    column = {
        "name": {"type": "string", "mode": "required"},
        "note": TEXT,
        "place": {"type": "number", "mode": "computed"},
    }
    source = generate.documents(
        _schema(
            columns={"nesting": "list", "mode": "required", "attributes": column},
            effective={
                "nesting": "map",
                "mode": "computed",
                "attributes": {"from": {"type": "string", "mode": "computed"}},
            },
        )  # type: ignore[arg-type]
    )["thing.py"]
    classes = _classes(source)
    fields = {ast.unparse(item.target): ast.unparse(item.annotation) for item in classes["ThingColumn"].body
              if isinstance(item, ast.AnnAssign)}  # fmt: skip
    assert fields == {"name": "str", "note": "NotRequired[str]"}
    assert set(_methods(classes["ThingColumnReference"])) == {"name", "note", "place"}
    # A Python keyword gets an underscore.
    assert set(_methods(classes["ThingEffectiveReference"])) == {"from_"}
    assert "ThingEffective" not in classes


def test_an_attribute_named_like_an_argument_of_terraform_is_refused() -> None:
    with pytest.raises(ValueError, match="'count' has the name of an argument of Terraform's own"):
        generate.documents(_schema(count={"type": "number", "mode": "optional"}))  # type: ignore[arg-type]


def test_descriptions_cannot_break_out_of_their_docstrings() -> None:
    text = 'Back\\slash, """quotes""" and a final "'
    source = generate.documents(_schema(name={**TEXT, "description": text}))["thing.py"]  # type: ignore[arg-type]
    doc = ast.get_docstring(_methods(_classes(source)["Thing"])["name"])
    assert doc == text.replace('"""', "'''")


def test_names() -> None:
    assert class_name("schema_registry") == "SchemaRegistry"
    pairs = {("columns", "list"): "Column", ("properties", "map"): "Property", ("status", "single"): "Status"}
    assert {pair: element_name(*pair) for pair in pairs} == pairs
    assert getter_name("count", frozenset({"count"})) == "count_attribute"
    assert getter_name("from", frozenset()) == "from_"

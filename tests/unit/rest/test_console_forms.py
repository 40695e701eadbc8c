"""The console's form of a store is made of the API's schema: it must understand every kind that there is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from leatstream.connectors.registry import connector_classes
from leatstream.rest.schemas.stores import StoreBody

ROOT = Path(__file__).parents[3]
CONSOLE = ROOT / "api/console"
PATH = "/v1/stores/{store}"
# The packages of the console come with `make test-long`.
of_the_console = pytest.mark.long
SCALARS = {"string", "integer", "number", "boolean"}
SCRIPT = """
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const { transpile, ModuleKind, ScriptTarget } = createRequire(process.argv.at(-1))("typescript");
const { document, path, file } = JSON.parse(readFileSync(0, "utf8"));
const options = { module: ModuleKind.ESNext, target: ScriptTarget.ES2022 };
const code = transpile(readFileSync(file, "utf8"), options);
const made = await import(`data:text/javascript,${encodeURIComponent(code)}`);
const form = made.formOf(document, path);
const examples = document.paths[path].put.requestBody.content["application/json"].schema.examples;
const trips = examples.map((one) => {
  const [kind] = form.kinds.filter(({ name }) => name in one);
  return made.bodyOf([kind], made.draftOf([kind], one));
});
const kafka = form.kinds.find(({ name }) => name === "kafka");
const stored = { kafka: { bootstrap_servers: "b:1", sasl: { mechanism: "plain", username: "u",
  password: "never read", oauth: { extensions: { a: "b", c: "d=e" } } } } };
const draft = made.draftOf([kafka], stored);
const typed = { ...draft, values: { ...draft.values, "#/kafka/sasl/password": " p " } };
const closed = { ...typed, open: {} };
const faults = [
  { detail: "kafka.sasl.oauth.token_url: Field required.", pointer: "#/kafka/sasl/oauth/token_url" },
  { detail: "sasl.oauth.extensions.a: Too long.", hint: "Shorten it.", pointer: "#/kafka/sasl/oauth/extensions/a" },
  { detail: "Store events has another kind.", pointer: "#/kafka" },
  { detail: "Not allowed." },
];
console.log(JSON.stringify({
  kinds: form.kinds, common: form.common.map(({ name }) => name), examples, trips, draft,
  bodies: [typed, closed].map((one) => made.bodyOf([kafka], one)),
  hidden: made.bodyOf([kafka], typed, () => "hidden").kafka.sasl.password,
  placed: [typed, closed].map((one) => made.place(kafka.fields, one, faults)),
}));
"""


def document() -> dict[str, Any]:
    schema = StoreBody.model_json_schema(ref_template="#/components/schemas/{model}")
    parts = schema.pop("$defs")
    body = {"content": {"application/json": {"schema": schema}}}
    return {"paths": {PATH: {"put": {"requestBody": body}}}, "components": {"schemas": parts}}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What the console's own module makes of the schema, run by Node.js."""
    node = shutil.which("node", path=f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ.get('PATH', '')}")
    if node is None or not (CONSOLE / "node_modules/typescript").exists():
        pytest.skip("The packages of the console are not installed: run make .venv/.console.")
    given = {"document": document(), "path": PATH, "file": str(CONSOLE / "src/stores/fields.ts")}
    command = [node, "--input-type=module", "-e", SCRIPT, str(CONSOLE / "package.json")]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_setting_has_a_shape_that_the_form_knows() -> None:
    """One text, number, choice or switch; lists and maps of texts; objects of these."""
    parts = document()["components"]["schemas"]

    def strange(schema: dict[str, Any], path: str) -> list[str]:
        options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
        if len(options) != 1:
            return [path]
        (one,) = options
        if "$ref" in one:
            one = parts[one["$ref"].rpartition("/")[2]]
        if "properties" in one:
            return [
                bad for name, part in one["properties"].items() for bad in strange(part, f"{path}/{name}")
            ]
        inner = one.get("items", one.get("additionalProperties", {"type": one.get("type")}))
        return [] if isinstance(inner, dict) and inner.get("type") in SCALARS else [path]

    schema = document()["paths"][PATH]["put"]["requestBody"]["content"]["application/json"]["schema"]
    assert strange(schema, "#") == []


@of_the_console
def test_the_form_has_every_kind_and_names_none(made: dict[str, Any]) -> None:
    assert {kind["name"] for kind in made["kinds"]} == set(connector_classes())
    assert made["common"] == ["owner", "comment", "schema_registry"]
    sources = "".join(path.read_text() for path in (CONSOLE / "src/stores").iterdir())
    assert [kind for kind in connector_classes() if f'"{kind}"' in sources] == []


@of_the_console
def test_what_is_required_comes_first_and_groups_last(made: dict[str, Any]) -> None:
    (kafka,) = (kind for kind in made["kinds"] if kind["name"] == "kafka")
    assert [(one["name"], one["shape"]) for one in kafka["fields"]] == [
        ("bootstrap_servers", "text"),
        ("security_protocol", "choice"),
        ("sasl", "group"),
        ("tls", "group"),
    ]
    tls = {one["name"]: one for one in kafka["fields"][3]["fields"]}
    assert (tls["client_key"]["shape"], tls["client_key"]["secret"]) == ("lines", True)
    assert (tls["ca_certificate"]["shape"], tls["ca_certificate"]["secret"]) == ("lines", False)
    assert tls["verify_hostname"]["shape"] == "boolean"


@of_the_console
def test_a_stored_body_comes_back_as_it_was(made: dict[str, Any]) -> None:
    assert len(made["trips"]) == len(connector_classes())
    assert made["trips"] == made["examples"]


@of_the_console
def test_secrets_are_sent_as_typed_and_never_read_or_shown(made: dict[str, Any]) -> None:
    assert "never read" not in json.dumps(made["draft"])
    oauth = {"extensions": {"a": "b", "c": "d=e"}}
    sasl = {"mechanism": "plain", "username": "u", "password": " p ", "oauth": oauth}
    assert made["bodies"] == [
        {"kafka": {"bootstrap_servers": "b:1", "sasl": sasl}},
        # The kind itself is a group that this draft does not want.
        {},
    ]
    assert made["hidden"] == "hidden"


@of_the_console
def test_a_fault_stands_at_its_field_or_at_the_nearest_that_is_shown(made: dict[str, Any]) -> None:
    opened, closed = made["placed"]
    assert opened["at"] == {
        "#/kafka/sasl/oauth/token_url": "Field required.",
        "#/kafka/sasl/oauth/extensions": "Too long. Shorten it.",
    }
    assert closed["at"] == {"#/kafka/sasl": "Field required. Too long. Shorten it."}
    for placed in (opened, closed):
        assert [one["detail"] for one in placed["rest"]] == ["Store events has another kind.", "Not allowed."]
